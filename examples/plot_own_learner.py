"""
A learner of your own in GridSearchCV, saved and loaded
=======================================================

Every learner is a scikit-learn estimator on token arrays, so your own joins the library's in a grid search. Here:
linear attention as ridge regression on the second moment :math:`\\sum_l X_l X_l^T`, one entry of which is the product
:math:`(X_l\\cdot k^*)(X_l\\cdot v^*)` that single-location regression asks for. It beats random-feature attention,
whose query is the first token whether or not that token matters.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from attnlab import persist, rfa, slr


class SecondMoment(RegressorMixin, BaseEstimator):
    """Ridge regression on the summed outer products of the tokens."""

    def __init__(self, ridge=1.0):
        self.ridge = ridge

    def fit(self, X, y):
        self.model_ = Ridge(self.ridge).fit(self._features(X), y)
        return self

    def predict(self, X):
        return self.model_.predict(self._features(X))

    def _features(self, X):
        return np.einsum("nld,nle->nde", X, X).reshape(len(X), -1)


task = slr.Task(d=12, L=4, seed=0)
X, y = task.sample(1500, seed=1)
X_test, y_test = task.sample(2000, seed=2)
ridges = np.logspace(-4, 4, 9)
for name, learner in (("second moment", SecondMoment()), ("RFA", rfa.RandomFeatureAttention(100, random_state=0))):
    search = GridSearchCV(learner, {"ridge": ridges}, cv=3, scoring="neg_mean_squared_error").fit(X, y)
    plt.semilogx(ridges, -search.cv_results_["mean_test_score"], "o-", label=name)
    print(name, search.best_params_, np.mean((search.predict(X_test) - y_test) ** 2))
plt.axhline(slr.theory.bayes_risk(d=12, L=4).value, color="k", linestyle="--", label="Bayes")
plt.axhline(slr.theory.null_risk(), color="grey", label="null")
plt.xlabel("ridge")
plt.ylabel("cross-validated squared error")
plt.legend()

with tempfile.TemporaryDirectory() as folder:
    persist.save(search.best_estimator_, Path(folder) / "rfa.npz")  # no pickle: nothing in the file can run
    again = persist.load(Path(folder) / "rfa.npz")
assert np.array_equal(again.predict(X_test), search.predict(X_test))

# %%
# Change ``L`` to 1: with a single token there is nothing to find.
plt.show()
