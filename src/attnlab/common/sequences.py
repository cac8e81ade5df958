"""Learners of sequences, as scikit-learn sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from attnlab.common.tokens import check_targets
from attnlab.common.validation import finite_array


class SequenceRegressor(RegressorMixin, BaseEstimator):
    """A learner from sequences (n, tokens, d) to an output for each, a number or an array."""

    _outputs_are_arrays = True

    def __sklearn_tags__(self) -> Any:
        """Tables are no input: scikit-learn's checks of estimators, which make tables, leave such a learner alone."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.target_tags.multi_output = self._outputs_are_arrays
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """Outputs for fresh sequences."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 over all entries: 1 - sum |y - predict(X)|^2 / sum |y - mean y|^2; weights are of sequences."""
        predicted = self.predict(X)
        y = check_targets(y, len(predicted), shape=predicted.shape[1:])
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        # one weight for each sequence, broadcast over the entries of its output
        weight = finite_array("sample_weight", weight, shape=(len(y),)).reshape(-1, *[1] * (y.ndim - 1))
        mean = self._mean_output(y, weight)
        return float(1 - np.sum(weight * (y - predicted) ** 2) / np.sum(weight * (y - mean) ** 2))

    def _mean_output(self, y: np.ndarray, weight: np.ndarray) -> Any:
        """What the best constant predictor says."""
        return np.sum(weight * y, axis=0) / np.sum(weight)
