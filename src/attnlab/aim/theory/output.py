r"""How much an output channel tells: E|g|^2, the one number of the channel that enters the state evolution.

==========  =====================================================================================
symbol      meaning
==========  =====================================================================================
q, V        overlap and error: omega ~ N(0, q I), z ~ N(omega, V I), p components
g           grad_omega log Z(y | omega, V)
tau         V / (q + V)
s(tau)      V E|g|^2; for hardmax a function of tau alone, because hardmax ignores the scale of h
k           number of exact linear measurements (softmax: p - 1, linear: p)
==========  =====================================================================================
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import BarycentricInterpolator
from scipy.special import ndtr

from attnlab.aim.channels import Channel, Hardmax, as_channel
from attnlab.aim.indices import n_pairs, unwhiten
from attnlab.aim.points import normal_points, uniform_points
from attnlab.common.arrays import ArrayLike
from attnlab.common.gaussian import (
    bivariate_normal_cdf,
    bivariate_normal_pdf,
    gauss_hermite,
    gauss_legendre,
    normal_pdf,
)
from attnlab.common.validation import integer

REACH = 9.0  # Gaussian tails beyond this many standard deviations are below 1e-18
CORRELATIONS = (1 / 3, -1 / 3)
SAMPLES = 4096


def channel_strength(
    q: ArrayLike, V: ArrayLike, tokens: int = 2, channel: str | Channel = "softmax", noise: float = 0.0
) -> np.ndarray | float:
    r""":math:`\mathbb{E}\|g\|^2` of the output channel; broadcasts over q >= 0 and V > 0.

    softmax: k / (V + noise) with k = (T^2 + T - 2)/2; linear: k = T (T + 1)/2; hardmax: s(tau)/(V + noise).

    Source: arXiv:2506.01582; hardmax derived here.  Status: exact (softmax, linear, hardmax with 2 tokens);
    Monte Carlo to a few percent (hardmax with more tokens, user channels).

    >>> round(channel_strength(0.5, 1.0, channel="hardmax"), 6)
    1.058484
    """
    law = as_channel(channel, noise=noise)
    tokens = check_tokens_for(law, tokens)
    q, V = np.broadcast_arrays(np.asarray(q, dtype=float), np.asarray(V, dtype=float))
    if not ((q >= 0).all() and (V + law.noise > 0).all()):
        raise ValueError(f"q must be >= 0 and V > 0, got q={q!r}, V={V!r}")
    spread = V + law.noise
    k = law.informative(tokens)
    if k is not None:
        strength = k / spread
    elif isinstance(law, Hardmax):
        strength = hardmax_scale(tokens, law.legacy)(spread / (q + spread)) / spread
    else:
        strength = np.vectorize(lambda a, b: _sampled_strength(law, a, b, tokens))(q, V)
    return float(strength) if np.ndim(strength) == 0 else np.asarray(strength)


def check_tokens_for(channel: Channel, tokens: int) -> int:
    """Refuse channels that say nothing at this number of tokens."""
    tokens = integer("tokens", tokens, low=1)
    if channel.informative(tokens) == 0 or (isinstance(channel, Hardmax) and tokens < 2):
        raise ValueError(f"channel {channel.name!r} needs at least 2 tokens, got {tokens}")
    if isinstance(channel, Hardmax) and channel.legacy and tokens != 2:
        raise ValueError(f"channel 'hardmax_legacy' exists for 2 tokens, got {tokens}")
    return tokens


@functools.lru_cache(maxsize=16)
def hardmax_scale(tokens: int, legacy: bool = False) -> Callable[[Any], np.ndarray]:
    r"""s(tau) as a polynomial in sqrt(tau): s / sqrt(tau) is smooth and is sampled at Chebyshev nodes once.

    Source: derived here.  Status: exact to 1e-9 (2 tokens), Monte Carlo to a few percent (more).
    """
    nodes = 48 if tokens == 2 else 8
    root_tau = (1 - np.cos((np.arange(nodes) + 0.5) * np.pi / nodes)) / 2
    exact = _pair_scale_function(legacy) if tokens == 2 else _sampled_scale_function(tokens)
    smooth = BarycentricInterpolator(root_tau, [exact(float(t) ** 2) / t for t in root_tau])

    def scale(tau: Any) -> np.ndarray:
        root = np.sqrt(np.asarray(tau, dtype=float))
        return np.asarray(root * smooth(root))

    return scale


def _pair_scale_function(legacy: bool) -> Callable[[float], float]:
    r"""Two tokens: s = 4 sum_{r = ±1/3} E[(a_1^2 + r a_1 a_2)/P], k ~ N(0, c [[1, r], [r, 1]]), c = q/V = 1/tau - 1.

    a_1 is the derivative of P = Phi_2(k_1, k_2; r), or the bivariate density (legacy). For large c the integrand
    lives where one of the k is of order one; beyond k_2 = 9 it depends on k_1 only and the rest is a Gaussian tail.
    """
    x, w = gauss_legendre(96)
    x, w = REACH * (2 * x - 1), 2 * REACH * w
    k1, k2 = x[:, None], x[None, :]
    grids = {r: pair_information(k1, k2, r, legacy) for r in CORRELATIONS}
    tail = {r: 0.0 if legacy else normal_pdf(x) ** 2 / ndtr(x) for r in CORRELATIONS}
    nodes, weights = gauss_hermite(64)

    def wide(c: float) -> float:
        total = 0.0
        for r in CORRELATIONS:
            law = bivariate_normal_pdf(k1 / np.sqrt(c), k2 / np.sqrt(c), r) / c
            above = ndtr(-(REACH - r * x) / np.sqrt(c * (1 - r**2))) * normal_pdf(x / np.sqrt(c)) / np.sqrt(c)
            total += float(w @ (law * grids[r]) @ w + w @ (above * tail[r]))
        return 4 * total

    def narrow(c: float) -> float:
        total = 0.0
        for r in CORRELATIONS:
            first, second = nodes[:, None], r * nodes[:, None] + np.sqrt(1 - r**2) * nodes[None, :]
            values = pair_information(np.sqrt(c) * first, np.sqrt(c) * second, r, legacy)
            total += float(weights @ values @ weights)
        return 4 * total

    return lambda tau: wide(1 / tau - 1) if tau < 0.4 else narrow(1 / tau - 1)


def pair_information(k1: np.ndarray, k2: np.ndarray, r: float, legacy: bool) -> np.ndarray:
    """(a_1^2 + r a_1 a_2) / P, zero where P is below rounding.  Status: exact."""
    P = bivariate_normal_cdf(k1, k2, r)
    if legacy:
        a1 = a2 = bivariate_normal_pdf(k1, k2, r)
    else:
        root = np.sqrt(1 - r**2)
        a1, a2 = normal_pdf(k1) * ndtr((k2 - r * k1) / root), normal_pdf(k2) * ndtr((k1 - r * k2) / root)
    safe = P > 1e-13
    return np.asarray(np.where(safe, (a1**2 + r * a1 * a2) / np.where(safe, P, 1.0), 0.0))


def _sampled_scale_function(tokens: int) -> Callable[[float], float]:
    """More tokens: average over omega and winners; two independent sets of points make the square unbiased."""
    import jax

    from attnlab.aim import orthant

    p, dimension = n_pairs(tokens), tokens * (tokens - 1) // 2
    normals = normal_points(2 * p, SAMPLES)
    points = [uniform_points(dimension, 64, seed) for seed in (1, 2)]
    mean = jax.jit(lambda winners, omega, V, U: orthant.weighted_mean(winners, omega, V, U)[1])

    def scale(tau: float) -> float:
        omega = np.sqrt(1 - tau) * normals[:, :p]
        winners = unwhiten(omega + np.sqrt(tau) * normals[:, p:], tokens).argmax(axis=-1)
        with jax.enable_x64(True):
            first, second = (np.asarray(mean(winners, omega, tau, U)) - omega for U in points)
        return float((first * second).sum(axis=1).mean() / tau)

    return scale


def _sampled_strength(channel: Channel, q: float, V: float, tokens: int) -> float:
    """E|g|^2 of a channel given by its functions, by quasi-Monte Carlo over (omega, z) with the channel's own g."""
    import jax

    p = n_pairs(tokens)
    normals = normal_points(2 * p, SAMPLES)
    omega = np.sqrt(q) * normals[:, :p]
    z = omega + np.sqrt(V + channel.noise) * normals[:, p:]
    y = channel.output(unwhiten(z, tokens), np.random.default_rng(0))
    with jax.enable_x64(True):
        g = np.asarray(channel.g(jax.numpy.asarray(channel.summary(y)), jax.numpy.asarray(omega), jax.numpy.asarray(V)))
    return float((g**2).sum(axis=1).mean())


