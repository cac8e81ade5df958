"""Replicates for undecided claims: which figure to repeat, how often, and what it costs.

More replicates after a look at the verdict make a *holds* likelier by accident, so such verdicts are marked as
extended, and count as exploratory until fresh seeds have decided them.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from attnlab.common.claim import Verdict
from attnlab.common.figure import Figure, Grid
from attnlab.lab.runner import Result


@dataclass(frozen=True)
class Proposal:
    """A figure to repeat for one of its claims; ``seconds`` is the computing time expected for the new cells."""

    figure: Figure
    claim: str
    factor: float
    seconds: float


def enlarged(figure: Figure, scale: str, factor: float) -> Figure:
    """The figure with so many times the replicates; what is run once has no noise and stays."""
    grids = [
        # the first replicates keep their numbers, so that their cells are found in the store
        Grid(grid.params, grid.seeds if grid.seeds == 1 else math.ceil(grid.seeds * factor))
        for grid in figure.scales[scale]
    ]
    return dataclasses.replace(figure, scales={**figure.scales, scale: grids})


def proposals(results: Iterable[Result]) -> list[Proposal]:
    """One for each undecided claim that a known number of replicates would decide, cheapest first."""
    found = [
        Proposal(result.figure, verdict.claim.id, factor, (factor - 1) * _repeated_seconds(result))
        for result in results
        for verdict in result.verdicts
        if math.isfinite(factor := _factor(verdict)) and factor > 1
    ]
    return sorted(found, key=lambda proposal: proposal.seconds)


def _factor(verdict: Verdict) -> float:
    """How many times the present replicates decide; the stated minimum where there are too few of them."""
    if verdict.status != "undecided" or verdict.estimate is None or verdict.estimate.runs < 1:
        return math.nan
    # whether max() keeps a NaN depends on the order of its arguments: it is tested by itself
    least = max(verdict.replicates_needed, verdict.claim.replicates)
    return math.nan if math.isnan(verdict.replicates_needed) else least / verdict.estimate.runs


def _repeated_seconds(result: Result) -> float:
    """Computing time of the cells that more replicates repeat."""
    settings: dict[str, list[float]] = {}
    for cell in result.cells:
        # cells of one setting differ in the replicate alone
        params = {name: value for name, value in json.loads(cell.params).items() if name != "seed"}
        settings.setdefault(json.dumps(params, sort_keys=True), []).append(cell.seconds)
    return sum(sum(seconds) for seconds in settings.values() if len(seconds) > 1)


def marked(result: Result) -> Result:
    """The result of an enlarged figure, its verdicts marked."""
    verdicts = [dataclasses.replace(verdict, extended=True) for verdict in result.verdicts]
    return dataclasses.replace(result, verdicts=verdicts)
