r"""Empirical risk minimisation in a feature space given by its Gram matrix, for any smooth convex loss.

.. math:: \min_f \tfrac1n \sum_j \ell(f_j, y_j) + \lambda \|\theta\|^2,
          \qquad f = K\alpha,\ \|\theta\|^2 = \alpha^T K \alpha

by Newton's method (iteratively reweighted least squares); and over the ball :math:`\|\theta\| \le R`, whose minimiser
is that of the penalised problem at the multiplier lambda where the norm is R.

========  ==========================================
symbol    meaning
========  ==========================================
K         Gram matrix (n, n)
ell       loss of prediction f at target y
R         norm bound
========  ==========================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from scipy import special

from attnlab.common.validation import positive
from attnlab.rfa.backend import solve_shifted

TOLERANCE = 1e-9
MAX_STEPS = 100


@dataclass(frozen=True)
class NormBall:
    """The constraint |theta| <= radius, in the place of a ridge."""

    radius: float

    def __post_init__(self) -> None:
        positive("radius", self.radius)


@dataclass(frozen=True)
class Minimum:
    """Coefficients of one output, the ridge they belong to (the multiplier, on a ball), and how the iteration ended."""

    alpha: np.ndarray
    ridge: float
    converged: bool = True
    n_iter: int = 1
    reason: str = "closed form"


@dataclass(frozen=True)
class Loss:
    """A convex loss: value, first and second derivative in the prediction, elementwise."""

    value: Callable[[np.ndarray, np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]
    curvature: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _huber_value(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(special.huber(1.0, f - y))


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        "squared": Loss(
            lambda f, y: (f - y) ** 2,
            lambda f, y: 2 * (f - y),
            lambda f, y: np.full_like(f, 2.0),
        ),
        "logistic": Loss(
            lambda f, y: np.logaddexp(0, -y * f),
            lambda f, y: -y * special.expit(-y * f),
            # Not p (1 - p): from f = 37 on 1 - p rounds to zero, and Newton's system divides by this.
            lambda f, y: special.expit(f) * special.expit(-f),
        ),
        "huber": Loss(
            _huber_value,
            lambda f, y: np.clip(f - y, -1, 1),
            # A small floor keeps Newton's system regular where every residual is in the linear part.
            lambda f, y: np.where(np.abs(f - y) <= 1, 1.0, 1e-3),
        ),
    }
)


def penalised(K: np.ndarray, y: np.ndarray, ridge: float, loss: str) -> Minimum:
    """The penalised problem for one output; K is symmetric, float64."""
    if loss == "squared":
        return Minimum(solve_shifted(K, len(y) * ridge, y[:, None])[:, 0], ridge)
    chosen, n = LOSSES[loss], len(y)

    def objective(alpha: np.ndarray, f: np.ndarray) -> float:
        return float(np.mean(chosen.value(f, y)) + ridge * alpha @ f)

    alpha = f = np.zeros(n)
    now = objective(alpha, f)
    for step in range(1, MAX_STEPS + 1):
        slope = chosen.slope(f, y)
        # The factor 2 is that of the penalty's derivative, 2 ridge K alpha.
        direction = _newton_target(K, slope, chosen.curvature(f, y), f, 2 * n * ridge) - alpha
        along = K @ direction
        # The decrease that the quadratic model promises. Below rounding no step can be told from none.
        promised = -float(slope @ along / n + 2 * ridge * alpha @ along)
        if promised <= TOLERANCE * max(abs(now), TOLERANCE):
            return Minimum(alpha, ridge, True, step, "tolerance reached")
        size = _step_size(objective, alpha, f, direction, along, now)
        if size == 0:
            return Minimum(alpha, ridge, False, step, "line search failed")
        alpha, f = alpha + size * direction, f + size * along
        before, now = now, objective(alpha, f)
        # A shortened step that gains little says nothing of the distance to the minimum.
        if before - now <= TOLERANCE * max(abs(now), TOLERANCE) and size == 1:
            return Minimum(alpha, ridge, True, step, "tolerance reached")
    return Minimum(alpha, ridge, False, MAX_STEPS, "max_iter reached")


def _newton_target(K: np.ndarray, slope: np.ndarray, curvature: np.ndarray, f: np.ndarray, shift: float) -> np.ndarray:
    """Minimiser of the quadratic model: (D K + shift I) alpha = D f - slope, in its symmetric form."""
    # D^1/2 K D^1/2 + shift I is symmetric and definite, D K + shift I is not symmetric.
    root = np.sqrt(curvature)
    right = (curvature * f - slope) / root
    # Fewer features than examples and a small shift: singular to rounding, which the solver takes care of.
    return np.asarray(root * solve_shifted(root[:, None] * K * root, shift, right[:, None])[:, 0])


def _step_size(
    objective: Callable[[np.ndarray, np.ndarray], float],
    alpha: np.ndarray,
    f: np.ndarray,
    direction: np.ndarray,
    along: np.ndarray,
    before: float,
) -> float:
    """The first of 1, 1/2, 1/4, ... at which the objective does not grow; zero if there is none."""
    size = 1.0
    while size > 1e-8:
        if objective(alpha + size * direction, f + size * along) <= before:
            return size
        size /= 2
    return 0.0


def on_ball(
    K: np.ndarray,
    y: np.ndarray,
    radius: float,
    loss: str,
    onto: Callable[[np.ndarray], np.ndarray] = lambda alpha: alpha,
) -> Minimum:
    """The constrained problem |theta| <= radius, by bisection on the logarithm of the multiplier.

    The norm decreases in the multiplier; if the nearly unpenalised solution lies inside the ball it is the answer.
    ``onto`` projects alpha onto the range of a singular K: what lies outside changes no prediction.
    """

    def solve(log_ridge: float) -> tuple[Minimum, float]:
        found = penalised(K, y, float(np.exp(log_ridge)), loss)
        found = replace(found, alpha=onto(found.alpha))
        return found, float(np.sqrt(max(found.alpha @ (K @ found.alpha), 0.0)))

    # In log ridge: the norm of the minimum falls smoothly over all decades of the ridge.
    low, high = np.log(1e-12), np.log(1e-12)
    best, norm = solve(low)
    if norm <= radius:
        return best
    while norm > radius:
        low, high = high, high + np.log(100.0)
        best, norm = solve(high)
    steps = 0
    while radius - norm > 1e-6 * radius and steps < MAX_STEPS and high - low >= 1e-12:
        middle, steps = (low + high) / 2, steps + 1
        trial, trial_norm = solve(middle)
        if trial_norm > radius:
            low = middle
        else:
            # Only minima inside the ball are kept: what is returned obeys the bound.
            high, best, norm = middle, trial, trial_norm
    if best.converged and steps == MAX_STEPS:
        return replace(best, converged=False, n_iter=steps, reason="max_iter reached")
    return replace(best, n_iter=steps, reason="tolerance reached" if best.converged else best.reason)
