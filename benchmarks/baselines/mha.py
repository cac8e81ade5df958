"""The obvious ways: a Gauss-Newton matrix from an explicit Jacobian, and layers fitted by first-order methods."""

from __future__ import annotations

import numpy as np

from attnlab.mha.layer import Rows
from attnlab.mha.varpro import Regression, key_covariances, key_responses


def explicit_normal_equations(rows: Rows, theta: np.ndarray, fit: Regression) -> tuple[np.ndarray, np.ndarray]:
    """Write the Jacobian down, project W out of it, multiply it by itself."""
    m, d, _ = theta.shape
    outputs = fit.W.shape[-1]
    M = key_responses(key_covariances(rows, theta, fit.Z), fit.W)
    J = np.einsum("rp,irqs->rsipq", rows.Q, M).reshape(len(rows), outputs * m * d * d)
    inside = np.linalg.solve(fit.factor, fit.Z.T @ J).reshape(m * d * outputs, m * d * d)
    J = J.reshape(len(rows) * outputs, m * d * d)
    return J.T @ J - inside.T @ inside, J.T @ fit.residual.reshape(-1)
