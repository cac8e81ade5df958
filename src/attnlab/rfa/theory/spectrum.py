r"""Spectra of the attention kernel and of the MLP kernel for tokens uniform on the sphere, by class of features.

==========  ===========================================================================================
symbol      meaning
==========  ===========================================================================================
u, v        <x_0, x_0'> and <x_i, x_j'>
kappa(u,v)  pair kernel (1 + v) k0((1+u)(1+v)/4)
lam_ab      E[kappa P_a(u) P_b(v)]; the full model's eigenvalue is lam_ab / N (b >= 1) or lam_a0
dim_l       dimension of the harmonics of degree l
class       a head has D = d + 1 features: one with the constant coordinate of the key, which has the part k0 of the
            pair kernel, and d with the others, which have the part v k0; a unit of the MLP is a class of its own
==========  ===========================================================================================
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from attnlab.common.validation import integer, one_of
from attnlab.rfa.series import relu_coefficients
from attnlab.rfa.sphere import half_angle_moments, harmonic_dimension, power_moments

MODELS = ("rfa", "rfmlp")
# Highest degree of a listed mode: of query and key each for attention, in all for the MLP. In few dimensions the
# eigenvalues fall more slowly with the degree than multiplicities grow.
DEGREES = {"rfa": 10, "rfmlp": 4}
SMALL_D, SMALL_DEGREES = 8, {"rfa": 20, "rfmlp": 8}
MLP_TERMS = 120


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the kernel operator with multiplicities, largest first.

    Attributes
    ----------
    degrees : label of each eigenspace: (a, b) for attention, the non-zero token degrees for the MLP.
    multiplicity : dimension of each eigenspace.
    parts : (classes, labels), the share of each class of features in the eigenvalues.
    counts : number of features of each class in one head or unit.
    traces : E K(x, x) of each class.
    """

    degrees: tuple[tuple[int, ...], ...]
    multiplicity: np.ndarray
    parts: np.ndarray
    counts: np.ndarray
    traces: np.ndarray

    @property
    def trace(self) -> float:
        """E K(x, x)."""
        return float(self.traces.sum())

    @property
    def eigenvalue(self) -> np.ndarray:
        """Eigenvalues of the kernel of infinitely many heads, one per label."""
        return np.asarray(self.parts.sum(axis=0))

    @property
    def tails(self) -> np.ndarray:
        """Trace of the eigenvalues that are not listed, by class."""
        # Where the list is complete the difference is rounding, of either sign.
        return np.asarray(np.maximum(self.traces - self.parts @ self.multiplicity, 0.0))

    @property
    def tail(self) -> float:
        """Trace of the eigenvalues that are not listed."""
        return float(self.tails.sum())

    @property
    def resolved(self) -> bool:
        """Whether the listed eigenvalues have no more than the whole trace, to rounding."""
        return bool(np.all(self.parts @ self.multiplicity <= self.traces * (1 + 1e-9)))

    def up_to(self, degree: int) -> Spectrum:
        """Without the modes of higher degree (of a token for attention, in all for the MLP)."""
        size = max if len(self.counts) > 1 else sum
        keep = np.array([size(label or (0,)) <= degree for label in self.degrees])
        labels = tuple(itertools.compress(self.degrees, keep))
        return replace(self, degrees=labels, multiplicity=self.multiplicity[keep], parts=self.parts[:, keep])

    def with_tail(self) -> Spectrum:
        """The tail as one more mode, of vanishing eigenvalue and diverging multiplicity."""
        # Far below every nu, so that only the product of the two, the trace of the tail, matters.
        small = 1e-30
        return replace(
            self,
            degrees=(*self.degrees, ()),
            multiplicity=np.append(self.multiplicity, 1 / small),
            parts=np.column_stack([self.parts, small * self.tails]),
        )


def pair_eigenvalue(a: int, b: int, d: int) -> float:
    r""":math:`\lambda_{ab} = \mathbb{E}_{u,v}[\kappa(u,v) P_a(u) P_b(v)]`.

    .. math:: \lambda_{ab} = \sum_k c_k^2\, \alpha_{ak} \Big(\alpha_{bk}
              + \frac{(b+d-2)\,\alpha_{b+1,k} + b\,\alpha_{b-1,k}}{2b+d-2}\Big),
              \qquad \alpha_{lk} = \mathbb{E}\Big[\big(\tfrac{1+t}2\big)^k P_l(t)\Big]

    Every term is positive, so the relative accuracy is that of a product at every dimension.

    Source: derived here from the power series of k0 and the recursion for v P_b.  Status: exact.

    >>> round(pair_eigenvalue(0, 1, d=16), 5)
    0.01882
    """
    a, b, d = integer("a", a, low=0), integer("b", b, low=0), integer("d", d, low=2)
    # At least the default degree: one cached table serves the spectrum and its single entries.
    return float(pair_parts(d, max(a, b, default_degree("rfa", d)))[:, a, b].sum())


