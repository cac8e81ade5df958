"""What the learners of this system share: checking data, predicting with an estimated S, scoring."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from attnlab.aim.channels import Channel, as_channel, bayes_output
from attnlab.aim.indices import indices
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import one_of

PREDICTIONS = ("plug-in", "bayes")


class IndexedPredictor(BaseEstimator):
    """A fitted ``S_`` makes predictions: plug-in y(h(S_)), or Bayes E y with the indices' remaining variance averaged
    over.
    """

    channel: str | Channel
    beta: float
    noise: float
    prediction: str

    def __sklearn_tags__(self) -> Any:
        """Tokens are three-dimensional and y is a matrix for each sequence."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.three_d_array = True
        return tags

    @property
    def law(self) -> Channel:
        """The output channel as an object."""
        return as_channel(self.channel, self.beta, self.noise)

    def remaining_variance(self) -> float:
        """Variance of a whitened index given the data: the estimated error of S_."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Outputs (n, T, T) for fresh sequences (n, T, d)."""
        check_is_fitted(self, "S_")
        one_of("prediction", self.prediction, PREDICTIONS)
        X = check_tokens(X, n_tokens=self.tokens_, d=len(self.S_))
        h = indices(np.asarray(X, dtype=np.float64), self.S_)
        if self.prediction == "plug-in":
            return self.law.output(h, np.random.default_rng(0))
        return bayes_output(self.law, h, self.remaining_variance())

    def score(self, X: Any, y: Any) -> float:
        """R^2 over all entries: 1 - sum |y - predict(X)|^2 / sum |y - mean y|^2."""
        predicted = self.predict(X)
        y = check_targets(y, len(predicted), shape=predicted.shape[1:])
        return float(1 - ((y - predicted) ** 2).sum() / ((y - y.mean(axis=0)) ** 2).sum())


def check_data(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Tokens (n, T, d), kept as they are where they already live on a device or are regenerated, and targets (n, T,
    T).
    """
    if hasattr(X, "draw"):
        n, tokens, _ = X.shape
    else:
        X = X if _on_device(X) else check_tokens(X)
        n, tokens, _ = X.shape
    return X, check_targets(y, n, shape=(tokens, tokens))


def _on_device(X: Any) -> bool:
    import jax

    return isinstance(X, jax.Array) and X.ndim == 3
