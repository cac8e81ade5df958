"""The words of the lab, defined in :mod:`attnlab.common` because the systems use them too."""

from attnlab.common.claim import Claim, Verdict, at_least, at_most, between
from attnlab.common.figure import Cell, Figure, Grid
from attnlab.common.records import Estimate, Records, proportion

__all__ = [
    "Cell",
    "Claim",
    "Estimate",
    "Figure",
    "Grid",
    "Records",
    "Verdict",
    "at_least",
    "at_most",
    "between",
    "proportion",
]
