"""The obvious implementation: explicit features in NumPy, then scikit-learn's Ridge."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge


def features(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """(1/N) sum_i relu(x_0^T W_m x_i) x_i for all heads, scaled by M^{-1/2}, as one would write it."""
    Xt = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
    query, keys = Xt[:, 0], Xt[:, 1:]
    Q = np.tensordot(query, W, axes=(1, 1))
    S = np.maximum(Q @ keys.transpose(0, 2, 1), 0)
    phi = S @ keys / keys.shape[1]
    return phi.reshape(len(X), -1) / np.sqrt(len(W))


def fit_predict(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, W: np.ndarray, ridge: float) -> np.ndarray:
    """Features of both sets, Ridge with scikit-learn's own choice of solver."""
    model = Ridge(alpha=len(y) * ridge, fit_intercept=False)
    return np.asarray(model.fit(features(X, W), y).predict(features(X_test, W)))
