"""The attention-indexed model: Gaussian tokens, a planted attention matrix, an output channel."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float

from attnlab.aim.channels import Channel, OfChannel, as_channel
from attnlab.aim.indices import Layout, Mask
from attnlab.aim.spectrum import check_rho, singular, tied
from attnlab.aim.token_stream import TokenStream
from attnlab.common.seeds import Seed, seed_sequence, stream
from attnlab.common.validation import integer, positive


@dataclass(frozen=True)
class Task:
    r"""Sequences of T Gaussian tokens; the output is a function of their attention scores (arXiv:2506.01582).

    .. math:: y = g(h), \qquad h_{ab} = (x_a^T S x_b - \delta_{ab}\mathrm{Tr}S)/\sqrt d

    Parameters
    ----------
    d, tokens : embedding dimension and number of tokens T; (queries, keys) for cross-attention, queries first in X.
    rho : width r/d. Tied: S = W W^T / sqrt(r d) with W of shape (d, r), r = round(rho d), standard normal; untied:
        S = Q K^T / sqrt(r d). ``inf``: S Gaussian of variance 1/d (symmetric if tied).
    channel : a :class:`~attnlab.aim.channels.channel.Channel`, or ``softmax``, ``hardmax``, ``linear``.
    beta, noise : parameters of a channel given by name: inverse temperature of the softmax, and variance of the
        Gaussian noise on the whitened indices h_ab / sqrt(1 + delta_ab) (untied: h_ab) before the output.
    tied : one matrix for query and key.
    attention : ``self``, or ``cross`` between two sets of tokens (untied).
    mask : ``full``, ``causal`` (row a sees b <= a), or booleans (queries, keys).
    seed : of the planted S.

    >>> X, y = Task(d=20, seed=1).sample(5)
    >>> X.shape, y.shape
    ((5, 2, 20), (5, 2, 2))
    """

    d: int
    tokens: int | tuple[int, int] = 2
    rho: float = 0.5
    channel: str | Channel = "softmax"
    beta: float | None = None
    noise: float | None = None
    seed: Seed = 0
    tied: bool = True
    attention: str = "self"
    mask: str | Iterable[Any] = "full"

    def __post_init__(self) -> None:
        integer("d", self.d, low=2)
        check_rho(self.rho)
        layout = Layout.of(self.tokens, self.tied, self.attention, self.mask)
        given = {name: getattr(self, name) for name in ("beta", "noise")}
        channel = as_channel(self.channel, **given)
        channel.check(layout)
        if not np.isinf(self.rho) and self.width < 1:
            raise ValueError(f"rho must give a width round(rho d) of at least 1, got rho={self.rho} at d={self.d}")
        # The fields show what the channel has; marked, so that dataclasses.replace can give both back.
        owned = {name: None if (value := getattr(channel, name, None)) is None else OfChannel(value) for name in given}
        mask: Mask = layout.mask
        for name, value in {"channel": channel, "mask": mask, **owned}.items():
            object.__setattr__(self, name, value)

    @property
    def width(self) -> int:
        """r = round(rho d); d for the centred prior, which has full rank."""
        return self.d if np.isinf(self.rho) else round(self.rho * self.d)

    @property
    def law(self) -> Channel:
        """The output channel."""
        return as_channel(self.channel)

    @functools.cached_property
    def layout(self) -> Layout:
        """Which queries meet which keys."""
        return Layout.of(self.tokens, self.tied, self.attention, self.mask)

    @property
    def prior(self) -> ModuleType:
        """The spectrum of the planted matrix in noise."""
        return tied if self.tied else singular

    @functools.cached_property
    def S(self) -> Float[np.ndarray, "d d"]:
        """The planted attention matrix; Theta where query and key are untied."""
        S: np.ndarray = self.prior.planted(self.d, self.rho, self.seed)
        return S

    def n_samples(self, alpha: float) -> int:
        """n = round(alpha d^2), at least one sequence."""
        n = round(positive("alpha", alpha) * self.d**2)
        if n < 1:
            raise ValueError(f"alpha must give at least one sequence, got alpha={alpha} at d={self.d}")
        return n

    def indices(self, X: Float[np.ndarray, "n tokens d"], seed: Seed = 0) -> Float[np.ndarray, "n queries keys"]:
        """h of given sequences; the pre-activation noise, if any, is drawn from ``seed``."""
        return self._noisy(self.layout.indices(X, self.S), seed)

    def _noisy(self, h: np.ndarray, seed: Seed) -> np.ndarray:
        if not self.law.noise:
            return h
        xi = stream(seed, "data", "aim", "noise").standard_normal((len(h), self.layout.p))
        # Drawn for the whitened components: the noise of a tied h is symmetric like h, with twice the variance on the
        # diagonal.
        return np.asarray(h + np.sqrt(self.law.noise) * self.layout.unwhiten(xi))

    def sample(
        self, n: int, seed: Seed = 0, *, log: bool = False
    ) -> tuple[Float[np.ndarray, "n tokens d"], Float[np.ndarray, "n queries keys"]]:
        """Draw n sequences and their outputs; with ``log`` the second is log y (softmax), exact where y underflows."""
        root = seed_sequence(seed)  # a generator is advanced once
        X = stream(root, "data", "aim", "tokens").standard_normal((integer("n", n, low=1), self.layout.tokens, self.d))
        # One seed for all three: the tags of the streams keep tokens, noise and random outputs independent.
        return X, self.outputs(self.indices(X, root), root, log=log)

    def outputs(self, h: np.ndarray, seed: Seed = 0, *, log: bool = False) -> np.ndarray:
        """y for given indices, or log y."""
        if log:
            return self.law.log_output(h, self.layout.visible)
        return self.law.output(h, stream(seed, "data", "aim", "output"), self.layout.visible)

    def stream(
        self, n: int, seed: int = 0, *, chunk: int | None = None, log: bool = False
    ) -> tuple[TokenStream, Float[np.ndarray, "n queries keys"]]:
        """Like ``sample``, with tokens that are never stored: each chunk is regenerated from a counter-based key when
        needed.
        """
        tokens = TokenStream(n, self.layout.tokens, self.d, seed, chunk)
        # Outputs that do not see a constant in each row need the indices up to it only: one product with S less.
        z = tokens.whitened_indices(self.S, self.layout, differences=self.law.shift_invariant)
        return tokens, self.outputs(self._noisy(self.layout.unwhiten(z), seed), seed, log=log)
