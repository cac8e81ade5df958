"""Message passing as one writes it first: the sensing matrices X_ab of every sequence stored, einsum over them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlab.aim.indices import pair_of, pair_scale, pairs
from attnlab.aim.spectrum import denoising_mmse, rie

Measure = Callable[[np.ndarray], np.ndarray]


def sensing_tensors(X: np.ndarray) -> np.ndarray:
    """X_ab = (sym(x_a x_b^T) - delta_ab I) / sqrt(d (1 + delta_ab)), (n, p, d, d)."""
    _, tokens, d = X.shape
    a, b = pairs(tokens)
    outer = np.einsum("npi,npj->npij", X[:, a], X[:, b])
    outer = (outer + outer.swapaxes(2, 3)) / 2 - (a == b)[None, :, None, None] * np.eye(d)
    return np.asarray(outer / (np.sqrt(d) * pair_scale(tokens)[None, :, None, None]))


def as_matrix(tensors: np.ndarray) -> tuple[Measure, Measure]:
    """A and A^T as products with one (n p, d^2) matrix, at the speed of BLAS."""
    n, p, d, _ = tensors.shape
    A = tensors.reshape(n * p, d * d)
    return lambda S: (A @ S.ravel()).reshape(n, p), lambda g: (g.ravel() @ A).reshape(d, d)


def as_einsum(tensors: np.ndarray) -> tuple[Measure, Measure]:
    """A and A^T as one writes them from the formula, over all T x T pairs."""
    tokens = int(round((8 * tensors.shape[1] + 1) ** 0.5 - 1) // 2)
    full, (a, b) = tensors[:, pair_of(tokens)], pairs(tokens)
    share = np.where(np.eye(tokens, dtype=bool), 1.0, 0.5)
    return (
        lambda S: np.einsum("nabij,ij->nab", full, S)[:, a, b],
        lambda g: np.einsum("nab,nabij->ij", share * g[:, pair_of(tokens)], full),
    )


def iteration(
    maps: tuple[Measure, Measure], z0: np.ndarray, S: np.ndarray, g: np.ndarray, V: float, rho: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """One undamped softmax iteration: new estimate, messages and error."""
    measure, adjoint = maps
    (n, p), d = z0.shape, len(S)
    u = 1 / pair_scale(int(round((8 * p + 1) ** 0.5 - 1) // 2))
    u = u / np.linalg.norm(u)
    gap = measure(S) - V * g - z0
    g = -(gap - np.outer(gap @ u, u)) / V
    q_hat = 2 * n / d**2 * (p - 1) / V
    R = S + 2 / (q_hat * d) * adjoint(g)
    return rie(R, 1 / q_hat, rho, clip="edges"), g, float(denoising_mmse(1 / q_hat, rho))
