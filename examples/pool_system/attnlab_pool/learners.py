"""What is fitted to the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from attnlab.common.stopping import ended
from attnlab.common.tokens import check_targets, check_tokens


class PooledLeastSquares(RegressorMixin, BaseEstimator):
    """Least squares on the mean token. ``coef_`` is the estimate of w."""

    def fit(self, X: Any, y: Any) -> PooledLeastSquares:
        """Solve."""
        tokens = check_tokens(X)
        self.coef_ = np.linalg.lstsq(_pooled(tokens), check_targets(y, len(tokens)), rcond=None)[0]
        ended(self, converged=True, reason="closed form")
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Outputs (n,)."""
        return _pooled(check_tokens(X, d=len(self.coef_))) @ self.coef_


def _pooled(tokens: np.ndarray) -> np.ndarray:
    return tokens.mean(axis=1) * np.sqrt(tokens.shape[1])
