"""A task and learners of a user, whose errors are known: they travel to workers by name."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Echo:
    """y is the first entry of the first token."""

    d: int = 2
    seed: int = 0

    def __post_init__(self):
        if self.d < 1:
            raise ValueError(f"d must be an integer >= 1, got {self.d}")

    def sample(self, n, seed=0):
        X = np.random.default_rng(seed).standard_normal((n, 1, self.d))
        return X, X[:, 0, 0]


class Shrinking(BaseEstimator):
    """Predicts (1 - sqrt(c/n)) y: its error relative to null is c/n, whatever the data."""

    def __init__(self, c=10.0):
        self.c = c

    def fit(self, X, y):
        if self.c <= 0:
            raise ValueError(f"c must be positive, got {self.c}")
        self.share_ = 1 - min(1.0, self.c / len(X)) ** 0.5
        return self

    def predict(self, X):
        return self.share_ * X[:, 0, 0]


class Stubborn(Shrinking):
    """Needs 100 examples before it does anything."""

    def fit(self, X, y):
        if len(X) < 100:
            raise ValueError("too few examples")
        return super().fit(X, y)


class Broken(Shrinking):
    """Never works."""

    def fit(self, X, y):
        raise RuntimeError("no such luck")
