r"""One head without biases from value queries (after arXiv:2601.16873; formulas derived here).

A query of one token shows W: :math:`F(e_j) = e_j W`. Two tokens (u - v, u) have last row
:math:`(u - v)W + \sigma(u \Theta v^\top)\,vW`, so its logit is :math:`u \Theta v^\top`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from attnlab.mha.queries.oracle import Oracle

_SWEEPS = 200
_MEASUREMENTS = 6  # of rank r: this many times r d
_NORM = 1.5
_EDGE = 1e-15  # probabilities are kept this far from 0 and 1
_SATURATED = 6.0  # a larger logit has lost its digits: it is asked for again with a shorter u
_SHORTER = 4.0


def projection(ask: Oracle, d: int, strength: float) -> np.ndarray:
    """W from d queries of one token."""
    W: np.ndarray = ask(strength * np.eye(d)[:, None, :])[:, -1] / strength
    if np.linalg.norm(W) == 0:
        raise ValueError("the oracle's W is zero: Theta cannot be seen")
    return W


def _bilinear(ask: Oracle, W: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u Theta v^T for rows of u and v, one query each; a saturated one is asked for again with a shorter u."""
    result, factor = np.zeros(len(u)), 1.0
    left = np.arange(len(u))
    value = v @ W
    while len(left):
        short = u[left] / factor
        answers = ask(np.stack([short - v[left], short], axis=1))[:, -1]
        share = np.sum((answers - (short - v[left]) @ W) * value[left], axis=1) / np.sum(value[left] ** 2, axis=1)
        # Noise puts shares outside (0, 1), where a logit is not a number.
        logits = logit(np.clip(share, _EDGE, 1 - _EDGE))
        result[left] = factor * logits  # u Theta v^T is linear in u
        left, factor = left[np.abs(logits) > _SATURATED], factor * _SHORTER
        if factor > _SHORTER**6:
            break
    return result


def pairs(ask: Oracle, W: np.ndarray, strength: float) -> np.ndarray:
    """Theta entry by entry; a coordinate that W does not see borrows the most visible one and is corrected."""
    d = len(W)
    sizes = np.linalg.norm(W, axis=1)
    helper = int(sizes.argmax())
    hidden = sizes < 1e-8 * sizes.max()
    keys = np.eye(d)
    keys[hidden, helper] = 1.0
    i, j = np.divmod(np.arange(d * d), d)
    theta = _bilinear(ask, W, strength * np.eye(d)[i], strength * keys[j]).reshape(d, d) / strength**2
    theta[:, hidden] -= theta[:, [helper]]
    return theta


def wide(ask: Oracle, W: np.ndarray, strength: float) -> np.ndarray:
    """A row of Theta from one query of d + 1 tokens: e_i - e_1, ..., e_i - e_d, e_i."""
    d = len(W)
    if np.linalg.matrix_rank(W) < d:
        raise ValueError("method='wide' needs a W of full row rank (d_out >= d); use method='pairs'")
    basis = strength * np.eye(d)
    tokens = np.concatenate([basis[:, None] - basis[None], basis[:, None]], axis=1)
    last_rows = ask(tokens)[:, -1]
    # e_i W - F = sum_j p_j e_j W has the weights of the other tokens; log(p_own / p_j) = strength^2 Theta_ij.
    shares = np.linalg.lstsq((strength * W).T, (basis @ W - last_rows).T, rcond=None)[0].T
    own = 1 - shares.sum(axis=1, keepdims=True)
    return np.log(np.maximum(own, _EDGE) / np.maximum(shares, _EDGE)) / strength**2


def low_rank(ask: Oracle, W: np.ndarray, rank: int, rng: np.random.Generator) -> np.ndarray:
    """Alternating least squares on random bilinear measurements."""
    d = len(W)
    number = _MEASUREMENTS * rank * d
    u, v = (_NORM * x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.standard_normal((2, number, d)))
    values = _bilinear(ask, W, u, v)
    # For isotropic u and v its mean is a multiple of Theta: a start with nearly the right row space.
    moment = np.einsum("np,n,nq->pq", u, values, v)
    right = np.linalg.svd(moment)[2][:rank]
    theta = np.zeros((d, d))
    for _ in range(_SWEEPS):
        # Orthonormal, so that the size of Theta stays in one of the factors.
        left = np.linalg.qr(_half_step(u, v @ right.T, values, d, rank))[0]
        right = _half_step(v, u @ left, values, d, rank).T
        before, theta = theta, left @ right
        if np.linalg.norm(theta - before) <= 1e-14 * np.linalg.norm(theta):
            break
    return theta


def _half_step(free: np.ndarray, fixed: np.ndarray, values: np.ndarray, d: int, rank: int) -> np.ndarray:
    design = (free[:, :, None] * fixed[:, None, :]).reshape(len(values), d * rank)
    return np.linalg.lstsq(design, values, rcond=None)[0].reshape(d, rank)
