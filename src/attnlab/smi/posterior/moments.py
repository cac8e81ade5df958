r"""What every route returns, and the routes by name.

======  ==============  ===============================================================================
symbol  shape           meaning
======  ==============  ===============================================================================
L       (r, r)          symmetric root of V
s       (T, r)          whitened indices, z = omega + s L; standard normal before y is seen
m       (T, r)          E[s | y, omega]
M       (T r, T r)      E[s s^T | y, omega]
======  ==============  ===============================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from attnlab.common.validation import integer
from attnlab.smi.link import Link
from attnlab.smi.posterior.closed import closed_moments
from attnlab.smi.posterior.grid import grid_moments
from attnlab.smi.posterior.points import points_moments
from attnlab.smi.posterior.result import Posterior
from attnlab.smi.posterior.target import coordinates

# First and last number of nodes a side of the grid, by dimension. Ranges of a user are wider than the posterior and
# start finer.
WHITENED_SIDES = {1: (65, 4001), 2: (31, 241), 3: (17, 61)}
RANGE_SIDES = {1: (251, 4001), 2: (61, 241), 3: (31, 61)}
POINTS = (64, 512)  # of each component of the proposal
MARGIN = 1.05  # of the least effective sample size that a coarser rule is expected to keep


class Rule(NamedTuple):
    """The size of an integration rule, and the least effective sample size that it must keep."""

    size: int
    last: int
    least: float
    power: float
    growth: int = 2
    first: int = 1

    def finer(self) -> Rule:
        """The next rule of the ladder."""
        return self._replace(size=min(self.growth * (self.size - self.size % 2) + self.size % 2, self.last))

    def after(self, ess: float) -> Rule:
        """The coarser rule, if it resolves posteriors whose 1 % quantile of the sample size is ``ess`` here."""
        smaller = (self.size - self.size % 2) // self.growth + self.size % 2
        enough = ess**self.power >= MARGIN * self.growth * self.least
        return self._replace(size=smaller) if self.least and enough and smaller >= self.first else self

    @property
    def at_end(self) -> bool:
        """Whether no finer rule is allowed."""
        return self.size >= self.last

    def resolves(self, ess: jax.Array | np.ndarray) -> bool:
        r"""Whether the 1 % quantile of ESS^(1/D) reaches its least value.

        A trapezoid rule of spacing h has the error 2 exp(-2 pi^2 (w/h)^2) on a posterior of width w and
        ESS = (3.545 w/h)^D, so that ESS^(1/D) >= 2.2 means an error below 1e-3.
        """
        return bool(one_percent(ess) ** self.power >= self.least)


def one_percent(ess: jax.Array | np.ndarray) -> float:
    """The 1 % quantile without interpolation: an exact rule has infinitely many samples."""
    place = (len(ess) - 1) // 100
    return float(np.partition(np.asarray(ess), place)[place])


def first_rule(link: Link, nodes: int | None = None) -> Rule:
    """The coarsest rule of the link's route; with ``nodes`` that size and no other."""
    if link.route == "closed":
        return Rule(1, 1, 0.0, 1.0)
    if link.route == "points":
        rule = Rule(*POINTS, 20.0, 1.0, first=POINTS[0])
    else:
        dimension = coordinates(link)
        sides = RANGE_SIDES if link.has_ranges else WHITENED_SIDES
        # On a line nodes cost little and each new size is compiled: large steps.
        first, last = sides[dimension]
        rule = Rule(first, last, 2.2, 1.0 / dimension, 8 if dimension == 1 else 2, first)
    return rule if nodes is None else rule._replace(size=integer("nodes", nodes, low=3), last=nodes, first=nodes)


def posterior(link: Link, size: int, order: int) -> Posterior:
    """``(y, omega, L, label) -> Moments`` of one sequence; second moments are computed for order 2 only.

    The label is the number of the sequence; random points of different sequences are independent.
    """
    route = {"closed": closed_moments, "grid": grid_moments, "points": points_moments}[link.route]
    return route(link, size, order)
