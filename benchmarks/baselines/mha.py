"""The obvious ways: a Gauss-Newton matrix from an explicit Jacobian, and a layer fitted by first-order restarts."""

from __future__ import annotations

import time

import numpy as np

from attnlab.mha import GradientLearner
from attnlab.mha.engine.variable_projection import Regression, key_covariances, key_responses
from attnlab.mha.layer import Rows

FITTED = 1e-12  # relative training error at which a user would stop restarting
STEPS = {"lbfgs": 2000, "adam": 5000}
RATES = (0.05, 0.01)


def explicit_normal_equations(rows: Rows, theta: np.ndarray, fit: Regression) -> tuple[np.ndarray, np.ndarray]:
    """Write the Jacobian down, project W out of it, multiply it by itself."""
    m, d, _ = theta.shape
    outputs = fit.W.shape[-1]
    M = key_responses(key_covariances(rows, theta, fit.Z), fit.W)
    J = np.einsum("rp,irqs->rsipq", rows.Q, M).reshape(len(rows), outputs * m * d * d)
    inside = np.linalg.solve(fit.factor, fit.Z.T @ J).reshape(m * d * outputs, m * d * d)
    J = J.reshape(len(rows) * outputs, m * d * d)
    return J.T @ J - inside.T @ inside, J.T @ fit.residual.reshape(-1)


def restart(method: str, n_heads: int, X: np.ndarray, y: np.ndarray, seconds: float) -> GradientLearner:
    """The best of as many starts as fit into the time; a start that fits the examples ends it.

    L-BFGS has 2000 iterations a start; Adam 5000 steps on minibatches with a decaying rate of 0.05 and 0.01 in turn.
    """
    end = time.monotonic() + seconds
    best: GradientLearner | None = None
    start = 0
    while best is None or (best.train_nmse_ > FITTED and time.monotonic() < end):
        learner = GradientLearner(
            n_heads,
            method=method,
            n_starts=1,
            max_iter=STEPS[method],
            step=RATES[start % 2],
            random_state=start,
        ).fit(X, y)
        best = learner if best is None or learner.train_nmse_ < best.train_nmse_ else best
        start += 1
    return best