def uninformed_strength(tokens: int, channel: Channel) -> float:
    r"""E|g|^2 at q = 0, V = 1: the sum over outputs of Pr(y) |E[z | y]|^2, by enumeration for hardmax.

    Source: derived here.  Status: exact (softmax, linear, 2 tokens); quasi-Monte Carlo to 1e-4 (hardmax, more tokens).
    """
    if not isinstance(channel, Hardmax) or tokens == 2 or channel.noise:
        return float(channel_strength(0.0, 1.0, tokens, channel))
    import jax

    from attnlab.aim import orthant

    winners, copies = _patterns(tokens)
    points = uniform_points(tokens * (tokens - 1) // 2, 4096)
    with jax.enable_x64(True):
        log_p, mean = jax.jit(orthant.weighted_mean)(winners, np.zeros((len(winners), n_pairs(tokens))), 1.0, points)
    return float(copies @ (np.exp(log_p) * (np.asarray(mean) ** 2).sum(axis=1)))


def _patterns(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """One pattern of winners from each class under relabelling of the tokens, and the sizes of the classes."""
    from attnlab.aim import orthant

    less = orthant.orders(tokens)
    possible = ~less[:, range(less.shape[1]), range(less.shape[1])].any(axis=1)
    winners = np.array(list(np.ndindex(*(tokens,) * tokens)))[possible]
    relabelled = [np.argsort(t)[winners[:, t]] for t in map(np.array, itertools.permutations(range(tokens)))]
    codes = np.min([r @ tokens ** np.arange(tokens) for r in relabelled], axis=0)
    _, first, copies = np.unique(codes, return_index=True, return_counts=True)
    return winners[first], copies
