"""An attention score of your own for rfa: the weights, and if you know it the kernel of infinitely many heads."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp

from attnlab import lab
from attnlab.rfa.activations import Activation


@lab.add
@dataclass(frozen=True)
class Cosine(Activation):
    """cos z."""

    name: ClassVar[str] = "cosine"

    def weights(self, xp, S):
        """cos of every score; ``xp`` is NumPy or JAX."""
        return xp.cos(S)

    def pairs(self, m, s, m2, s2, rho, nodes):
        """E[cos z cos z'] from the characteristic functions of z - z' and z + z'."""
        spread, shared = (s**2 + s2**2) / 2, rho * s * s2
        return (jnp.exp(shared - spread) * jnp.cos(m - m2) + jnp.exp(-shared - spread) * jnp.cos(m + m2)) / 2
