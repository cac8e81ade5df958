"""Planted layers of the specification and black boxes of chosen precision."""

import numpy as np


def planted(m, d, rho=4.0, seed=0, rank=None, spread=1.0, bias=0.0, o=None):
    g, o = np.random.default_rng(seed), o or d
    theta = np.stack([_head(d, rank, g) for _ in range(m)])
    norms = rho * spread ** (np.linspace(-0.5, 0.5, m) if m > 1 else np.zeros(1))
    theta *= norms[:, None, None] / np.linalg.norm(theta, axis=(1, 2), keepdims=True)
    w = g.standard_normal((m, d, o)) / np.sqrt(d)
    return theta, w, bias * rho * g.standard_normal((m, d)) / np.sqrt(d), bias * g.standard_normal(o)


def _head(d, rank, g):
    return g.standard_normal((d, d)) if rank is None else g.standard_normal((d, rank)) @ g.standard_normal((rank, d))


def oracle(layer, dtype=np.float64, noise=0.0, causal=False):
    theta, w, key_bias, constant = (part.astype(dtype) for part in layer)
    g = np.random.default_rng(99)

    def answer(X):
        X = X.astype(dtype)
        looked_for = np.einsum("nap,mpq->nmaq", X, theta, optimize=True) + key_bias[:, None]
        logits = looked_for @ X.transpose(0, 2, 1)[:, None]
        if causal:
            logits = np.where(np.tri(X.shape[1], dtype=bool), logits, -np.inf)
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        Y = (weights / weights.sum(axis=-1, keepdims=True) @ X[:, None] @ w).sum(axis=1) + constant
        return Y + noise * g.standard_normal(Y.shape)

    return answer
