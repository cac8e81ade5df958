r"""The black box and what its answers show.

The query token u is always put **last** and the last row is read, which is the same for causal and for full attention.
With :math:`\bar W = \sum_i W_i` and the logits :math:`t_i(u, w) = (u\Theta_i + c_i)\,w^\top`:

* one token: :math:`F(u) = u\bar W + c_0`;
* p copies of u and q of :math:`v = u - w`: :math:`F - v\bar W - c_0 = \sum_i \sigma(t_i + \log(p/q))\, wW_i`;
* :math:`(u - w_0, u - w, u)`: :math:`u\bar W + c_0 - F = \sum_i P_i\, w_0W_i + P'_i\, wW_i`, with shares
  :math:`P_i = e^{-t_i(u,w_0)}/N_i`, :math:`P'_i = e^{-t_i(u,w)}/N_i`, N the sum of both numerators and one.

Once the :math:`wW_i` of a direction w are known, one query gives all m logits.

Source: derived here; the use of queries for several heads after arXiv:2608.03294.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]
_BATCH = 4096  # sequences of one call of the function, which bound its memory
_CHECKS = 8


class Oracle:
    """A callable from tokens (n, k, d) to outputs (n, k, o), whose shapes are checked and whose sequences are counted.

    ``count`` are the sequences that the layer is learned from, ``checks`` those that only test what was assumed.
    """

    def __init__(self, function: Function, max_queries: int | None = None) -> None:
        self.function = function
        self.max_queries = max_queries
        self.count = self.checks = self.tokens = 0
        self.width: int | None = None

    def __call__(self, X: np.ndarray, *, check: bool = False) -> np.ndarray:
        """All rows of the answers."""
        if check:
            self.checks += len(X)
        else:
            self.count += len(X)
            self.tokens += len(X) * X.shape[1]
            # Counted before they are sent, so that the last batch does not pass the limit.
            if self.max_queries is not None and self.count > self.max_queries:
                raise RuntimeError(
                    f"max_queries={self.max_queries} sequences are not enough; what is known so far is in partial_"
                )
        return np.concatenate([self._answer(X[i : i + _BATCH]) for i in range(0, len(X), _BATCH)])

    def _answer(self, X: np.ndarray) -> np.ndarray:
        answer = np.asarray(self.function(X), dtype=float)
        # The first answer fixes the width for all later ones.
        width = self.width if self.width is not None else (answer.shape[2] if answer.ndim == 3 else None)
        if answer.ndim != 3 or answer.shape[:2] != X.shape[:2] or answer.shape[2] != width:
            expected = f"({X.shape[0]}, {X.shape[1]}, {'d_out' if width is None else width})"
            raise ValueError(f"the oracle must return an array of shape {expected}, got {answer.shape}")
        if not np.isfinite(answer).all():
            raise ValueError("the oracle returned NaN or infinity")
        self.width = width
        return answer


class Box:
    """An oracle whose linear part is known: the sum of projections, the constant, and the error of its answers."""

    def __init__(self, ask: Oracle, d: int, scale: float, bias: bool, rng: np.random.Generator) -> None:
        self.ask, self.d, self.bias = ask, d, bias
        # Random directions guard against a layer whose coordinates differ much in size.
        self.Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        tokens = scale * self.Q
        tokens = np.concatenate([np.zeros((1, d)), tokens]) if bias else tokens
        first = ask(tokens[:, None])[:, -1]
        self.constant = first[0] if bias else np.zeros(first.shape[1])
        # The tokens are scale times an orthogonal Q, whose transpose solves for W. With biases the first one was zero.
        self.w_sum: np.ndarray = self.Q.T @ (first[bias:] - self.constant) / scale
        further = on_sphere(_CHECKS, d, scale, rng)
        missed = ask(further[:, None])[:, -1] - further @ self.w_sum - self.constant
        # With the error of the linear part in it, as in every mixture from which that is subtracted.
        self.noise = float(np.sqrt(np.mean(missed**2)))

    @property
    def outputs(self) -> int:
        """Width of an answer."""
        return len(self.constant)

    def mixture(self, u: np.ndarray, w: np.ndarray, copies: tuple[int, int] = (1, 1)) -> np.ndarray:
        r""":math:`\sum_i \sigma(t_i(u, w) + \log(p/q))\, wW_i` for the rows of u, with (p, q) copies of u and u - w."""
        p, q = copies
        v = u - w
        tokens = np.stack([*[v] * q, *[u] * p], axis=1)
        return self.ask(tokens)[:, -1] - v @ self.w_sum - self.constant

    def shares(self, u: np.ndarray, w0: np.ndarray, w: np.ndarray) -> np.ndarray:
        """What three tokens (u - w0, u - w, u) show of both directions."""
        return u @ self.w_sum + self.constant - self.ask(np.stack([u - w0, u - w, u], axis=1))[:, -1]


def on_sphere(n: int, d: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Random points of a sphere: Gaussian tokens have tails that saturate the patterns."""
    points = rng.standard_normal((n, d))
    return radius * points / np.linalg.norm(points, axis=1, keepdims=True)


def position_deviation(ask: Oracle, d: int, scale: float, rng: np.random.Generator) -> float:
    """By how much answers change when the tokens other than the query change places."""
    tokens = on_sphere(3 * _CHECKS, d, scale, rng).reshape(_CHECKS, 3, d)
    plain, swapped = (ask(X, check=True)[:, -1] for X in (tokens, tokens[:, [1, 0, 2]]))
    return float(np.sqrt(np.mean((plain - swapped) ** 2)))
