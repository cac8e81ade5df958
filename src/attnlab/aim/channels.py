r"""Output channels: how y depends on the indices, and what y says about them.

==========  ======================================================================================
symbol      meaning
==========  ======================================================================================
omega, V    current mean and variance of the whitened indices: z ~ N(omega, V I), p components
Z           probability (density) of y under that law
g           output function, grad_omega log Z = (E[z | y, omega] - omega) / V
noise       variance added to z before the output; it enters as V -> V + noise
z0          the indices as far as a softmax output fixes them
k           number of linear measurements of z that an output contains (exact channels)
==========  ======================================================================================

A channel is a small immutable object, so that it can be a static argument of a compiled program.
Source: arXiv:2506.01582; the hardmax gradient is derived in the documentation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attnlab.aim.indices import n_pairs, pair_scale, tokens_of, unwhiten, whiten
from attnlab.aim.points import normal_points
from attnlab.common.gaussian import gauss_hermite
from attnlab.common.validation import integer, nonnegative, one_of, positive

if TYPE_CHECKING:
    import jax

ROW_SUM_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Channel:
    """What all channels share; ``noise`` is the variance added to the whitened indices before the output."""

    beta: float = 1.0
    noise: float = 0.0
    name: ClassVar[str] = ""
    shift_invariant: ClassVar[bool] = False  # whether adding one constant to all of h leaves y as it is

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        nonnegative("noise", self.noise)

    @property
    def scale_free(self) -> bool:
        """Whether multiplying h by a positive number leaves y as it is."""
        return False

    def informative(self, tokens: int) -> int | None:
        """k, the number of exact linear measurements per sequence; None when the channel is not of this kind."""
        return None

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """y for indices h of shape (..., T, T)."""
        raise NotImplementedError

    def summary(self, y: np.ndarray, *, log: bool = False) -> np.ndarray:
        """Check outputs (n, T, T) and reduce them to what ``g`` needs, (n, m) in float64."""
        raise NotImplementedError

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array) -> jax.Array:
        """The output function, (n, p)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Softmax(Channel):
    r"""y_ab = exp(beta h_ab) / sum_c exp(beta h_ac).

    y fixes h up to one constant, h = H0 + c 11^T, H0_ab = [log(y_ab/y_aT) + log(y_Ta/y_TT)]/beta: a sequence holds
    k = p - 1 exact linear measurements of z, and

    .. math:: g = -(I - uu^T/\|u\|^2)(\omega - z^0)/(V + noise), \quad u_{ab} = 1/\sqrt{1+\delta_{ab}}, \|u\|^2 = T^2/2.
    """

    name: ClassVar[str] = "softmax"
    shift_invariant: ClassVar[bool] = True

    def informative(self, tokens: int) -> int:
        """p - 1: all but the common constant."""
        return n_pairs(tokens) - 1

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """y for indices h."""
        return np.asarray(np.exp(self.log_output(h)))

    def log_output(self, h: np.ndarray) -> np.ndarray:
        """log y, which stays exact where y underflows."""
        logits = self.beta * (h - h.max(axis=-1, keepdims=True))
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))

    def summary(self, y: np.ndarray, *, log: bool = False) -> np.ndarray:
        """Check outputs and reduce them."""
        if y.shape[-1] < 2:
            raise ValueError("channel 'softmax' needs at least 2 tokens: with one token y = 1 whatever the indices")
        y = np.asarray(y, dtype=np.float64)
        _rows_sum_to_one(np.exp(y) if log else y)
        if not log and (y <= 0).any():
            raise ValueError(
                "y holds zeros: softmax outputs underflowed and the indices cannot be read off; "
                "pass log y (task.sample(..., log=True)) to a learner with log_targets=True"
            )
        logits = y if log else np.log(y)
        h0 = (logits - logits[:, :, -1:] + logits[:, -1, :, None] - logits[:, -1:, -1:]) / self.beta
        return np.asarray(whiten((h0 + h0.swapaxes(1, 2)) / 2))

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array) -> jax.Array:
        """The output function."""
        seen = _visible(tokens_of(omega.shape[-1]))
        result: jax.Array = (summary - omega) @ (seen / (V + self.noise))
        return result


