r"""Functions on the unit sphere: the law of an inner product and the Gegenbauer polynomials orthogonal under it.

========  ========================================================================================
symbol    meaning
========  ========================================================================================
d         dimension of the tokens, x uniform on S^{d-1}
t         inner product of two independent uniform tokens, density proportional to (1-t^2)^{(d-3)/2}
P_l       Gegenbauer polynomial of degree l, normalised to P_l(1) = 1
dim_l     dimension of the spherical harmonics of degree l; E[P_l(t) P_k(t)] = 1{l=k} / dim_l
========  ========================================================================================
"""

from __future__ import annotations

import functools

import numpy as np
from scipy import special

from attnlab.common.arrays import ArrayLike

NODES = 160


@functools.lru_cache(maxsize=64)
def inner_product_law(d: int, nodes: int = NODES) -> tuple[np.ndarray, np.ndarray]:
    r"""Gauss-Jacobi nodes and weights with :math:`\mathbb{E} f(t) \approx \sum_i w_i f(t_i)`.

    Status: exact for polynomials of degree 2 nodes - 1.

    >>> t, w = inner_product_law(16)
    >>> round(float(w @ t**2), 12)  # 1 / d
    0.0625
    """
    t, w = special.roots_jacobi(nodes, (d - 3) / 2, (d - 3) / 2)
    w = w / w.sum()
    # The cache hands the same arrays to every caller.
    t.flags.writeable = w.flags.writeable = False
    return t, w


def gegenbauer(degree: int, d: int, t: np.ndarray) -> np.ndarray:
    r"""All :math:`P_0(t), \dots, P_{degree}(t)`, stacked along a new first axis.

    .. math:: (l + d - 2) P_{l+1} = (2l + d - 2)\, t P_l - l P_{l-1}

    Status: exact.
    """
    t = np.asarray(t, dtype=np.float64)
    P = np.empty((degree + 1, *t.shape))
    P[0] = 1.0
    if degree:
        P[1] = t
    for l in range(1, degree):
        P[l + 1] = ((2 * l + d - 2) * t * P[l] - l * P[l - 1]) / (l + d - 2)
    return P


def harmonic_dimension(l: int, d: int) -> int:
    r""":math:`\dim_l = \binom{d+l-1}{l} - \binom{d+l-3}{l-2}`.

    Status: exact.

    >>> [harmonic_dimension(l, 16) for l in range(5)]
    [1, 16, 135, 800, 3740]
    """
    # In integers: the difference of two binomials of 20 digits has none left in floating point.
    lower = special.comb(d + l - 3, l - 2, exact=True) if l >= 2 else 0
    return int(special.comb(d + l - 1, l, exact=True)) - int(lower)


def power_moments(powers: ArrayLike, l: int, d: int) -> np.ndarray:
    r""":math:`\mathbb{E}[t^k P_l(t)]` for each power k, in closed form: positive or zero, and free of cancellation.

    .. math:: \mathbb{E}[t^k P_l] = \frac{k!}{(k-l)!\,2^l}\,\frac{(1/2)_j}{(d/2)_{j+l}},
              \qquad j = \tfrac{k-l}2 \in \{0, 1, \dots\}, \quad\text{otherwise } 0

    Source: Rodrigues' formula.  Status: exact, to a relative 1e-11 at every d.

    >>> round(float(power_moments(2, 0, 16)), 12)  # 1 / d
    0.0625
    """
    k = np.asarray(powers)
    present = (k >= l) & ((k - l) % 2 == 0)
    # np.where evaluates both branches below: zero keeps the logarithms of absent powers finite.
    j = np.where(present, (k - l) // 2, 0)
    # Factorials beyond 170 overflow; their logarithms do not.
    log = special.gammaln(k + 1) - special.gammaln(2 * j + 1) - l * np.log(2) + _log_rising(0.5, j)
    return np.where(present, np.exp(log - _log_rising(d / 2, j + l)), 0.0)


def _log_rising(x: float, n: ArrayLike) -> np.ndarray:
    """log x(x+1)...(x+n-1)."""
    return np.asarray(special.gammaln(x + np.asarray(n)) - special.gammaln(x))


def half_angle_moments(degree: int, d: int, terms: int) -> np.ndarray:
    r""":math:`\alpha_{lk} = \mathbb{E}[(\tfrac{1+t}2)^k P_l(t)]` for l = 0..degree and k < terms.

    .. math:: \alpha_{lk} = \prod_{i<k} \frac{h + i}{2h + i} \prod_{i<l} \frac{k - i}{2h + k + i},
              \qquad h = \tfrac{d-1}2

    A product of positive factors keeps its relative accuracy at every d; a quadrature has an absolute error of 1e-17,
    which multiplicities of 1e40 turn into anything.

    Source: Rodrigues' formula.  Status: exact.

    >>> half_angle_moments(1, 3, 2).tolist()  # E[1], E[(1+t)/2]; E[t], E[t(1+t)/2]
    [[1.0, 0.5], [0.0, 0.16666666666666666]]
    """
    h, k = (d - 1) / 2, np.arange(terms)
    rows = [np.concatenate([[1.0], np.cumprod((h + k[:-1]) / (2 * h + k[:-1]))])]
    for i in range(degree):
        rows.append(rows[-1] * (k - i) / (2 * h + k + i))
    # The factor k - i is zero at i = k and negative after it: for k < l the product may be -0.0.
    return np.asarray(np.maximum(np.array(rows), 0.0))


def zonal_energies(power: int, d: int) -> np.ndarray:
    r"""How the energy of :math:`\langle u, x\rangle^p` splits over degrees: :math:`\dim_l\,\mathbb{E}[t^p P_l(t)]^2`.

    Status: exact, l = 0..power.
    """
    return np.array([harmonic_dimension(l, d) * float(power_moments(power, l, d)) ** 2 for l in range(power + 1)])
