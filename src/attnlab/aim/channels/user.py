"""A channel of one's own, from a sampler and a likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attnlab.aim.channels.channel import Channel
from attnlab.common.seeds import stream
from attnlab.common.validation import finite_array, nonnegative

DRAWS = 64  # of a random output, averaged in a prediction


@dataclass(frozen=True)
class UserChannel(Channel):
    """Any channel, given by a sampler and a likelihood; everything else by importance sampling, with error bars.

    Parameters
    ----------
    forward : ``(h, rng) -> y``, NumPy, h of shape (n, queries, keys), y of the same shape.
    log_likelihood : ``(y, h) -> log P(y | h)``, JAX, arrays (..., queries, keys) to (...).
    noise : variance of the Gaussian noise added to the whitened indices.
    """

    forward: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    log_likelihood: Callable[[Any, Any], Any]
    noise: float = 0.0
    name: ClassVar[str] = "user"

    def __post_init__(self) -> None:
        nonnegative("noise", self.noise)

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None, visible: Any = None) -> np.ndarray:
        """y for indices h."""
        y = self.forward(h, stream(0, "theory", "aim", "output") if rng is None else rng)
        return finite_array("the output of forward", y, shape=h.shape)

    def log_density(self, y: Any, h: Any) -> Any:
        """log P(y | h)."""
        return self.log_likelihood(y, h)

    def mean_output(self, h: np.ndarray, visible: Any = None) -> np.ndarray:
        """E[y | h]: one output where two draws agree, the mean of many where the output is random."""
        first, second = (self.output(h[:8], stream(seed, "theory", "aim", "output")) for seed in (0, 1))
        draws = 1 if np.array_equal(first, second) else DRAWS
        rng = stream(0, "theory", "aim", "output")
        return np.asarray(sum(self.output(h, rng) for _ in range(draws)) / draws)
