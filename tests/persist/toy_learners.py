"""A learner and the values that it may carry: what tests of saving save."""

import dataclasses
import functools
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What a fit can say about itself."""

    bound: float
    rows: np.ndarray
    note: str | None = None

    @functools.cached_property
    def doubled(self) -> float:
        return 2 * self.bound


@dataclasses.dataclass(frozen=True)
class Picky:
    level: float

    def __post_init__(self) -> None:
        if not self.level.is_integer():
            raise KeyError(self.level)


@dataclasses.dataclass
class Mutable:
    level: float


class Mean(RegressorMixin, BaseEstimator):
    """Predicts the mean of y; carries whatever attribute a test gives it."""

    total_ = 0  # a plain default of the class is no obstacle to a fitted value

    def __init__(self, shift: Any = 0.0, base: Any = None) -> None:
        self.shift = shift
        self.base = base

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Mean":
        self.mean_ = np.mean(y, axis=0)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.mean_ + self.shift)

    @property
    def offset_(self) -> float:
        return float(self.mean_)

    @functools.cached_property
    def cached_(self) -> float:
        return 2 * float(self.mean_)


class Private(Mean):
    pass


def function(x: float) -> float:
    return x


def fitted(**attributes: Any) -> Mean:
    learner = Mean().fit(np.zeros((4, 2, 3)), np.array([1.0, 2.0, 3.0, 5.0]))
    vars(learner).update(attributes)
    return learner