@dataclass(frozen=True)
class Linear(Channel):
    """y = h: all p components are measured. One token with noise is the quadratic network (h_11 has noise 2
    ``noise``).
    """

    name: ClassVar[str] = "linear"

    def informative(self, tokens: int) -> int:
        """p: all of them."""
        return n_pairs(tokens)

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """y for indices h."""
        return h

    def summary(self, y: np.ndarray, *, log: bool = False) -> np.ndarray:
        """Check outputs and reduce them."""
        y = np.asarray(y, dtype=np.float64)
        if not np.allclose(y, y.swapaxes(1, 2), atol=1e-4 * (1 + np.abs(y).max())):
            raise ValueError("y of channel 'linear' must be symmetric matrices, the indices themselves")
        return np.asarray(whiten((y + y.swapaxes(1, 2)) / 2))

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array) -> jax.Array:
        """The output function."""
        return (summary - omega) / (V + self.noise)


@dataclass(frozen=True)
class Hardmax(Channel):
    r"""y_a = one-hot of argmax_b h_ab (beta -> infinity).

    Two tokens, s_i the signs of D_1 = h_11 - h_12 and D_2 = h_22 - h_12, k_i = s_i D_i / sqrt(3V), r = s_1 s_2 / 3:

    .. math:: Z = \Phi_2(k_1, k_2; r), \qquad \partial_{k_1}\Phi_2 = \varphi(k_1)\,\Phi\big((k_2 - r
       k_1)/\sqrt{1-r^2}\big).

    More tokens: Gaussian orthant integration (:mod:`attnlab.aim.orthant`). ``legacy`` puts the bivariate density
    :math:`\varphi_2(k_1, k_2; r)` in the place of the derivative, which reproduces the public curves of 2506.01582.
    """

    legacy: bool = False
    name: ClassVar[str] = "hardmax"
    shift_invariant: ClassVar[bool] = True

    @property
    def scale_free(self) -> bool:
        """Only the noise has a scale."""
        return self.noise == 0

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """y for indices h."""
        return np.asarray(np.eye(h.shape[-1])[h.argmax(axis=-1)])

    def summary(self, y: np.ndarray, *, log: bool = False) -> np.ndarray:
        """Check outputs and reduce them."""
        tokens = y.shape[-1]
        if tokens < 2:
            raise ValueError("channel 'hardmax' needs at least 2 tokens")
        if self.legacy and tokens != 2:
            raise ValueError(f"channel 'hardmax_legacy' exists for 2 tokens, got {tokens}")
        y = np.asarray(y, dtype=np.float64)
        _rows_sum_to_one(y)
        if not np.isin(y, (0.0, 1.0)).all():
            raise ValueError("y of channel 'hardmax' must have one-hot rows")
        return np.asarray(y.argmax(axis=-1), dtype=np.float64)

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array) -> jax.Array:
        """The output function."""
        if tokens_of(omega.shape[-1]) == 2:
            return _hardmax_pair(summary, omega, V + self.noise, self.legacy)
        from attnlab.aim.orthant import posterior_mean

        return (posterior_mean(summary, omega, V + self.noise) - omega) / (V + self.noise)


