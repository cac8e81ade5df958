"""The best ridge and the best length of a context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import optimize

from attnlab.common.prediction import Prediction
from attnlab.common.validation import one_of
from attnlab_icl.theory.errors import solve

Target = Literal["icl", "idg"]
TARGETS = ("icl", "idg")
RIDGES = (1e-12, 1e4)
LENGTHS = (1e-4, 1e8)


def optimal_ridge(alpha: float, kappa: float, tau: float, rho: float, target: Target = "icl") -> Prediction:
    """The ridge of least error; ``detail["least"]`` is that error. 0 where no ridge helps.

    Source: derived here, by minimisation of :func:`icl_error` or :func:`idg_error`.  Status: asymptotic.
    """
    one_of("target", target, TARGETS)
    value, least, inside = _least(lambda ridge: getattr(solve(alpha, kappa, tau, rho, ridge), target), RIDGES)
    free = float(getattr(solve(alpha, kappa, tau, rho, 0.0), target))
    # Zero is not on a logarithmic axis.
    if free <= least:
        return Prediction(0.0, 0.0, "asymptotic", True, {"least": free})
    return Prediction(value, 1e-6 * value, "asymptotic", inside, {"least": least})


def best_context_length(kappa: float, tau: float, rho: float, target: Target = "icl", ridge: float = 0.0) -> Prediction:
    """alpha = l/d of least error; infinite where longer contexts always help. ``detail["least"]`` is the error.

    Source: derived here, by minimisation over alpha.  Status: asymptotic.

    >>> round(best_context_length(0.25, 20, 0.5), 1)
    4.7
    """
    one_of("target", target, TARGETS)
    value, least, inside = _least(lambda alpha: getattr(solve(alpha, kappa, tau, rho, ridge), target), LENGTHS)
    if not inside:
        return Prediction(np.inf, 0.0, "asymptotic", True, {"least": least})
    return Prediction(value, 1e-6 * value, "asymptotic", True, {"least": least})


def _least(function: Callable[[np.ndarray], np.ndarray], span: tuple[float, float]) -> tuple[float, float, bool]:
    """Place and value of the least point on a logarithmic axis, and whether it lies inside the span."""
    grid = np.geomspace(*span, 401)
    values = function(grid)
    best = int(np.argmin(values))
    if best in (0, len(grid) - 1):
        return float(grid[best]), float(values[best]), False
    low, high = np.log(grid[best - 1]), np.log(grid[best + 1])
    found = optimize.minimize_scalar(
        lambda z: float(function(np.exp(z))), bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(found.x)), float(found.fun), True
