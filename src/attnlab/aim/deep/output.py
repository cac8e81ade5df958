"""What the outputs of L attention layers say about the indices of each layer, as message passing needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.channels import Softmax
from attnlab.aim.deep import channel, posterior
from attnlab.aim.indices import Layout

POINTS = 256  # of the importance sampling, in each of two independent sets
LARGEST = {"layers": 3, "tokens": 4}  # an integral over 18 indices


@dataclass(frozen=True)
class DeepOutput:
    """The output function: a formula for one layer, a quadrature for two layers and two tokens, otherwise importance
    sampling over the indices of all layers but the last.
    """

    layers: int
    tokens: int
    skip: float
    beta: float

    def __post_init__(self) -> None:
        for name, most in LARGEST.items():
            if getattr(self, name) > most:
                raise ValueError(
                    f"{name} must be at most {most}, got {getattr(self, name)}: beyond 3 layers and 4 tokens the "
                    "integral over the first layers is not resolved"
                )

    @property
    def layout(self) -> Layout:
        """Tied self-attention."""
        return Layout(self.tokens, self.tokens)

    @property
    def planar(self) -> bool:
        """Whether the integral over the first layers has two dimensions."""
        return self.layers == self.tokens == 2

    def seen(self, y: np.ndarray) -> np.ndarray:
        """What the outputs (n, T, T) say: logit differences, or the last layer's indices up to a constant."""
        z = Softmax(self.beta).summary(y, self.layout)
        if self.layers == 1:
            return z
        return channel.logit_differences(y, self.beta) if self.planar else np.asarray(self.layout.unwhiten(z))

    def g(self, seen: Any, omega: Any, V: Any) -> tuple[jax.Array, jax.Array]:
        """g of every layer, (layers, n, p), and |g_l|^2 of every sequence.

        From two sets of points: the product of two estimates with independent noise is the square without its bias.
        """
        if self.layers == 1:
            g = Softmax(self.beta).g(seen, omega[0], V[0], self.layout)[None]
            return g, (g**2).sum(axis=2)
        if self.planar:
            out = channel.output_functions(seen, omega[0], omega[1], V[0], V[1], self.skip, self.beta)
            g = jnp.stack([out.g1, out.g2])
            return g, (g**2).sum(axis=2)
        sets = [posterior.points(self.layers, self.tokens, POINTS, number) for number in (1, 2)]
        one, two = (posterior.output_functions(seen, omega, V, xi, skip=self.skip, beta=self.beta) for xi in sets)
        return (one + two) / 2, (one * two).sum(axis=2)
