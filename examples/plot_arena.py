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

    def __init__(self, power=12):
        self.power = power

    def _pooled(self, X):
        weight = np.linalg.norm(X, axis=2, keepdims=True) ** self.power
        return (X * weight).sum(axis=1) / weight.sum(axis=1)

    def fit(self, X, y):
        self.ridge_ = RidgeCV(np.logspace(-4, 2, 7)).fit(self._pooled(X), y)
        return self

    def predict(self, X):
        return self.ridge_.predict(self._pooled(X))


learners = ["own.LengthWeighted", "RFA", "kernel", "RFMLP", "softmax", "linear"]
standings = lab.arena(["own.LongestToken", "slr.max"], learners, n=[30, 120, 480], seeds=2)
for row in standings.matrix("scalar"):
    print(row)

# %%
# ``standings.report(folder)`` writes the heat map, all learning curves and the cost as one page. By hand:
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for place, task in zip(axes, ["own.LongestToken", "slr.max"], strict=True):
    for learner in learners:
        curve = standings.result.records.curve("n_train", "relative_error", task=task, learner=learner)
        place.errorbar(curve.x, curve.mean, curve.sem, fmt="o:", capsize=2, label=learner)
    place.axhline(1.0, color="grey", linewidth=1)
    place.set(xscale="log", yscale="log", xlabel="samples n", title=task)
    place.set_xticks([30, 120, 480], ["30", "120", "480"])
    place.minorticks_off()
axes[0].set_ylabel("error / error of the null predictor")
axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()

# %%
# One thing to change: ``power=2``, a softer choice of the token. The learner's cells alone are then computed anew.