def _hardmax_pair(winners: jax.Array, omega: jax.Array, V: jax.Array, legacy: bool) -> jax.Array:
    """g for two tokens; Phi_2 as an average over the noise of h_12, which keeps every term positive."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtr

    s = jnp.stack([1 - 2 * winners[:, 0], 2 * winners[:, 1] - 1], axis=-1)
    D = jnp.sqrt(2.0) * omega[:, 0::2] - omega[:, 1:2]
    x, weights = gauss_hermite(32)
    z = s[..., None] * (D[..., None] / jnp.sqrt(V) - x) / np.sqrt(2.0)
    P = jnp.maximum(ndtr(z).prod(axis=1) @ weights, 1e-300)
    k, r = s * D / jnp.sqrt(3 * V), (s[:, 0] * s[:, 1] / 3)[:, None]
    other = k[:, ::-1]
    slope = jnp.exp(-(k**2) / 2) / np.sqrt(2 * np.pi)
    root = jnp.sqrt(1 - r**2)
    if legacy:
        gap = (other - r * k) / root
        a = slope * jnp.exp(-(gap**2) / 2) / np.sqrt(2 * np.pi) / root
    else:
        a = slope * ndtr((other - r * k) / root)
    G = s * a / (P[:, None] * jnp.sqrt(3 * V))
    return jnp.stack([np.sqrt(2.0) * G[:, 0], -G.sum(axis=1), np.sqrt(2.0) * G[:, 1]], axis=-1)


@dataclass(frozen=True)
class UserChannel(Channel):
    """Any channel, given by a sampler and a likelihood; g by importance sampling with common quasi-random points.

    Parameters
    ----------
    forward : ``(h, rng) -> y``, NumPy, h of shape (n, T, T), y of shape (n, T, T).
    log_likelihood : ``(y, h) -> log P(y | h)``, JAX, arrays (..., T, T) to (...).
    points : number of points in the average over z.
    """

    forward: Callable[[np.ndarray, np.random.Generator], np.ndarray] = lambda h, rng: h
    log_likelihood: Callable[[Any, Any], Any] = lambda y, h: 0.0 * h.sum((-1, -2))
    points: int = 512
    name: ClassVar[str] = "user"

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """y for indices h."""
        return np.asarray(self.forward(h, rng if rng is not None else np.random.default_rng(0)))

    def summary(self, y: np.ndarray, *, log: bool = False) -> np.ndarray:
        """Check outputs and reduce them."""
        return np.asarray(y, dtype=np.float64).reshape(len(y), -1)

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array) -> jax.Array:
        """The output function."""
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        p = omega.shape[-1]
        tokens, spread = tokens_of(p), jnp.sqrt(V + self.noise)
        xi = jnp.asarray(normal_points(p, integer("points", self.points, low=1)))
        y = summary.reshape(-1, 1, tokens, tokens)
        weights = self.log_likelihood(y, unwhiten(omega[:, None] + spread * xi, tokens))
        weights = jnp.exp(weights - logsumexp(weights, axis=1, keepdims=True))
        return weights @ xi / spread


CHANNELS: dict[str, Callable[[float, float], Channel]] = {
    "softmax": Softmax,
    "hardmax": Hardmax,
    "linear": Linear,
    "hardmax_legacy": lambda beta, noise: Hardmax(beta, noise, legacy=True),
}


def as_channel(channel: str | Channel, beta: float = 1.0, noise: float = 0.0) -> Channel:
    """A channel by name, with its parameters; a channel object passes through."""
    return channel if isinstance(channel, Channel) else CHANNELS[one_of("channel", channel, CHANNELS)](beta, noise)


def bayes_output(channel: Channel, h: np.ndarray, variance: float, points: int = 256) -> np.ndarray:
    """E y for z ~ N(whiten(h), variance + noise): the Bayes prediction at an estimate with that error.  Status:
    asymptotic.
    """
    tokens = h.shape[-1]
    spread = np.sqrt(variance + channel.noise)
    rng = np.random.default_rng(0)
    draws = unwhiten(normal_points(n_pairs(tokens), points), tokens)
    return np.asarray(sum(channel.output(h + spread * draw, rng) for draw in draws) / points)


@functools.lru_cache(maxsize=16)
def _visible(tokens: int) -> np.ndarray:
    """I - uu^T/|u|^2: the projection on what softmax rows show of z, (p, p)."""
    u = np.sqrt(2.0) / tokens / pair_scale(tokens)
    return np.eye(len(u)) - np.outer(u, u)


def _rows_sum_to_one(y: np.ndarray) -> None:
    worst = np.abs(y.sum(axis=-1) - 1).max()
    if worst > ROW_SUM_TOLERANCE:
        raise ValueError(f"the rows of y must sum to one, the worst is off by {worst:.3g}")
