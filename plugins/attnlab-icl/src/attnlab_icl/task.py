r"""Contexts of linear regression: l examples of one task and a query, as a sequence of tokens.

==========  ==============================================================================
symbol      meaning
==========  ==============================================================================
d, l        dimension of an input, examples in a context
k, w_j      number of pretraining tasks, and the tasks, uniform on the sphere of radius sqrt(d)
rho         variance of the label noise
alpha       l / d;  kappa = k / d;  tau = n / d^2, n the number of contexts
h           what linear attention keeps of a context: ((d/l) sum_i y_i x_i, (1/l) sum_i y_i^2)
==========  ==============================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from attnlab.common.seeds import Seed, branch, stream
from attnlab.common.validation import finite_array, integer, nonnegative, one_of

Tasks = Literal["pretraining", "new"]
TASKS = ("pretraining", "new")
# Bytes of tokens that sample() allocates at most; features() needs l times less.
MEMORY = 4e9


@dataclass(frozen=True)
class Task:
    r"""Linear regression in context, with new weights in every context (arXiv:2405.11751).

    .. math:: y_i = x_i \cdot w + e_i, \qquad x_i \sim N(0, I/d), \qquad e_i \sim N(0, \rho)

    Parameters
    ----------
    d, l : dimension of the inputs and number of examples in a context.
    k : number of pretraining tasks; None draws a new task for every context.
    noise_std : standard deviation of the label noise, :math:`\sqrt\rho`.
    seed : of the pretraining tasks.

    >>> task = Task(d=4, l=8, k=3)
    >>> X, y = task.sample(5)
    >>> X.shape, y.shape, task.alpha, task.kappa
    ((5, 9, 5), (5,), 2.0, 0.75)
    """

    d: int
    l: int
    k: int | None = None
    noise_std: float = 0.1
    seed: Seed = 0

    def __post_init__(self) -> None:
        integer("d", self.d, low=2)
        integer("l", self.l, low=1)
        if self.k is not None:
            integer("k", self.k, low=1)
        nonnegative("noise_std", self.noise_std)

    @property
    def tokens(self) -> int:
        """Length of a sequence: the examples and the query."""
        return self.l + 1

    @property
    def alpha(self) -> float:
        """Examples in a context for each dimension."""
        return self.l / self.d

    @property
    def kappa(self) -> float:
        """Pretraining tasks for each dimension; infinite where every context has a new one."""
        return float("inf") if self.k is None else self.k / self.d

    @property
    def rho(self) -> float:
        """Variance of the label noise."""
        return self.noise_std**2

    def tau(self, n: int) -> float:
        """Contexts for each squared dimension."""
        return n / self.d**2

    @functools.cached_property
    def W(self) -> Float[np.ndarray, "k d"]:
        """The pretraining tasks."""
        if self.k is None:
            raise ValueError("k=None draws a new task for every context: there is no list of pretraining tasks W")
        return _on_sphere(stream(self.seed, "plant", "icl"), self.k, self.d)

    def sample(
        self, n: int, seed: Seed = 0, tasks: Tasks = "pretraining"
    ) -> tuple[Float[np.ndarray, "n tokens d+1"], Float[np.ndarray, " n"]]:
        """Draw n contexts: tokens (x_i, y_i), the last one (x, 0), and y, the answer to the last.

        ``tasks``: each context takes one of the ``pretraining`` tasks, or a ``new`` one.
        """
        n = integer("n", n, low=1)
        size = 8 * n * self.tokens * (self.d + 1)
        if size > MEMORY:
            raise ValueError(f"n={n} contexts need {size / 1e9:.1f} GB of tokens; task.features(n) needs l times less")
        rng = stream(seed, "data", "icl", tasks)
        w = self._tasks(n, rng, tasks)
        x = rng.standard_normal((n, self.tokens, self.d)) / np.sqrt(self.d)
        y = np.einsum("nld,nd->nl", x, w) + self.noise_std * rng.standard_normal((n, self.tokens))
        # A copy: its place in the tokens is cleared next, or the answer would leak.
        answer = y[:, -1].copy()
        y[:, -1] = 0
        return np.concatenate([x, y[..., None]], axis=-1), answer

    def reduced(
        self, n: int, seed: Seed = 0, tasks: Tasks = "pretraining"
    ) -> tuple[Float[np.ndarray, "n tokens d+1"], Float[np.ndarray, "n d"]]:
        r"""Tokens of min(l, d) examples that say as much of w as the l of a context, and the task w of each.

        With :math:`X = QR` the examples enter any estimate through R and :math:`Q^Ty = Rw + Q^Te`. R is triangular
        with :math:`R_{ii}^2 \sim \chi^2_{l-i}/d` (i from 0) and :math:`R_{ij} \sim N(0, 1/d)`, all independent
        (Bartlett). The query is 0.

        Source: Bartlett, 1933.  Status: exact in law for what depends on :math:`X^TX` and :math:`X^Ty` alone.
        """
        n = integer("n", n, low=1)
        rng = stream(seed, "data", "icl", "reduced", tasks)
        rows = min(self.l, self.d)
        w = self._tasks(n, rng, tasks)
        X = np.zeros((n, rows + 1, self.d + 1))
        # x is a view: what is written below stands in X.
        x, diagonal = X[:, :rows, :-1], np.arange(rows)
        x[...] = np.triu(rng.standard_normal((n, rows, self.d)))
        x[:, diagonal, diagonal] = np.sqrt(rng.chisquare(self.l - diagonal, size=(n, rows)))
        x /= np.sqrt(self.d)
        X[:, :rows, -1] = (x @ w[..., None])[..., 0] + self.noise_std * rng.standard_normal((n, rows))
        return X, w

    def features(
        self, n: int, seed: Seed = 0, tasks: Tasks = "pretraining"
    ) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d+1"], Float[np.ndarray, " n"]]:
        r"""Query, context summary h and answer of n contexts, in O(n d) time and memory for any l.

        With :math:`s = |w|^2/d + \rho`, :math:`u = w/|w|`, :math:`Y \sim s\chi^2_l` and :math:`g \sim N(0, I)`,

        .. math:: h_{1..d} = \frac{Y}{ls} w + \frac{\sqrt{dY}}{l}\left[g - (1 - \sqrt{\rho/s})(u \cdot g) u\right],
                  \qquad h_{d+1} = Y/l.

        Source: derived here.  Status: exact. The law is that of ``sample``, the numbers are others.
        """
        n = integer("n", n, low=1)
        rng = stream(seed, "data", "icl", "features", tasks)
        d, l = self.d, self.l
        w = self._tasks(n, rng, tasks)
        # |w|^2 = d for all tasks, so that s = 1 + rho and u = w / sqrt(d).
        s = 1 + self.rho
        Y = s * rng.chisquare(l, size=(n, 1))
        g = rng.standard_normal((n, d))
        shrink = (1 - np.sqrt(self.rho / s)) * np.vecdot(w, g)[:, None] / d
        context = np.empty((n, d + 1))
        # sqrt(d Y)/l (g - shrink w) + Y/(l s) w in place: no array of this size beside w, g and the result
        g *= np.sqrt(d * Y) / l
        np.multiply(Y / (l * s) - np.sqrt(d * Y) / l * shrink, w, out=context[:, :d])
        context[:, :d] += g
        del g
        context[:, d:] = Y / l
        query = rng.standard_normal((n, d)) / np.sqrt(d)
        return query, context, np.vecdot(query, w) + self.noise_std * rng.standard_normal(n)

    def blocks(
        self, n: int, seed: Seed = 0, size: int = 4096, tasks: Tasks = "pretraining"
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The law of ``features`` in pieces of at most ``size`` contexts, for data that is not kept."""
        size = integer("size", size, low=1)
        for index, first in enumerate(range(0, integer("n", n, low=1), size)):
            # With one seed for all, every piece would hold the same contexts.
            yield self.features(min(size, n - first), branch(seed, "block", index), tasks)

    def _tasks(self, n: int, rng: np.random.Generator, tasks: Tasks) -> np.ndarray:
        """The task of each context."""
        if one_of("tasks", tasks, TASKS) == "new" or self.k is None:
            return _on_sphere(rng, n, self.d)
        return np.asarray(self.W[rng.integers(self.k, size=n)])


