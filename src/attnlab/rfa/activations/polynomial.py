"""z and z^2: linear and quadratic attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from attnlab.rfa.activations.base import Activation


@dataclass(frozen=True)
class Identity(Activation):
    """z: linear attention."""

    name: ClassVar[str] = "identity"

    def weights(self, xp: Any, S: Any) -> Any:
        """S."""
        return S

    def pairs(self, m: Any, s: Any, m2: Any, s2: Any, rho: Any, nodes: int) -> Any:
        """The second moment."""
        return m * m2 + rho * s * s2


@dataclass(frozen=True)
class Square(Activation):
    """z^2."""

    name: ClassVar[str] = "square"

    def weights(self, xp: Any, S: Any) -> Any:
        """S^2."""
        return S * S

    def pairs(self, m: Any, s: Any, m2: Any, s2: Any, rho: Any, nodes: int) -> Any:
        """The fourth moment, by Wick's theorem."""
        c = rho * s * s2
        return (m * m + s * s) * (m2 * m2 + s2 * s2) + 4 * c * m * m2 + 2 * c**2
