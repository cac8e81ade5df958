"""Weak recovery: which directions are learned, in which order, and from how many sequences."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from attnlab.common.advice import advise, no_advice
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, positive
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, power_of_two
from attnlab.smi.link import Link
from attnlab.smi.task import Task
from attnlab.smi.theory.bayes import state_evolution
from attnlab.smi.theory.curve import branch
from attnlab.smi.theory.stability import Stability, stability

HALF = 0.5  # overlap of the learned part at which coupled directions are looked for
# Overlaps of a scalar branch between which a threshold is sought; beyond the last it has ended in exact recovery.
LADDER = (0.02, 0.1, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995, 0.999)
STEPS = 12  # of a search in alpha where the learned part has several directions


@dataclass(frozen=True)
class Step:
    """Directions that are learned together.

    Parameters
    ----------
    alpha, error : from which sample complexity on, and its standard error.
    kind : ``trivial`` (from the mean output, at any alpha), ``coupled`` (with the directions before it), ``weak`` (a
        small overlap grows from alpha on), ``hard`` (never weakly; alpha is infinite), ``above`` (not below alpha_max)
        or ``unresolved`` (alpha is NaN).
    directions : orthonormal rows, (k, r).
    """

    alpha: float
    error: float
    kind: str
    directions: np.ndarray

    def __str__(self) -> str:
        return f"{self.kind} at alpha = {self.alpha:.4g}({self.error:.1g}): {np.round(self.directions, 3).tolist()}"


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds(Prediction):
    """``value`` are the sample complexities of the steps, in order; ``steps`` says what is learned at each."""

    steps: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(map(str, self.steps))


@dataclass
class _Walk:
    """The state of the search: which directions are learned, and up to which alpha."""

    link: Link
    alpha_max: float
    draws: int
    replicates: int
    learned: np.ndarray
    alpha: float = 0.0

    @property
    def rest(self) -> np.ndarray:
        """Orthonormal basis (columns) of the unlearned directions."""
        r = self.link.rank
        # [learned, I] has the singular value sqrt(2) on the learned directions and 1 on the others, which come last.
        basis = np.linalg.svd(np.hstack([self.learned, np.eye(r)]))[0] if self.learned.size else np.eye(r)
        return np.asarray(basis[:, self.learned.shape[1] :])

    def stability(self, Q: np.ndarray) -> Stability:
        return stability(self.link, Q, self.rest, self.draws, self.replicates)

    def learn(self, columns: np.ndarray) -> None:
        self.learned = np.linalg.qr(np.hstack([self.learned, columns]))[0]


def thresholds(
    link: str | Link | Task, alpha_max: float = 10.0, *, draws: int = 2**11, replicates: int = REPLICATES
) -> Thresholds:
    r"""All weak-recovery thresholds in order: the staircase of a link.

    Directions with E[z_t | y, omega] != 0 are learned at once. Another direction is learned where
    :math:`\alpha\,\lambda(\alpha) = 1`, with :math:`\lambda` the largest eigenvalue of the operator F at the fixed
    point of the directions before it (:mod:`attnlab.smi.theory.stability`). The uninformed branch is followed; a step
    at which the learned part has several branches is not handled.

    Parameters
    ----------
    link : a :class:`~attnlab.smi.Link`, the name of a shipped one, or a task.
    alpha_max : where the search ends.
    draws, replicates : sequences of each scrambled Sobol sequence, and their number.

    Source: arXiv:2405.15480; numerics derived here.  Status: asymptotic.

    >>> thresholds("sign_product")
    weak at alpha = 2.467(7e-05): [[1.0, 0.0], [0.0, 1.0]]
    """
    link = checked(link)
    walk = _Walk(
        link,
        positive("alpha_max", alpha_max),
        power_of_two("draws", draws),
        integer("replicates", replicates, low=4),
        np.zeros((link.rank, 0)),
    )
    steps = tuple(_walk(walk))
    resolved = all(step.kind != "unresolved" for step in steps)
    return Thresholds(
        np.array([step.alpha for step in steps]),
        np.array([step.error for step in steps]),
        "asymptotic",
        resolved,
        steps=steps,
    )


def weak_recovery(link: str | Link | Task, *, draws: int = 2**11, replicates: int = REPLICATES) -> Prediction:
    r"""Sample complexity from which a first direction is learned: :math:`1/\lambda` at Q = 0.

    Zero if the mean output shows a direction, infinite if no small overlap grows at any sample complexity. The detail
    has the ``directions`` (rows), the ``kind`` (of :class:`Step`) and whether the number is ``resolved``.

    Source: arXiv:2405.15480; arXiv:2502.00901.  Status: asymptotic.

    >>> round(float(weak_recovery("phase_retrieval")), 3)
    0.5
    """
    link = checked(link)
    start = np.zeros((link.rank, 0))
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=4)
    first = next(_walk(_Walk(link, np.inf, draws, replicates, start)))
    detail = {"directions": first.directions, "kind": first.kind, "resolved": first.kind != "unresolved"}
    return Prediction(first.alpha, first.error, "asymptotic", first.kind != "unresolved", detail)


def _walk(walk: _Walk) -> Iterator[Step]:
    while walk.rest.size:
        kind = "coupled" if walk.learned.size else "trivial"
        found = walk.stability(HALF * walk.learned @ walk.learned.T)
        if found.means.size:
            walk.learn(found.means)
            yield Step(walk.alpha, 0.0, kind, found.means.T)
        elif not found.resolved:
            yield _lost(walk, found.reason)
            return
        else:
            step, directions = _next(walk, found)
            yield step
            if step.kind != "weak":
                return
            walk.learn(directions)
            walk.alpha = step.alpha


def _lost(walk: _Walk, reason: str) -> Step:
    advise(f"a threshold of {walk.link} is not resolved: {reason}", stacklevel=4)
    return Step(np.nan, np.nan, "unresolved", walk.rest.T)


def _next(walk: _Walk, found: Stability) -> tuple[Step, np.ndarray]:
    """The next direction whose small overlap grows."""
    if not walk.learned.size:
        if not found.eigenvalue:
            return Step(np.inf, 0.0, "hard", walk.rest.T), found.directions
        # At Q = 0 the operator does not depend on alpha.
        alpha, error = 1 / found.eigenvalue, found.error / found.eigenvalue**2
    else:
        follow = _on_branch if walk.learned.shape[1] == 1 else _on_state_evolution
        alpha, error, found = follow(walk)
    if not found.resolved:
        return _lost(walk, found.reason), found.directions
    if alpha > walk.alpha_max:
        return Step(np.inf, 0.0, "above", walk.rest.T), found.directions
    return Step(alpha, error, "weak", found.directions.T), found.directions


def _on_branch(walk: _Walk) -> tuple[float, float, Stability]:
    """alpha(q) lambda(q) = 1 along the scalar branch of one learned direction."""
    along = branch(walk.link, walk.learned[:, 0], walk.draws, walk.replicates)

    @functools.cache
    def measure(q: float) -> tuple[float, float, Stability]:
        S = along.along(along.gain(q))
        return q / S.mean(), q / S.mean() ** 2 * S.std(ddof=1) / np.sqrt(len(S)), walk.stability(q * along.P)

    def excess(q: float) -> float:
        alpha, _, found = measure(q)
        # Where alpha(q) falls the branch is unstable; the uninformed one jumps to the next overlap with a larger alpha.
        return float(np.log(max(alpha, walk.alpha, 1e-300) * max(found.eigenvalue, 1e-12)))

    low = 0.0
    for q in LADDER:
        if excess(q) > 0:
            break
        low = q
    else:
        _, error, found = measure(LADDER[-1])
        return (np.inf if found.resolved else np.nan), error, found
    # alpha depends on q through 1 - q near the end of the branch; its error there is some 1e-3.
    at = brentq(excess, low, q, xtol=1e-3 * (1 - q)) if low else q
    alpha, error, found = measure(at)
    return max(alpha, walk.alpha), _crossing_error(excess, measure, at, error, found), found


def _crossing_error(excess: Any, measure: Any, q: float, alpha_error: float, found: Stability) -> float:
    """Standard error of alpha where log(alpha lambda) = 0: the error of the product over its slope in log alpha."""
    alpha = measure(q)[0]
    near = min(q + 0.1 * (1 - q), 0.9999)
    slope = (excess(near) - excess(q)) / np.log(measure(near)[0] / alpha)
    relative = np.hypot(alpha_error / alpha, found.error / max(found.eigenvalue, 1e-300))
    return float(alpha * relative / max(abs(slope), 1e-6))


def _on_state_evolution(walk: _Walk) -> tuple[float, float, Stability]:
    """alpha lambda(alpha) = 1 at the fixed points of several learned directions, by bisection in alpha."""
    P = walk.learned @ walk.learned.T

    def measure(alpha: float) -> tuple[float, Stability]:
        with no_advice():
            at = state_evolution(
                walk.link, alpha, HALF * P, draws=walk.draws, replicates=walk.replicates, tol=1e-4, max_iter=200
            )
        # Overlaps outside the learned directions are noise here, and the operator assumes that they vanish.
        found = walk.stability(P @ at.Q @ P)
        return alpha * found.eigenvalue, found if at.resolved else found._replace(resolved=False)

    low, high = max(walk.alpha, 1e-3), max(2 * walk.alpha, 1.0)
    while (product := measure(high)[0]) < 1:
        if high >= walk.alpha_max:
            return np.inf, 0.0, measure(high)[1]
        low, high = high, min(2 * high, walk.alpha_max)
    for _ in range(STEPS):
        # alpha on a logarithmic scale, on which the bracket was doubled.
        middle = np.sqrt(low * high)
        low, high = (middle, high) if measure(middle)[0] < 1 else (low, middle)
    product, found = measure(high)
    # What is left of the bracket counts as error.
    return high, float(high * found.error / found.eigenvalue + (high - low)) if product else np.nan, found
