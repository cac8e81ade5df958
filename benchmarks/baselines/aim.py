"""Message passing as one writes it first: the sensing matrices X_ab of every sequence stored, einsum over them."""

from __future__ import annotations

import numpy as np

from attnlab.aim.indices import pair_scale, pairs
from attnlab.aim.spectrum import denoising_mmse, rie


def sensing_tensors(X: np.ndarray) -> np.ndarray:
    """X_ab = (sym(x_a x_b^T) - delta_ab I) / sqrt(d (1 + delta_ab)), (n, p, d, d)."""
    _, tokens, d = X.shape
    a, b = pairs(tokens)
    outer = np.einsum("npi,npj->npij", X[:, a], X[:, b])
    outer = (outer + outer.swapaxes(2, 3)) / 2 - (a == b)[None, :, None, None] * np.eye(d)
    return np.asarray(outer / (np.sqrt(d) * pair_scale(tokens)[None, :, None, None]))


def iteration(
    tensors: np.ndarray, z0: np.ndarray, S: np.ndarray, g: np.ndarray, V: float, rho: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """One undamped softmax iteration: new estimate, messages and error."""
    n, p, d, _ = tensors.shape
    u = 1 / pair_scale(round((np.sqrt(8 * p + 1) - 1) / 2))
    u = u / np.linalg.norm(u)
    gap = np.einsum("npij,ij->np", tensors, S) - V * g - z0
    g = -(gap - np.outer(gap @ u, u)) / V
    q_hat = 2 * n / d**2 * (p - 1) / V
    R = S + 2 / (q_hat * d) * np.einsum("np,npij->ij", g, tensors)
    return rie(R, 1 / q_hat, rho, clip="edges"), g, float(denoising_mmse(1 / q_hat, rho))
