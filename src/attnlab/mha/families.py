r"""Planted layers: what makes a layer easy or hard for which learner.

A family is one object that draws a layer from its own parameters. All bend the same generic draw (Gaussian
:math:`\Theta_i` of Frobenius norm rho, W of variance 1/d); head 0 keeps its generic value where the family allows. A
family of your own is a frozen dataclass that inherits from :class:`Family` and writes :meth:`Family.bend`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attnlab.common.validation import integer, one_of, positive

Layer = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Family:
    """The law of a planted layer; ``rho`` is the Frobenius norm of its attention matrices."""

    name: ClassVar[str]
    rho: float = 4.0

    def __post_init__(self) -> None:
        positive("rho", self.rho)

    def draw(self, d: int, m: int, d_out: int, rng: np.random.Generator) -> Layer:
        """The planted ``(Theta, W)``: Theta head by head, then all W at once."""
        theta = np.stack([self.head(d, rng) for _ in range(m)])
        return self.bend(with_norm(theta, self.rho), rng.standard_normal((m, d, d_out)) / np.sqrt(d))

    def head(self, d: int, rng: np.random.Generator) -> np.ndarray:
        """The direction of one attention matrix."""
        return rng.standard_normal((d, d))

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """The layer of the family from a generic one."""
        return theta, w


@dataclass(frozen=True)
class Generic(Family):
    """Nothing special."""

    name = "generic"


@dataclass(frozen=True)
class Weak(Family):
    """Heads 1.. have W scaled by 0.01."""

    name = "weak"

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Scale the values of the later heads."""
        return theta, np.concatenate([w[:1], 0.01 * w[1:]])


@dataclass(frozen=True)
class Dispersed(Family):
    """Norms 25 and 0.5 in turn (rho is not used)."""

    name = "dispersed"

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Give the heads their norms."""
        return with_norm(theta, np.resize([25.0, 0.5], len(theta))), w


@dataclass(frozen=True)
class Close(Family):
    r"""Nearly equal heads, :math:`\Theta_i \propto \Theta_0 + 0.1\,\Theta_i`."""

    name = "close"

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Move the later heads to the first."""
        return np.concatenate([theta[:1], with_norm(theta[0] + 0.1 * theta[1:], self.rho)]), w


@dataclass(frozen=True)
class Opposite(Family):
    r"""Nearly opposite heads, :math:`\Theta_i \propto \mp\Theta_0 + 0.2\,\Theta_i`."""

    name = "opposite"

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Move the later heads to plus or minus the first."""
        # The first sign, a plus, belongs to head 0, which stays: head 1 is near its negative.
        bent = with_norm(_signs(len(theta)) * theta[0] + 0.2 * theta, self.rho)
        return np.concatenate([theta[:1], bent[1:]]), w


@dataclass(frozen=True)
class OppositeValues(Family):
    """Projections that nearly cancel, :math:`W_i = -W_0 + 0.1\\,W_i`."""

    name = "opposite_values"

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Move the later projections to minus the first."""
        return theta, np.concatenate([w[:1], -w[0] + 0.1 * w[1:]])


@dataclass(frozen=True)
class NearIdentity(Family):
    r"""Heads that are not incoherent, :math:`\Theta_i \propto \pm(\sqrt d/2)\,I + 0.5\,G/\sqrt d`."""

    name = "near_identity"

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Add plus or minus the identity."""
        m, d, _ = theta.shape
        gaussian = theta * d / self.rho  # entries of unit variance up to O(1/d)
        return with_norm(_signs(m) * np.sqrt(d) / 2 * np.eye(d) + 0.5 * gaussian / np.sqrt(d), self.rho), w


@dataclass(frozen=True)
class Parallel(Family):
    r"""One direction at several strengths, :math:`\Theta_i = 2^{i-1}\,\Theta_0`."""

    name = "parallel"

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Repeat the first head."""
        return theta[0] * 2.0 ** (np.arange(len(theta)) - 1)[:, None, None], w


@dataclass(frozen=True)
class LowRank(Family):
    r"""Heads as in trained models: rank r, norms spread geometrically over a factor ``spread`` around rho."""

    name = "low_rank"
    rank: int = 4
    spread: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("rank", self.rank, low=1)
        positive("spread", self.spread)

    def head(self, d: int, rng: np.random.Generator) -> np.ndarray:
        """A product of two Gaussian factors."""
        return rng.standard_normal((d, self.rank)) @ rng.standard_normal((self.rank, d))

    def bend(self, theta: np.ndarray, w: np.ndarray) -> Layer:
        """Spread the norms."""
        return with_norm(theta, self.rho * self.spread ** np.linspace(-0.5, 0.5, len(theta))), w


_KINDS = (Generic, Weak, Dispersed, Close, Opposite, OppositeValues, NearIdentity, Parallel, LowRank)
FAMILIES: dict[str, type[Family]] = {kind.name: kind for kind in _KINDS}


def family_of(family: str | Family, rho: float | None) -> Family:
    """The family object from a name or from itself; two different values of rho are an error.

    >>> family_of("weak", 2.0)
    Weak(rho=2.0)
    """
    if isinstance(family, str):
        options: dict[str, Any] = {} if rho is None else {"rho": rho}
        return FAMILIES[one_of("family", family, FAMILIES)](**options)
    if not isinstance(family, Family):
        raise TypeError(f"family must be a name or a Family, got {family!r}")
    if rho is not None and rho != family.rho:
        raise ValueError(f"rho is given twice: {rho:g} to the task and {family.rho:g} in the family")
    return family


def with_norm(theta: np.ndarray, norm: float | np.ndarray) -> np.ndarray:
    """Matrices scaled to the given Frobenius norm(s)."""
    return np.reshape(norm, (-1, 1, 1)) * theta / np.linalg.norm(theta, axis=(1, 2), keepdims=True)


def _signs(m: int) -> np.ndarray:
    return ((-1.0) ** np.arange(m))[:, None, None]
