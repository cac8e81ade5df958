r"""Gaussian integrals that several systems share.

=============  ===========================================================
symbol         meaning
=============  ===========================================================
phi, Phi       density and distribution function of N(0, 1)
phi2, Phi2     the same for a pair with unit variances and correlation r
T(h, a)        Owen's function
=============  ===========================================================
"""

from __future__ import annotations

import functools

import numpy as np
from scipy import special

from attnlab.common.arrays import ArrayLike


@functools.lru_cache(maxsize=64)
def gauss_hermite(n: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Nodes and weights with :math:`\mathbb{E} f(G) \approx \sum_i w_i f(x_i)`, G ~ N(0, 1).

    Exact for polynomials of degree 2n - 1.

    >>> x, w = gauss_hermite(10)
    >>> round(float(w @ x**4), 12)
    3.0
    """
    nodes, weights = special.roots_hermitenorm(n)
    weights = weights / weights.sum()  # SciPy's integrate exp(-x^2/2), whose mass is sqrt(2 pi)
    # cached: a caller that changed the arrays would change every later integral
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@functools.lru_cache(maxsize=64)
def gauss_legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Nodes and weights with :math:`\int_0^1 f \approx \sum_i w_i f(x_i)`."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    nodes, weights = (nodes + 1) / 2, weights / 2  # from [-1, 1] to [0, 1]
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def normal_pdf(x: ArrayLike) -> np.ndarray:
    r""":math:`\varphi(x) = e^{-x^2/2}/\sqrt{2\pi}`."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi))


def normal_cdf(x: ArrayLike) -> np.ndarray:
    r""":math:`\Phi(x)`."""
    return np.asarray(special.ndtr(np.asarray(x, dtype=np.float64)))


def bivariate_normal_pdf(x: ArrayLike, y: ArrayLike, r: ArrayLike) -> np.ndarray:
    r""":math:`\varphi_2(x, y; r) = \exp\!\big(-\tfrac{x^2 - 2rxy + y^2}{2(1-r^2)}\big) / (2\pi\sqrt{1-r^2})`."""
    x, y, r = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (x, y, r)))
    s = 1 - r**2
    return np.asarray(np.exp(-(x**2 - 2 * r * x * y + y**2) / (2 * s)) / (2 * np.pi * np.sqrt(s)))


def bivariate_normal_cdf(x: ArrayLike, y: ArrayLike, r: ArrayLike) -> np.ndarray:
    r""":math:`\Phi_2(x, y; r) = \Pr[X \le x, Y \le y]` for unit variances and correlation r in [-1, 1].

    .. math:: \Phi_2 = \tfrac12\Phi(x) + \tfrac12\Phi(y) - T(x, a_x) - T(y, a_y) - \tfrac12\mathbb{1}[xy < 0
              \text{ or } xy = 0,\ x + y < 0], \quad a_x = \frac{y - r x}{x\sqrt{1 - r^2}}

    Source: D. B. Owen, Ann. Math. Statist. 27 (1956) 1075.  Status: exact.

    >>> round(float(bivariate_normal_cdf(0.0, 0.0, 0.5)), 12)  # 1/4 + arcsin(r) / (2 pi)
    0.333333333333
    """
    x, y, r = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (x, y, r)))
    # Beyond 40 the distribution function is 0 or 1 to the last bit, and infinite limits stay finite below.
    x, y = np.clip(x, -40.0, 40.0), np.clip(y, -40.0, 40.0)
    # rounding may put |r| above one; |r| >= 1 is replaced at the end
    root = np.sqrt(np.maximum(1 - r**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # at x = 0 the limit from x > 0, to which the indicator's case xy = 0 belongs
        a_x = np.where(x == 0, np.copysign(np.inf, y), (y - r * x) / (x * root))
        a_y = np.where(y == 0, np.copysign(np.inf, x), (x - r * y) / (y * root))
    split = (x * y < 0) | ((x * y == 0) & (x + y < 0))
    # Owen's formula: two functions of one variable and exact to rounding, where a quadrature in r fails near |r| = 1.
    inner = 0.5 * (special.ndtr(x) + special.ndtr(y)) - special.owens_t(x, a_x) - special.owens_t(y, a_y) - 0.5 * split
    at_origin = 0.25 + np.arcsin(np.clip(r, -1, 1)) / (2 * np.pi)
    inner = np.where((x == 0) & (y == 0), at_origin, inner)
    # The degenerate correlations: X = Y and X = -Y.
    inner = np.where(r >= 1, special.ndtr(np.minimum(x, y)), inner)
    inner = np.where(r <= -1, np.maximum(special.ndtr(x) + special.ndtr(y) - 1, 0.0), inner)
    return np.asarray(np.clip(inner, 0.0, 1.0))
