r"""Spectra of the attention kernel and of the MLP kernel for tokens uniform on the sphere.

==========  ===========================================================================================
symbol      meaning
==========  ===========================================================================================
u, v        <x_0, x_0'> and <x_i, x_j'>
kappa(u,v)  pair kernel (1 + v) k0((1+u)(1+v)/4)
lam_ab      E[kappa P_a(u) P_b(v)]; the full model's eigenvalue is lam_ab / N (b >= 1) or lam_a0
dim_l       dimension of the harmonics of degree l
==========  ===========================================================================================
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy import special

from attnlab.common.validation import integer, one_of
from attnlab.rfa.series import relu_coefficients, relu_covariance
from attnlab.rfa.sphere import gegenbauer, harmonic_dimension, inner_product_law

DEGREE = 10
TERMS = 120


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the kernel operator with multiplicities, largest first.

    Attributes
    ----------
    degrees : label of each eigenspace: (a, b) for attention, the non-zero token degrees for the MLP.
    eigenvalue, multiplicity : one per label.
    trace : E K(x, x);  tail : the part of it that the listed eigenvalues leave out.
    """

    degrees: tuple[tuple[int, ...], ...]
    eigenvalue: np.ndarray
    multiplicity: np.ndarray
    trace: float

    @property
    def tail(self) -> float:
        """Trace of the eigenvalues that are not listed."""
        return max(self.trace - float(self.eigenvalue @ self.multiplicity), 0.0)


def pair_eigenvalue(a: int, b: int, d: int) -> float:
    r""":math:`\lambda_{ab} = \mathbb{E}_{u,v}[\kappa(u,v) P_a(u) P_b(v)]` by Gauss-Jacobi quadrature.

    Source: derived here.  Status: exact.

    >>> round(pair_eigenvalue(0, 1, d=16), 5)
    0.01882
    """
    a, b = integer("a", a, low=0), integer("b", b, low=0)
    if max(a, b) > DEGREE:
        return float(_pair_eigenvalues(integer("d", d, low=2), max(a, b))[a, b])
    return float(_pair_eigenvalues(integer("d", d, low=2), DEGREE)[a, b])


@functools.lru_cache(maxsize=64)
def _pair_eigenvalues(d: int, degree: int) -> np.ndarray:
    t, w = inner_product_law(d)
    kappa = (1 + t) * relu_covariance(np.outer(1 + t, 1 + t) / 4)
    P = gegenbauer(degree, d, t) * w
    return np.asarray(P @ kappa @ P.T)


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


@functools.lru_cache(maxsize=1024)
def _mlp_eigenvalue(degrees: tuple[int, ...], d: int, n_keys: int) -> float:
    """Moments E[((1 + sum u_i)/(N+2))^k prod P_b(u_i)] by multiplying exponential generating functions."""
    k = np.arange(TERMS)
    scale = np.exp(-k * np.log(n_keys + 2) - special.gammaln(k + 1))
    t, w = inner_product_law(d)
    powers = t[None] ** k[:, None] * w

    def generating(b: int) -> np.ndarray:
        return np.asarray(scale * (powers @ gegenbauer(b, d, t)[b]))

    series = _series_power(generating(0), n_keys + 1 - len(degrees))
    for factor in [scale, *(generating(b) for b in degrees)]:
        series = np.convolve(series, factor)[:TERMS]
    return float(np.sum(relu_coefficients(TERMS - 1) * np.exp(special.gammaln(k + 1)) * series))


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


def mode_eigenvalue(a: int, b: int, d: int, n_keys: int, model: str) -> float:
    """Eigenvalue of the full model on averages over keys of harmonics of degree a in the query, b in the key.

    Source: derived here.  Status: exact.
    """
    if model == "rfa":
        return pair_eigenvalue(a, b, d) / (n_keys if b else 1)
    return mlp_eigenvalue((a, b), d, n_keys)


def spectrum(d: int, n_keys: int, model: str = "rfa", *, degree: int | None = None) -> Spectrum:
    r"""Eigenvalues of the infinitely wide model, with the tail's trace.

    ``rfa``: all degrees (a, b) up to ``degree`` (default 10). ``rfmlp``: all ways to spread a total degree up to
    ``degree`` (default 4) over the tokens.

    Source: derived here.  Status: exact.

    >>> [ab for ab in spectrum(16, 16).degrees[:6]]
    [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    """
    d, n_keys = integer("d", d, low=2), integer("n_keys", n_keys, low=1)
    one_of("model", model, ("rfa", "rfmlp"))
    if model == "rfa":
        modes = _attention_modes(d, n_keys, DEGREE if degree is None else degree)
        trace = attention_trace(d, n_keys)
    else:
        modes = _mlp_modes(d, n_keys, 4 if degree is None else degree)
        trace = 0.5
    modes.sort(key=lambda mode: -mode[1])
    labels, values, counts = zip(*modes, strict=True)
    return Spectrum(tuple(labels), np.array(values), np.array(counts, dtype=float), trace)


def attention_trace(d: int, n_keys: int) -> float:
    r"""E K(x, x) of unbiased attention: :math:`\tfrac1N + (1 - \tfrac1N)\,\mathbb{E}_v[(1+v) k_0((1+v)/2)]`.

    Source: derived here.  Status: exact on the sphere.

    >>> round(attention_trace(16, 16), 4)
    0.3591
    """
    v, w = inner_product_law(d)
    across = float(w @ ((1 + v) * relu_covariance((1 + v) / 2)))
    return 1 / n_keys + (1 - 1 / n_keys) * across


def _attention_modes(d: int, n_keys: int, degree: int) -> list[tuple[tuple[int, ...], float, float]]:
    dims = [float(harmonic_dimension(l, d)) for l in range(degree + 1)]
    table = _pair_eigenvalues(d, degree)
    return [
        ((a, b), float(table[a, b]) / (n_keys if b else 1), dims[a] * dims[b])
        for a, b in itertools.product(range(degree + 1), repeat=2)
        if table[a, b] > 0
    ]


def _partitions(total: int, largest: int) -> list[tuple[int, ...]]:
    if total == 0:
        return [()]
    return [(first, *rest) for first in range(min(total, largest), 0, -1) for rest in _partitions(total - first, first)]


def _mlp_modes(d: int, n_keys: int, degree: int) -> list[tuple[tuple[int, ...], float, float]]:
    """One eigenspace per multiset of token degrees; its multiplicity counts the tokens that carry them."""
    modes: list[tuple[tuple[int, ...], float, float]] = []
    for total in range(degree + 1):
        for part in _partitions(total, total):
            if len(part) > n_keys + 1:
                continue
            places = special.comb(n_keys + 1, len(part)) * special.factorial(len(part))
            for repeats in Counter(part).values():
                places /= special.factorial(repeats)
            dims = np.prod([float(harmonic_dimension(b, d)) for b in part])
            modes.append((part, mlp_eigenvalue(part, d, n_keys), float(places * dims)))
    return modes
