"""exp(z), averaged over the keys or normalised to a softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from attnlab.rfa.activations.base import Activation


@dataclass(frozen=True)
class Exponential(Activation):
    """exp(z), averaged over the keys."""

    name: ClassVar[str] = "exp"

    def weights(self, xp: Any, S: Any) -> Any:
        """exp(S)."""
        return xp.exp(S)

    def pairs(self, m: Any, s: Any, m2: Any, s2: Any, rho: Any, nodes: int) -> Any:
        """The moment generating function of z + z'."""
        import jax.numpy as jnp

        return jnp.exp(m + s * s / 2 + m2 + s2 * s2 / 2 + rho * s * s2)


@dataclass(frozen=True)
class SoftmaxWeights(Activation):
    """exp(z) divided by its sum over the keys; no closed-form kernel is known."""

    name: ClassVar[str] = "softmax"
    averaged: ClassVar[bool] = False

    def weights(self, xp: Any, S: Any) -> Any:
        """softmax(S), shifted against overflow."""
        E = xp.exp(S - S.max(axis=1, keepdims=True))
        return E / E.sum(axis=1, keepdims=True)
