r"""A single head from value queries: the learner chooses the tokens (after arXiv:2601.16873; formulas derived here).

A query of one token shows W: :math:`F(e_j) = e_j W`. A query of the two tokens (u, u - v) has first row
:math:`(u - v)W + \sigma(u \Theta v^\top)\,vW`, so its logit is :math:`u \Theta v^\top`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logit

from attnlab.common.seeds import Seed, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import integer, one_of, positive
from attnlab.mha.learners.base import LayerRegressor

Oracle = Callable[[np.ndarray], np.ndarray]
METHODS = ("pairs", "wide", "low_rank")
_SWEEPS = 200
_MEASUREMENTS = 6  # of rank r: this many times r d
_NORM = 1.5
_EDGE = 1e-15  # probabilities are kept this far from 0 and 1


class QueryLearner(LayerRegressor):
    """Recover one head by asking for the outputs of chosen sequences.

    Parameters
    ----------
    d : width of a token.
    method : ``pairs``: d + d^2 queries of at most two tokens, any output width. ``wide``: 2 d queries, of d + 1
        tokens; needs W of full row rank. ``low_rank``: d + 6 r d queries, for Theta of rank r.
    rank : r of ``low_rank``.
    strength : length of the queried basis vectors; larger when Theta is small and answers are inexact.
    random_state : draws the directions of ``low_rank``.

    Attributes
    ----------
    theta_, w_ : the head, ``(1, d, d)`` and ``(1, d, d_out)``; ``n_queries_`` sequences asked.

    Examples
    --------
    >>> from attnlab.mha import Task, attention
    >>> task = Task(d=4, k=2, n_heads=1, rho=1.0)
    >>> learner = QueryLearner(4).fit(lambda X: attention(X, task.Theta, task.W))
    >>> learner.n_queries_, bool(np.abs(learner.theta_ - task.Theta).max() < 1e-12)
    (20, True)
    """

    needs = ("d",)

    def __init__(
        self,
        d: int = 2,
        *,
        method: str = "pairs",
        rank: int | None = None,
        strength: float = 1.0,
        random_state: Seed = None,
    ) -> None:
        self.d = d
        self.method = method
        self.rank = rank
        self.strength = strength
        self.random_state = random_state

    def fit(self, X: Oracle, y: None = None) -> QueryLearner:
        """Ask the oracle ``X``, a callable from tokens (n, k, d) to outputs (n, k, d_out)."""
        d = integer("d", self.d, low=1)
        one_of("method", self.method, METHODS)
        strength = positive("strength", self.strength)
        if not callable(X):
            raise TypeError(f"fit takes an oracle, a callable on tokens (n, k, {d}), got {type(X).__name__}")
        ask = _Counted(X)
        W = ask(strength * np.eye(d)[:, None, :])[:, 0] / strength
        if self.method == "pairs":
            theta = _pairs(ask, W, strength)
        elif self.method == "wide":
            theta = _wide(ask, W, strength)
        else:
            if self.rank is None:
                raise ValueError("rank must be given for method='low_rank'")
            rank = integer("rank", self.rank, low=1, high=d)
            theta = _low_rank(ask, W, rank, stream(self.random_state, "learner", "mha"))
        self.theta_, self.w_, self.n_queries_, self.n_tokens_ = theta[None], W[None], ask.count, 2
        ended(self, converged=True, reason="closed form")
        return self


class _Counted:
    """An oracle that counts its sequences and is held to its shape."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.count = 0
        self.width: int | None = None

    def __call__(self, X: np.ndarray) -> np.ndarray:
        answer = np.asarray(self.oracle(X), dtype=float)
        width = self.width if self.width is not None else (answer.shape[2] if answer.ndim == 3 else None)
        if answer.ndim != 3 or answer.shape[:2] != X.shape[:2] or answer.shape[2] != width:
            expected = f"({X.shape[0]}, {X.shape[1]}, {'d_out' if width is None else width})"
            raise ValueError(f"the oracle must return an array of shape {expected}, got {answer.shape}")
        if not np.isfinite(answer).all():
            raise ValueError("the oracle returned NaN or infinity")
        self.width = width
        self.count += len(X)
        return answer


def _bilinear(ask: _Counted, W: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u Theta v^T for rows of u and v, one query each."""
    answers = ask(np.stack([u, u - v], axis=1))[:, 0]
    value = v @ W
    share = np.sum((answers - (u - v) @ W) * value, axis=1) / np.sum(value**2, axis=1)
    result: np.ndarray = logit(np.clip(share, _EDGE, 1 - _EDGE))
    return result


def _pairs(ask: _Counted, W: np.ndarray, strength: float) -> np.ndarray:
    """Theta entry by entry; a coordinate that W does not see borrows the most visible one and is corrected."""
    d = len(W)
    sizes = np.linalg.norm(W, axis=1)
    if sizes.max() == 0:
        raise ValueError("the oracle's W is zero: Theta cannot be seen")
    helper = int(sizes.argmax())
    hidden = sizes < 1e-8 * sizes.max()
    keys = np.eye(d)
    keys[hidden, helper] = 1.0
    i, j = np.divmod(np.arange(d * d), d)
    theta = _bilinear(ask, W, strength * np.eye(d)[i], strength * keys[j]).reshape(d, d) / strength**2
    theta[:, hidden] -= theta[:, [helper]]
    return theta


def _wide(ask: _Counted, W: np.ndarray, strength: float) -> np.ndarray:
    """A row of Theta from one query of d + 1 tokens: e_i, e_i - e_1, ..., e_i - e_d."""
    d = len(W)
    if np.linalg.matrix_rank(W) < d:
        raise ValueError("method='wide' needs a W of full row rank (d_out >= d); use method='pairs'")
    basis = strength * np.eye(d)
    tokens = np.concatenate([basis[:, None], basis[:, None] - basis[None]], axis=1)
    first_rows = ask(tokens)[:, 0]
    shares = np.linalg.lstsq((strength * W).T, (basis @ W - first_rows).T, rcond=None)[0].T
    own = 1 - shares.sum(axis=1, keepdims=True)
    theta: np.ndarray = np.log(np.maximum(own, _EDGE) / np.maximum(shares, _EDGE)) / strength**2
    return theta


def _low_rank(ask: _Counted, W: np.ndarray, rank: int, rng: np.random.Generator) -> np.ndarray:
    """Alternating least squares on random bilinear measurements."""
    d = len(W)
    number = _MEASUREMENTS * rank * d
    u, v = (_NORM * x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.standard_normal((2, number, d)))
    values = _bilinear(ask, W, u, v)
    moment = np.einsum("np,n,nq->pq", u, values, v)
    right = np.linalg.svd(moment)[2][:rank]
    theta = np.zeros((d, d))
    for _ in range(_SWEEPS):
        left = np.linalg.qr(_half_step(u, v @ right.T, values, d, rank))[0]
        right = _half_step(v, u @ left, values, d, rank).T
        before, theta = theta, left @ right
        if np.linalg.norm(theta - before) <= 1e-14 * np.linalg.norm(theta):
            break
    return theta


def _half_step(free: np.ndarray, fixed: np.ndarray, values: np.ndarray, d: int, rank: int) -> np.ndarray:
    design = (free[:, :, None] * fixed[:, None, :]).reshape(len(values), d * rank)
    factor: np.ndarray = np.linalg.lstsq(design, values, rcond=None)[0].reshape(d, rank)
    return factor
