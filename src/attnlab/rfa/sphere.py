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
from collections.abc import Callable

import numpy as np
from scipy import special

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
    lower = special.comb(d + l - 3, l - 2, exact=True) if l >= 2 else 0
    return int(special.comb(d + l - 1, l, exact=True)) - int(lower)


def zonal_energies(function: Callable[[np.ndarray], np.ndarray], degree: int, d: int) -> np.ndarray:
    r"""How the energy of x -> g(<u, x>) splits over degrees: :math:`\dim_l\, \mathbb{E}[g(t) P_l(t)]^2`, l = 0..degree.

    Status: exact for polynomials g.
    """
    t, w = inner_product_law(d)
    coefficients = gegenbauer(degree, d, t) @ (w * function(t))
    return np.asarray([harmonic_dimension(l, d) * c**2 for l, c in enumerate(coefficients)])