def _coefficients(d: int) -> np.ndarray:
    """c_k^2 as far as needed: alpha_lk falls as k^{-(d-1)/2}, so few terms in high dimension, many on the circle."""
    return relu_coefficients(20_000 if d < SMALL_D else 400)


@functools.lru_cache(maxsize=64)
def pair_parts(d: int, degree: int) -> np.ndarray:
    """lam_ab of the constant class and of the key class, ``(2, degree + 1, degree + 1)``."""
    c = _coefficients(d)
    alpha = half_angle_moments(degree + 1, d, len(c))
    b = np.arange(degree + 1)[:, None]
    below = np.concatenate([np.zeros((1, len(c))), alpha[:degree]])
    # max(., 1): on the circle 2b + d - 2 and b + d - 2 vanish at b = 0, where v P_0 = P_1.
    times_v = (np.maximum(b + d - 2, 1) * alpha[1:] + b * below) / np.maximum(2 * b + d - 2, 1)
    table = np.stack([(alpha[:-1] * c) @ alpha[:-1].T, (alpha[:-1] * c) @ times_v.T])
    table.flags.writeable = False
    return table


def mlp_eigenvalue(degrees: tuple[int, ...], d: int, n_keys: int) -> float:
    r"""Eigenvalue of the MLP kernel on products of harmonics, one degree per token (zeros may be left out).

    .. math:: \lambda = \sum_k c_k^2\, (N+2)^{-k}\, k!\, [z^k]\; e^z \prod_i A_{b_i}(z),
              \qquad A_b(z) = \mathbb{E}[e^{zu} P_b(u)]

    All N + 1 tokens play the same part.  Source: derived here.  Status: exact.
    """
    nonzero = tuple(sorted((integer("degrees", b, low=0) for b in degrees if b), reverse=True))
    if len(nonzero) > n_keys + 1:
        raise ValueError(f"degrees must have at most {n_keys + 1} non-zero entries, got {degrees}")
    return _mlp_eigenvalue(nonzero, integer("d", d, low=2), integer("n_keys", n_keys, low=1))


@functools.lru_cache(maxsize=4096)
def _mlp_eigenvalue(degrees: tuple[int, ...], d: int, n_keys: int) -> float:
    """Moments E[((1 + sum u_i)/(N+2))^k prod P_b(u_i)] by multiplying exponential generating functions."""
    series = _others(d, n_keys, n_keys + 1 - len(degrees))
    for b in degrees:
        series = np.convolve(series, _generating(b, d, n_keys))[:MLP_TERMS]
    k = np.arange(MLP_TERMS)
    return float(np.sum(relu_coefficients(MLP_TERMS - 1) * np.exp(special.gammaln(k + 1)) * series))


def _scale(n_keys: int) -> np.ndarray:
    k = np.arange(MLP_TERMS)
    # By logarithms: with many keys (N + 2)^k k! overflows within the terms that are kept.
    return np.asarray(np.exp(-k * np.log(n_keys + 2) - special.gammaln(k + 1)))


@functools.lru_cache(maxsize=512)
def _generating(b: int, d: int, n_keys: int) -> np.ndarray:
    """Coefficients of A_b(z / (N+2))."""
    return np.asarray(_scale(n_keys) * power_moments(np.arange(MLP_TERMS), b, d))


@functools.lru_cache(maxsize=512)
def _others(d: int, n_keys: int, count: int) -> np.ndarray:
    """e^z times the factor A_0 of the tokens of degree zero."""
    return np.convolve(_scale(n_keys), _series_power(_generating(0, d, n_keys), count))[:MLP_TERMS]


def _series_power(series: np.ndarray, power: int) -> np.ndarray:
    """Power of a truncated series by repeated squaring."""
    result = np.zeros_like(series)
    result[0] = 1.0
    while power:
        if power & 1:
            result = np.convolve(result, series)[: len(series)]
        series = np.convolve(series, series)[: len(series)]
        power >>= 1
    return result


def mode_parts(a: int, b: int, d: int, n_keys: int, model: str) -> np.ndarray:
    """Eigenvalue of the full model on averages over keys of harmonics of degree (a, b), by class of features.

    Source: derived here.  Status: exact.
    """
    if model == "rfa":
        return np.asarray(pair_parts(d, max(a, b, default_degree(model, d)))[:, a, b] / (n_keys if b else 1))
    return np.array([mlp_eigenvalue((a, b), d, n_keys)])


