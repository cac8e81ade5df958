"""
A task and a learner of your own in the arena
=============================================

The longest token decides the output. No learner of the library was made for it; the learner below knows the answer's
form, a mean of the tokens weighted by their length, and wins. Both are ten lines and meet the library as they are.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import RidgeCV

from attnlab import lab


@lab.add
@dataclass(frozen=True)
class LongestToken:
    """y = v . x_l with l the longest token."""

    d: int = 6
    tokens: int = 4
    seed: int = 0

    def sample(self, n, seed=0):
        v = np.random.default_rng(self.seed).standard_normal(self.d)
        X = np.random.default_rng(seed).standard_normal((n, self.tokens, self.d))
        longest = X[np.arange(n), np.linalg.norm(X, axis=2).argmax(axis=1)]
        return X, longest @ v


@lab.add
class LengthWeighted(RegressorMixin, BaseEstimator):
    """Ridge regression on the mean of the tokens, weighted by a power of their length."""

    def _pooled(self, X):
        weight = np.linalg.norm(X, axis=2, keepdims=True) ** 12
        return (X * weight).sum(axis=1) / weight.sum(axis=1)

    def fit(self, X, y):
        self.ridge_ = RidgeCV(np.logspace(-4, 2, 7)).fit(self._pooled(X), y)
        return self

    def predict(self, X):
        return self.ridge_.predict(self._pooled(X))


learners = ["own.LengthWeighted", "RFA", "kernel", "RFMLP", "softmax", "linear"]
comparison = lab.arena(["own.LongestToken"], learners, n=[30, 120, 480], seeds=2)
for learner in learners:
    curve = comparison.result.records.curve("n_train", "relative_error", task="own.LongestToken", learner=learner)
    plt.errorbar(curve.x, curve.mean, curve.sem, fmt="o:", capsize=2, label=learner)
plt.gca().set(xlabel="samples n", ylabel="error / error of the null predictor")
plt.legend(loc="upper right", ncols=2)
plt.show()
# %%
# One thing to change: the power 12 to 2, a softer choice of the token.
