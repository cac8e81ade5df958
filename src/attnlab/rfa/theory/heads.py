"""How many heads are enough, and where too few of them interpolate: read off the learning curve of finitely many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, one_of, positive
from attnlab.rfa.task import Task
from attnlab.rfa.theory.learning_curve import learning_curve, values_only
from attnlab.rfa.theory.spectrum import MODELS

GRID = 64
ZOOMS = 5
MOST = 1e12


def heads_needed(
    task: Task, n: ArrayLike, excess: float = 0.1, model: str = "rfa", ridge: float = 1e-6, *, tail: str = "ridge"
) -> Prediction:
    r"""Heads (units of ``rfmlp``) from which on the error is within a share ``excess`` of the limit.

    The least M with :math:`|\mathcal E(n, M')/\mathcal E(n, \infty) - 1| \le` excess for all :math:`M' \ge M`.

    Source: :func:`learning_curve`.  Status: asymptotic. Infinite, and not converged, where 1e12 heads are not enough.

    >>> task = Task(target="key_power", p=2)
    >>> few, many = heads_needed(task, [256, 1024])
    >>> bool(100 < few < many < 1000)
    True
    """
    excess = positive("excess", excess)
    sizes = np.asarray(n, dtype=float)
    found = [_needed(task, float(size), excess, model, ridge, tail) for size in sizes.ravel()]
    value, error, converged = (np.array(column).reshape(sizes.shape) for column in zip(*found, strict=True))
    if sizes.ndim == 0:
        return Prediction(value.item(), error.item(), "asymptotic", converged.item())
    return Prediction(value, error, "asymptotic", converged)


def _needed(task: Task, n: float, excess: float, model: str, ridge: float, tail: str) -> tuple[float, float, bool]:
    limit = learning_curve(task, n, model, ridge, tail=tail)

    def outside(units: np.ndarray) -> np.ndarray:
        ratio = values_only(task, np.full(len(units), n), units, model, ridge, tail) / limit.value
        return np.flatnonzero(np.abs(ratio - 1) > excess)

    low, high = 0.0, np.log(MOST)
    for _ in range(ZOOMS):
        # The last point outside the band, ever finer; between two points of a grid the error leaves the band once.
        grid = np.linspace(low, high, GRID)
        found = outside(np.exp(grid))
        if not len(found):
            return 1.0, 0.0, bool(limit.converged)
        # Possible in the first round alone: not even MOST heads suffice.
        if found[-1] == GRID - 1:
            return math.inf, 0.0, False
        low, high = grid[found[-1]], grid[found[-1] + 1]
    # exp of log M may end just above a whole number of heads, which ceil would raise by one.
    return float(math.ceil(math.exp(high) * (1 - 1e-9))), 1.0, bool(limit.converged)


def interpolation_peak(
    task: Task, n_units: int, model: str = "rfa", ridge: float = 1e-6, *, tail: str = "ridge"
) -> Prediction:
    """The largest error over n for a fixed number of heads (units of ``rfmlp``); ``detail["n"]`` says where it is.

    The peak is where the sample fills the degrees of freedom of the features: n about M (d + 1) for attention, n about
    the width for the MLP, lower and broader the larger the ridge. ``detail["interior"]`` is False where the error only
    falls with n: then the value is the error of one example.

    Source: :func:`learning_curve`.  Status: asymptotic.

    >>> peak = interpolation_peak(Task(target="corr_power", q=1), 30)
    >>> 400 < peak.detail["n"] < 600, bool(peak > 1.5)
    (True, True)
    """
    one_of("model", model, MODELS)
    units = integer("n_heads" if model == "rfa" else "width", n_units, low=1)
    features = units * (task.d + 1) if model == "rfa" else units
    grid = np.geomspace(1, max(30.0 * features, 10.0), 2 * GRID)
    top = int(np.argmax(values_only(task, grid, float(units), model, ridge, tail)))
    found = optimize.minimize_scalar(
        lambda log: -float(values_only(task, np.exp([log]), float(units), model, ridge, tail)[0]),
        bounds=(np.log(grid[max(top - 1, 0)]), np.log(grid[min(top + 1, len(grid) - 1)])),
        method="bounded",
        options={"xatol": 1e-6},
    )
    height = learning_curve(task, float(np.exp(found.x)), model, ridge, tail=tail, **_size(model, units))
    detail = {**height.detail, "n": float(np.exp(found.x)), "interior": 0 < top < len(grid) - 1}
    return Prediction(height.value, height.error, "asymptotic", height.converged and bool(found.success), detail)


def _size(model: str, units: Any) -> dict[str, Any]:
    return {"n_heads" if model == "rfa" else "width": units}
