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
from attnlab.smi.posterior.result import Blocks, Posterior
from attnlab.smi.posterior.target import coordinates

# Nodes a side of the grid, by dimension. On a line they cost little and each new size is compiled: large steps. Ranges
# of a user are wider than the posterior and start finer.
WHITENED_SIDES = {1: (65, 513, 4001), 2: (31, 43, 61, 85, 121, 171, 241), 3: (17, 25, 35, 61)}
RANGE_SIDES = {1: (251, 2001, 4001), 2: (61, 85, 121, 171, 241), 3: (31, 43, 61)}
POINTS = (64, 128, 256, 512)  # of each component of the proposal
MARGIN = 1.05  # of the least effective sample size that another rule is expected to keep
KEPT = 0.9  # share of the sample size expected on finer nodes that becomes the least one; with the margin below 1
SETTLED = 1e-3  # relative change with the nodes below which an accuracy in doubt is not theirs
DOUBT = 2e-3  # relative difference of two estimates beyond their errors that puts the nodes in doubt


class Rule(NamedTuple):
    """Sizes of an integration rule, the place of the present one, and the least effective sample size to keep."""

    sizes: tuple[int, ...]
    least: float = 0.0
    power: float = 1.0
    place: int = 0

    @property
    def size(self) -> int:
        """Nodes a side, or points of a component."""
        return self.sizes[self.place]

    def after(self, ess: float) -> Rule:
        """The coarsest rule that resolves posteriors whose 1 % quantile of the sample size is ``ess`` here.

        The sample size to the power 1/D is proportional to the nodes a side. Where it is too small here that is not
        reliable, and the next rule is at least one step finer.
        """
        lowest = 0 if (here := ess**self.power) >= self.least else self.place + 1
        for place, size in enumerate(self.sizes):
            if place >= lowest and (place == self.place or here * size >= MARGIN * self.least * self.size):
                return self._replace(place=place)
        return self._replace(place=len(self.sizes) - 1)

    def finer(self, ess: float) -> Rule:
        """The next size, also from then on: the sample size here was reached without accuracy."""
        size = self.sizes[self.place + 1]
        return self._replace(place=self.place + 1, least=max(self.least, KEPT * ess**self.power * size / self.size))

    @property
    def at_end(self) -> bool:
        """Whether no finer rule is allowed."""
        return self.place == len(self.sizes) - 1

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
    if nodes is not None:
        integer("nodes", nodes, low=3)
    if link.route == "closed":
        return Rule((1,))
    if link.route == "points":
        rule = Rule(POINTS, 20.0)
    else:
        dimension = coordinates(link)
        rule = Rule((RANGE_SIDES if link.has_ranges else WHITENED_SIDES)[dimension], 2.2, 1.0 / dimension)
    return rule if nodes is None else rule._replace(sizes=(nodes,))


def posterior(link: Link, size: int, second: str = "none") -> Posterior:
    """``(y, omega, L, label) -> Moments`` of one sequence.

    Second moments are ``none``, ``all`` (T r, T r), or those ``within`` tokens, added up over tokens, (r, r). The label
    is the number of the sequence; random points of different sequences are independent.
    """
    D, r = link.dimension, link.rank
    blocks: dict[str, Blocks] = {"none": [], "all": [range(D)], "within": [range(t, t + r) for t in range(0, D, r)]}
    route = {"closed": closed_moments, "grid": grid_moments, "points": points_moments}[link.route]
    return route(link, size, blocks[second])
