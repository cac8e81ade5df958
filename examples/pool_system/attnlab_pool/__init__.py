"""Regression on the mean token: attention that looks at all tokens equally."""

from attnlab_pool.learners import PooledLeastSquares
from attnlab_pool.task import Task

__all__ = ["PooledLeastSquares", "Task"]
