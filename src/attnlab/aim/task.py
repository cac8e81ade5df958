"""The attention-indexed model: Gaussian tokens, a planted attention matrix, an output channel."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnlab.aim.channels import Channel, Softmax, as_channel
from attnlab.aim.indices import indices, n_pairs, unwhiten
from attnlab.aim.spectrum import check_rho
from attnlab.aim.stream import TokenStream
from attnlab.common.seeds import Seed, generator, spawn
from attnlab.common.validation import integer, nonnegative, positive


@dataclass(frozen=True)
class Task:
    r"""Sequences of T Gaussian tokens and y = g(h), :math:`h_{ab} = (x_a^T S x_b - \delta_{ab}\mathrm{Tr}S)/\sqrt d`
    (arXiv:2506.01582).

    Parameters
    ----------
    d, tokens : embedding dimension and number of tokens T.
    rho : width r/d; S = W W^T / sqrt(r d) with W of shape (d, r), r = round(rho d), standard normal. ``inf``: S is a
        GOE matrix of variance 1/d (the centred Gaussian prior).
    channel : ``softmax``, ``hardmax``, ``linear`` or a :class:`~attnlab.aim.channels.Channel` of your own.
    beta : inverse temperature of the softmax.
    noise : variance of the Gaussian noise added to the whitened indices h_ab / sqrt(1 + delta_ab) before the output.
    seed : of the planted S.

    >>> X, y = Task(d=20, seed=1).sample(5)
    >>> X.shape, y.shape
    ((5, 2, 20), (5, 2, 2))
    """

    d: int
    tokens: int = 2
    rho: float = 0.5
    channel: str | Channel = "softmax"
    beta: float = 1.0
    noise: float = 0.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        integer("d", self.d, low=2)
        integer("tokens", self.tokens, low=1)
        check_rho(self.rho)
        positive("beta", self.beta)
        nonnegative("noise", self.noise)
        as_channel(self.channel, self.beta, self.noise)
        if not np.isinf(self.rho) and self.width < 1:
            raise ValueError(f"rho must give a width round(rho d) of at least 1, got rho={self.rho} at d={self.d}")

    @property
    def width(self) -> int:
        """r = round(rho d); d for the centred prior, which has full rank."""
        return self.d if np.isinf(self.rho) else round(self.rho * self.d)

    @property
    def law(self) -> Channel:
        """The output channel as an object."""
        return as_channel(self.channel, self.beta, self.noise)

    @functools.cached_property
    def S(self) -> Float[np.ndarray, "d d"]:
        """The planted attention matrix."""
        return planted(self.d, self.rho, self.seed)

    def n_samples(self, alpha: float) -> int:
        """n = round(alpha d^2), at least one sequence."""
        n = round(positive("alpha", alpha) * self.d**2)
        if n < 1:
            raise ValueError(f"alpha must give at least one sequence, got alpha={alpha} at d={self.d}")
        return n

    def indices(self, X: Float[np.ndarray, "n tokens d"], seed: Seed = 0) -> Float[np.ndarray, "n tokens tokens"]:
        """h of given sequences; the pre-activation noise, if any, is drawn from ``seed``."""
        h = indices(X, self.S)
        if not self.noise:
            return h
        xi = generator(seed).standard_normal((len(X), n_pairs(self.tokens)))
        return np.asarray(h + np.sqrt(self.noise) * unwhiten(xi, self.tokens))

    def sample(
        self, n: int, seed: Seed = 0, *, log: bool = False
    ) -> tuple[Float[np.ndarray, "n tokens d"], Float[np.ndarray, "n tokens tokens"]]:
        """Draw n sequences and their outputs; with ``log`` the second is log y (softmax), exact where y underflows."""
        n = integer("n", n, low=1)
        for_tokens, for_noise, for_output = spawn(seed, 3)
        X = generator(for_tokens).standard_normal((n, self.tokens, self.d))
        return X, self.outputs(self.indices(X, for_noise), for_output, log=log)

    def outputs(self, h: np.ndarray, seed: Seed = 0, *, log: bool = False) -> np.ndarray:
        """y for given indices, or log y."""
        if not log:
            return self.law.output(h, generator(seed))
        if not isinstance(self.law, Softmax):
            raise ValueError(f"log outputs exist for channel 'softmax' only, got {self.law.name!r}")
        return self.law.log_output(h)

    def stream(
        self, n: int, seed: int = 0, *, chunk: int | None = None, log: bool = False
    ) -> tuple[TokenStream, Float[np.ndarray, "n tokens tokens"]]:
        """Like ``sample``, with tokens that are never stored: each chunk is regenerated from a counter-based key when
        needed.
        """
        stream = TokenStream(n, self.tokens, self.d, seed, chunk)
        z = stream.whitened_indices(self.S, differences=self.law.shift_invariant)
        for_noise, for_output = spawn(seed, 2)
        if self.noise:
            z = z + np.sqrt(self.noise) * generator(for_noise).standard_normal(z.shape)
        return stream, self.outputs(unwhiten(z, self.tokens), for_output, log=log)


def planted(d: int, rho: float, seed: Seed) -> np.ndarray:
    """A draw from the prior: Wishart of width round(rho d), or GOE for rho = infinity."""
    rng = generator(seed)
    if np.isinf(rho):
        gaussian = rng.standard_normal((d, d))
        return np.asarray((gaussian + gaussian.T) / np.sqrt(2 * d))
    width = round(rho * d)
    W = rng.standard_normal((d, width))
    return np.asarray(W @ W.T / np.sqrt(width * d))