def features(X: Float[np.ndarray, "n tokens d+1"]) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d+1"]]:
    r"""Query x and context summary h of token sequences; linear attention predicts :math:`x^T G h`.

    .. math:: h = \left(\frac dl \sum_{i \le l} y_i x_i,\ \frac1l \sum_{i \le l} y_i^2\right)

    Source: arXiv:2405.11751.  Status: exact.
    """
    x, y, query = split(X)
    l, d = x.shape[1:]
    context = np.empty((len(x), d + 1))
    context[:, :d] = d / l * np.einsum("nl,nld->nd", y, x)
    context[:, d] = np.vecdot(y, y) / l
    return query, context


def split(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs (n, l, d), labels (n, l) and queries (n, d) of sequences; a query that holds its answer is refused."""
    X = finite_array("X", X, ndim=3).astype(np.float64, copy=False)
    if X.shape[1] < 2 or X.shape[2] < 3:
        raise ValueError(f"X must have shape (n, l + 1, d + 1) with l >= 1 and d >= 2, got {X.shape}")
    if X[:, -1, -1].any():
        raise ValueError("the last entry of the last token of X must be 0: it is the place of the answer")
    return X[:, :-1, :-1], X[:, :-1, -1], X[:, -1, :-1]


def _on_sphere(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """n points uniform on the sphere of radius sqrt(d)."""
    w = rng.standard_normal((n, d))
    return np.asarray(w * np.sqrt(d) / np.linalg.norm(w, axis=1, keepdims=True))
