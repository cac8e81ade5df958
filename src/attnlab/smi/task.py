"""Gaussian tokens, hidden directions, and outputs that a link computes from their products."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from attnlab.common.precision import float64
from attnlab.common.seeds import Seed, stream
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import integer, positive
from attnlab.smi.link import Link
from attnlab.smi.links.named import as_link, named


@dataclass(frozen=True)
class Task:
    r"""Sequences of T Gaussian tokens; the output is a function of a few projections (arXiv:2502.00901).

    .. math:: y = \text{link}(z), \qquad z = X W^\top / \sqrt d

    Parameters
    ----------
    link : a :class:`~attnlab.smi.Link`, or the text of a shipped one such as ``attention`` or
        ``deep_attention(layers=2, skip=0.5)``.
    d : embedding dimension.
    tokens : T, for a shipped link that has this parameter; otherwise the link's own.
    seed : of the planted directions W (r, d), entries iid N(0, 1).

    >>> X, y = Task("attention", d=20).sample(5)
    >>> X.shape, y.shape
    ((5, 2, 20), (5, 2, 2))
    """

    link: str | Link = "attention"
    d: int = 1000
    tokens: int | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        integer("d", self.d, low=1)
        law = self.law
        if self.tokens is not None and self.tokens != law.tokens:
            raise ValueError(f"tokens is given twice: {self.tokens}, and the link {law} has {law.tokens}")
        if law.rank > self.d:
            raise ValueError(f"d must be at least the rank {law.rank} of the link, got {self.d}")
        object.__setattr__(self, "tokens", law.tokens)

    @property
    def law(self) -> Link:
        """The link as an object."""
        if isinstance(self.link, str) and self.tokens is not None and "(" not in self.link:
            try:
                # A link without this parameter has its own number of tokens, which is compared when the task is made.
                return named(self.link, tokens=self.tokens)
            except ValueError as problem:
                if "has no parameter" not in str(problem):
                    raise
        return as_link(self.link)

    @property
    def rank(self) -> int:
        """Number r of hidden directions."""
        return self.law.rank

    @functools.cached_property
    def W(self) -> Float[np.ndarray, "rank d"]:
        """The planted directions."""
        # Other tags than the tokens': truth and data of one integer seed are independent.
        return stream(self.seed, "plant", "smi").standard_normal((self.rank, self.d))

    def n_samples(self, alpha: float) -> int:
        """n = round(alpha d), at least one sequence."""
        n = round(positive("alpha", alpha) * self.d)
        if n < 1:
            raise ValueError(f"alpha must give at least one sequence, got alpha={alpha} at d={self.d}")
        return n

    def indices(self, X: Float[np.ndarray, "n tokens d"]) -> Float[np.ndarray, "n tokens rank"]:
        """z of given sequences."""
        X = check_tokens(X, n_tokens=self.tokens, d=self.d)
        return np.asarray(X @ self.W.T / np.sqrt(self.d))

    def sample(self, n: int, seed: Seed = 0) -> tuple[Float[np.ndarray, "n tokens d"], np.ndarray]:
        """Draw n sequences and their outputs."""
        n = integer("n", n, low=1)
        X = stream(seed, "data", "smi").standard_normal((n, self.law.tokens, self.d))
        e = stream(seed, "data", "smi", "noise").standard_normal((n, self.law.noise))
        z = self.indices(X)
        if self.law.indices is not None:
            tilted = apply(self.law.indices, z, e)
            # The shortest change of the tokens that gives these indices.
            X += np.sqrt(self.d) * (tilted - z) @ np.linalg.solve(self.W @ self.W.T, self.W)
            z = tilted
        return X, apply(self.law.sample, z, e)


@float64
def apply(function: Any, z: np.ndarray, e: np.ndarray) -> np.ndarray:
    """A function of a link, sequence by sequence."""
    return np.asarray(mapped(function)(z, e))


@functools.lru_cache(maxsize=256)
def mapped(function: Any) -> Any:
    """Compiled once for each function object."""
    return jax.jit(jax.vmap(function))
