r"""First-order transitions of a scalar branch: where learning is possible, and where message passing finds it.

Between a local maximum of alpha(q) (``alg``) and the local minimum after it (``spinodal``) two stable fixed points
coexist. The Bayes-optimal one has the larger free entropy,

.. math:: \Phi'(q) = \frac{\alpha S(q) - q}{2(1 - q)}, \qquad
          \int_{q_1}^{q_2} \frac{\alpha S(q) - q}{1 - q}\, dq = 0 \;\text{ at } \alpha_{IT}

integrated in v = -log(1 - q), in which the integrand alpha S - q is smooth up to exact recovery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, minimize_scalar

from attnlab.common.advice import advise
from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.validation import finite_array, integer
from attnlab.smi.draws import REPLICATES
from attnlab.smi.link import Link
from attnlab.smi.task import Task
from attnlab.smi.theory.curve import Curve, curve

BOUNDS = (0.05, 1 - 1e-6)
DEPTH = 4.0  # standard errors by which alpha(q) must fall after a maximum
SHALLOW = 2e-4  # and the share of alpha: below it the rounding of the integration could be the reason
EXACT = 5e-3  # relative distance from the minimum at which the end of a branch is exact recovery
FINE = 400  # nodes on which a spline is searched and integrated


class _One(NamedTuple):
    spinodal: float
    it: float
    alg: float


@dataclass(frozen=True, eq=False, repr=False)
class Transitions(Prediction):
    """``value`` is (spinodal, it, alg); all NaN and not converged where alpha(q) has no first-order transition.

    Parameters
    ----------
    curve : the branch alpha(q) from which they were read.
    """

    curve: Curve | None = None

    @property
    def spinodal(self) -> float:
        """From this alpha on an informed estimate stays."""
        return float(self.value[0])

    @property
    def it(self) -> float:
        """From this alpha on the informed branch is the Bayes-optimal one."""
        return float(self.value[1])

    @property
    def alg(self) -> float:
        """From this alpha on message passing finds it without information."""
        return float(self.value[2])


def transitions(
    link: str | Link | Task,
    bounds: ArrayLike = BOUNDS,
    direction: ArrayLike | None = None,
    *,
    points: int = 61,
    draws: int = 2**12,
    replicates: int = REPLICATES,
) -> Transitions:
    r"""Spinodal, information-theoretic and algorithmic transition of a scalar branch.

    Parameters
    ----------
    link : a :class:`~attnlab.smi.Link`, the name of a shipped one, or a task.
    bounds : the overlaps between which alpha(q) is examined; where it still falls at the upper end, exact recovery is
        the informed branch, and spinodal and information-theoretic transition coincide.
    direction : of the branch, as in :func:`curve`.
    points : overlaps at which S(q) is computed, at equal distances in log(1 - q).

    Each scramble of the points has its own transitions; their spread is the error bar.

    Source: derived here (Maxwell construction).  Status: asymptotic.

    >>> found = transitions("phase_retrieval")
    >>> round(found.it, 2), round(found.alg, 2)
    (1.0, 1.13)
    """
    low, high = finite_array("bounds", bounds, shape=(2,))
    if not 0 < low < high < 1:
        raise ValueError(f"bounds must be overlaps 0 < low < high < 1, got {bounds!r}")
    # Equal steps in -log(1 - q) resolve both ends: q near 0, and 1 - q near q = 1.
    v = np.linspace(-np.log1p(-low), -np.log1p(-high), integer("points", points, low=9))
    found = curve(link, -np.expm1(-v), direction, draws=draws, replicates=replicates)
    nothing = Transitions(np.full(3, np.nan), np.full(3, np.nan), "asymptotic", False, curve=found)
    if not found.resolved.all():
        return nothing
    if not _falls(found):
        advise("alpha(q) has no local maximum between bounds: no first-order transition", stacklevel=2)
        return nothing
    each = np.array([_of_one(v, S) for S in found.samples])
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return Transitions(each.mean(axis=0), error, "asymptotic", bool(np.isfinite(each).all()), curve=found)


def _falls(found: Curve) -> bool:
    """Whether alpha(q) falls after its first large maximum by more than its noise, with common points for both q."""
    alpha = found.q / found.samples
    mean = alpha.mean(axis=0)
    drops = np.maximum.accumulate(mean) - mean
    low = int(np.argmax(drops))
    high = int(np.argmax(mean[: low + 1]))
    drop = alpha[:, high] - alpha[:, low]
    return bool(drop.mean() > max(DEPTH * drop.std(ddof=1) / np.sqrt(len(drop)), SHALLOW * mean[high]))


def _of_one(v: np.ndarray, S: np.ndarray) -> _One:
    """The transitions of one scramble."""
    gained = CubicSpline(v, S)
    fine = np.linspace(v[0], v[-1], FINE)
    alpha = -np.expm1(-fine) / gained(fine)
    low = int(np.argmax(np.maximum.accumulate(alpha) - alpha))
    high = int(np.argmax(alpha[: low + 1]))

    def at(x: float) -> float:
        return float(-np.expm1(-x) / gained(x))

    def refined(i: int, sign: int) -> float:
        """The extremum near a fine node."""
        if i in (0, FINE - 1):
            return float(fine[i])
        found = minimize_scalar(lambda x: sign * at(x), bounds=(fine[i - 1], fine[i + 1]), method="bounded")
        return float(found.x)

    top, bottom = refined(high, -1), refined(low, 1)
    alg, spinodal = at(top), at(bottom)
    # Exact recovery: alpha stays finite as q -> 1, and for alpha above it the free entropy grows without bound there.
    if at(v[-1]) <= (1 + EXACT) * spinodal:
        return _One(spinodal, spinodal, alg)

    def advantage(a: float) -> float:
        """Free entropy of the upper branch minus that of the lower one, times two."""
        first = brentq(lambda x: at(x) - a, v[0], top) if at(v[0]) < a else v[0]
        last = brentq(lambda x: at(x) - a, bottom, v[-1]) if at(v[-1]) > a else v[-1]
        # dq = (1 - q) dv, so that the integrand is a S - q with q = 1 - e^-v.
        return float(a * gained.integrate(first, last) - (last - first) - np.exp(-last) + np.exp(-first))

    # At the transitions themselves two of the three solutions of alpha(q) = a merge.
    ends = spinodal + 1e-9, alg - 1e-9
    signs = [np.sign(advantage(end)) for end in ends]
    return _One(spinodal, brentq(advantage, *ends) if signs[0] != signs[1] else np.nan, alg)
