"""The law: the output is linear in the mean of the tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import integer, nonnegative


@dataclass(frozen=True)
class Task:
    """y = <w, mean of the tokens> sqrt(tokens) + noise, with Gaussian tokens and |w| = 1.

    >>> Task(d=4).sample(3)[0].shape
    (3, 2, 4)
    """

    d: int
    tokens: int = 2
    noise_std: float = 0.5
    seed: Seed = 0

    def __post_init__(self) -> None:
        integer("d", self.d, low=1)
        integer("tokens", self.tokens, low=1)
        nonnegative("noise_std", self.noise_std)

    @property
    def w(self) -> np.ndarray:
        """The planted direction."""
        w = stream(self.seed, "plant", "pool").standard_normal(self.d)
        return w / np.linalg.norm(w)

    def sample(self, n: int, seed: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
        """Tokens (n, tokens, d) and outputs (n,)."""
        rng = stream(seed, "data", "pool")
        X = rng.standard_normal((n, self.tokens, self.d))
        pooled = X.mean(axis=1) * np.sqrt(self.tokens)
        return X, pooled @ self.w + self.noise_std * rng.standard_normal(n)
