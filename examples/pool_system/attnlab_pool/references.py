"""Theory beside simulations: columns of sweeps, lines of pictures, forecasts of the planner."""

from __future__ import annotations

from attnlab.common.prediction import Prediction
from attnlab.common.reference import Reference
from attnlab_pool.learners import PooledLeastSquares
from attnlab_pool.task import Task
from attnlab_pool.theory import risk


def least_squares(task: Task, learner: PooledLeastSquares, n: int) -> Prediction | None:
    """Least squares with more examples than dimensions."""
    return risk(task, n) if n > task.d + 1 else None


def null(task: Task, learner: object, n: int) -> float:
    """Predicting the mean output."""
    return 1 + task.noise_std**2


REFERENCES = (
    Reference("null", Task, "exact", null),
    Reference("theory", Task, "exact", least_squares, PooledLeastSquares),
)