def mode_eigenvalue(a: int, b: int, d: int, n_keys: int, model: str) -> float:
    """Eigenvalue of the full model on averages over keys of harmonics of degree a in the query, b in the key.

    Source: derived here.  Status: exact.
    """
    return float(mode_parts(a, b, d, n_keys, model).sum())


def default_degree(model: str, d: int) -> int:
    """The degree up to which modes are listed."""
    return (SMALL_DEGREES if d < SMALL_D else DEGREES)[model]


def spectrum(d: int, n_keys: int, model: str = "rfa", *, degree: int | None = None) -> Spectrum:
    r"""Eigenvalues of the infinitely wide model and of its classes of features, with the tail's trace.

    ``rfa``: all degrees (a, b) up to ``degree``. ``rfmlp``: all ways to spread a total degree up to ``degree`` over the
    tokens.

    Source: derived here.  Status: exact.

    >>> [ab for ab in spectrum(16, 16).degrees[:6]]
    [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    """
    d, n_keys = integer("d", d, low=2), integer("n_keys", n_keys, low=1)
    one_of("model", model, MODELS)
    return _spectrum(d, n_keys, model, default_degree(model, d) if degree is None else integer("degree", degree, low=0))


@functools.lru_cache(maxsize=256)
def _spectrum(d: int, n_keys: int, model: str, degree: int) -> Spectrum:
    modes = _attention_modes(d, n_keys, degree) if model == "rfa" else _mlp_modes(d, n_keys, degree)
    modes.sort(key=lambda mode: -float(mode[1].sum()))
    labels, parts, multiplicity = zip(*modes, strict=True)
    # A unit of the MLP has E relu(g)^2 = 1/2; a head has one feature of the constant coordinate and d of the others.
    traces = attention_traces(d, n_keys) if model == "rfa" else np.array([0.5])
    counts = np.array([1.0, d]) if model == "rfa" else np.array([1.0])
    return Spectrum(labels, np.array(multiplicity), np.stack(parts, axis=1), counts, traces)


def attention_trace(d: int, n_keys: int) -> float:
    r"""E K(x, x) of unbiased attention: :math:`\tfrac1N + (1 - \tfrac1N)\,\mathbb{E}_v[(1+v) k_0((1+v)/2)]`.

    Source: derived here.  Status: exact on the sphere.

    >>> round(attention_trace(16, 16), 4)
    0.3591
    """
    return float(attention_traces(integer("d", d, low=2), integer("n_keys", n_keys, low=1)).sum())


def attention_traces(d: int, n_keys: int) -> np.ndarray:
    """The two terms of :func:`attention_trace`: of the constant class, with k0, and of the key class, with v k0."""
    c = _coefficients(d)
    across = half_angle_moments(1, d, len(c)) @ c
    # i = j has v = 1 and k0(1) = 1/2 in both classes; pairs i != j have u = 1 and an independent v.
    return np.asarray(0.5 / n_keys + (1 - 1 / n_keys) * across)


Mode = tuple[tuple[int, ...], np.ndarray, float]


def _attention_modes(d: int, n_keys: int, degree: int) -> list[Mode]:
    dims = [float(harmonic_dimension(l, d)) for l in range(degree + 1)]
    pairs = itertools.product(range(degree + 1), repeat=2)
    return [((a, b), mode_parts(a, b, d, n_keys, "rfa"), dims[a] * dims[b]) for a, b in pairs]


def _partitions(total: int, largest: int) -> list[tuple[int, ...]]:
    if total == 0:
        return [()]
    return [(first, *rest) for first in range(min(total, largest), 0, -1) for rest in _partitions(total - first, first)]


def _mlp_modes(d: int, n_keys: int, degree: int) -> list[Mode]:
    """One eigenspace per multiset of token degrees; its multiplicity counts the tokens that carry them."""
    modes: list[Mode] = []
    for total in range(degree + 1):
        for part in _partitions(total, total):
            if len(part) > n_keys + 1:
                continue
            # Choices of tokens in order, over the orders of tokens of equal degree.
            places = special.comb(n_keys + 1, len(part)) * special.factorial(len(part))
            for repeats in Counter(part).values():
                places /= special.factorial(repeats)
            dims = np.prod([float(harmonic_dimension(b, d)) for b in part])
            modes.append((part, np.array([mlp_eigenvalue(part, d, n_keys)]), float(places * dims)))
    return modes
