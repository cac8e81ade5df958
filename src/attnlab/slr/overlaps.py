r"""The population risk of erf attention and its derivatives, as functions of five overlaps.

=======================  ==========================================================================
symbol                   meaning
=======================  ==========================================================================
kappa, nu                k.k*, v.v*: what is to be learned
theta, eta, rho          v.k*, k.v*, k.v: zero on the invariant manifold M
mu                       sqrt(d/2), the mean of the informative token along k*
gamma                    standard deviation of the informative token
lam                      inverse temperature inside the erf
s, t                     lam gamma and lam mu kappa
a, b                     sqrt(1 + 2 s^2), sqrt(1 + 4 s^2)
E0 .. E3                 E erf^(j)(t + s G), G ~ N(0, 1)
Z .. Z3                  zeta(t; s) = E erf(t + s G)^2 and its derivatives in t
C, Z0, Z02               the same for a token of pure noise: E erf'(lam G) lam, zeta(0; lam), zeta''(0; lam)
=======================  ==========================================================================

Every function is written once for NumPy and for JAX: the array namespace is its last argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from attnlab.common.gaussian import gauss_legendre

NAMES = ("kappa", "nu", "theta", "eta", "rho")


class Namespace(NamedTuple):
    """What the formulas need from an array library."""

    sqrt: Callable[[Any], Any]
    arcsin: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    erf: Callable[[Any], Any]
    owens_t: Callable[[Any, Any], Any]


NUMPY = Namespace(np.sqrt, np.arcsin, np.exp, special.erf, special.owens_t)


def jax_namespace() -> Namespace:
    """The same for JAX, with Owen's T by Gauss-Legendre quadrature (error < 1e-13 for a ratio <= 1)."""
    import jax.numpy as jnp
    from jax.scipy.special import erf

    x, w = gauss_legendre(24)

    def owens_t(h: Any, r: Any) -> Any:
        h, r = jnp.asarray(h)[..., None], jnp.asarray(r)
        square = 1 + (r[..., None] * x) ** 2
        return r / (2 * math.pi) * jnp.sum(w / square * jnp.exp(-0.5 * h**2 * square), axis=-1)

    return Namespace(jnp.sqrt, jnp.arcsin, jnp.exp, erf, owens_t)


class Moments(NamedTuple):
    """Gaussian averages of the erf at one value of kappa (see the table of symbols)."""

    E0: Any
    E1: Any
    E2: Any
    E3: Any
    Z: Any
    Z1: Any
    Z2: Any
    Z3: Any
    C: Any
    Z0: Any
    Z02: Any


def zeta(t: Any, s: Any, xp: Namespace = NUMPY) -> Any:
    r""":math:`\zeta(t; s) = \mathbb{E}\,\mathrm{erf}(t + sG)^2 = 1 - 8\,T\!\big(\sqrt2\,t/a,\ 1/b\big)`.

    Source: derived here (an orthant probability of a Gaussian pair).  Status: exact.
    """
    return 1 - 8 * xp.owens_t(math.sqrt(2) * t / xp.sqrt(1 + 2 * s**2), 1 / xp.sqrt(1 + 4 * s**2))


def moments(kappa: Any, *, d: Any, lam: Any, gamma: Any, xp: Namespace = NUMPY) -> Moments:
    """All averages that the risk and its gradient use."""
    s, t = lam * gamma, lam * (d / 2) ** 0.5 * kappa
    a, b = xp.sqrt(1 + 2 * s**2), xp.sqrt(1 + 4 * s**2)
    x = t / a
    slope = 2 / math.sqrt(math.pi) * xp.exp(-(x**2))
    Z1 = 2 / a * xp.erf(t / (a * b)) * slope
    Q = 8 / (math.pi * a**2 * b) * xp.exp(-2 * t**2 / b**2)
    Z2 = Q - 2 * t / a**2 * Z1
    return Moments(
        E0=xp.erf(x),
        E1=slope / a,
        E2=-2 * x * slope / a**2,
        E3=(4 * x**2 - 2) * slope / a**3,
        Z=zeta(t, s, xp),
        Z1=Z1,
        Z2=Z2,
        Z3=-4 * t / b**2 * Q - 2 / a**2 * Z1 - 2 * t / a**2 * Z2,
        C=2 * lam / xp.sqrt(math.pi * (1 + 2 * lam**2)),
        Z0=2 / math.pi * xp.arcsin(2 * lam**2 / (1 + 2 * lam**2)),
        Z02=8 / (math.pi * (1 + 2 * lam**2) * xp.sqrt(1 + 4 * lam**2)),
    )


def risk(overlaps: Any, *, d: Any, L: Any, lam: Any, gamma: Any, noise_std: Any = 0.0, xp: Namespace = NUMPY) -> Any:
    """The population risk R(kappa, nu, theta, eta, rho)."""
    kappa, nu, theta, eta, rho = overlaps
    m = moments(kappa, d=d, lam=lam, gamma=gamma, xp=xp)
    mu, c1, c2 = (d / 2) ** 0.5, lam * gamma**2, lam**2 * gamma**4
    cross = gamma**2 * nu * m.E0 + c1 * mu * eta * theta * m.E1 + c2 * eta * rho * m.E2
    square = (mu**2 * theta**2 + gamma**2) * m.Z + 2 * c1 * mu * theta * rho * m.Z1 + c2 * rho**2 * m.Z2
    noise_tokens = (L - 1) * (m.Z0 + lam**2 * rho**2 * m.Z02) + (L - 1) * (L - 2) * m.C**2 * rho**2
    mixed = 2 * (L - 1) * m.C * rho * (mu * theta * m.E0 + c1 * rho * m.E1)
    return noise_std**2 + gamma**2 - 2 * cross + square + noise_tokens + mixed


def gradient(overlaps: Any, *, d: Any, L: Any, lam: Any, gamma: Any, xp: Namespace = NUMPY) -> tuple[Any, ...]:
    """Partial derivatives of the risk, in the order of :data:`NAMES`."""
    kappa, nu, theta, eta, rho = overlaps
    m = moments(kappa, d=d, lam=lam, gamma=gamma, xp=xp)
    mu, c1, c2, n = (d / 2) ** 0.5, lam * gamma**2, lam**2 * gamma**4, L - 1
    cross = gamma**2 * nu * m.E1 + c1 * mu * eta * theta * m.E2 + c2 * eta * rho * m.E3
    square = (mu**2 * theta**2 + gamma**2) * m.Z1 + 2 * c1 * mu * theta * rho * m.Z2 + c2 * rho**2 * m.Z3
    mixed = 2 * n * m.C * rho * (mu * theta * m.E1 + c1 * rho * m.E2)
    return (
        lam * mu * (square + mixed - 2 * cross),
        -2 * gamma**2 * m.E0 + 0 * nu,
        2 * mu * (mu * theta * m.Z - c1 * eta * m.E1 + c1 * rho * m.Z1 + n * m.C * rho * m.E0),
        -2 * (c1 * mu * theta * m.E1 + c2 * rho * m.E2),
        2 * (c1 * mu * theta * m.Z1 - c2 * eta * m.E2 + n * m.C * mu * theta * m.E0)
        + 2 * rho * (c2 * m.Z2 + n * (lam**2 * m.Z02 + (L - 2) * m.C**2 + 2 * m.C * c1 * m.E1)),
    )


def transverse_rates(*, d: float, L: int, lam: float, gamma: float) -> np.ndarray:
    r"""Eigenvalues of the gradient flow at (k*, v*) in the directions (theta, eta, rho) that leave M.

    With H the Hessian of R in these three overlaps and T the inner products of the corresponding moves of (k, v),
    the linearised flow is :math:`\dot y = -THy + Dy`, D from the projection on the spheres.
    """
    m = moments(np.float64(1.0), d=d, lam=np.float64(lam), gamma=gamma)
    mu, c1, c2, n = (d / 2) ** 0.5, lam * gamma**2, lam**2 * gamma**4, L - 1
    tr = c1 * mu * m.Z1 + n * m.C * mu * m.E0
    rr = c2 * m.Z2 + n * (lam**2 * m.Z02 + (L - 2) * m.C**2 + 2 * m.C * c1 * m.E1)
    H = 2 * np.array([[mu**2 * m.Z, -c1 * mu * m.E1, tr], [-c1 * mu * m.E1, 0.0, -c2 * m.E2], [tr, -c2 * m.E2, rr]])
    T = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 2]])
    r_kappa, r_nu, *_ = gradient(
        (np.float64(1), np.float64(1), 0.0, 0.0, 0.0), d=d, L=L, lam=np.float64(lam), gamma=gamma
    )
    D = np.array([[r_nu, 0, 0], [0, r_kappa, 0], [-r_kappa, -r_nu, r_kappa + r_nu]])
    return np.sort(np.linalg.eigvals(D - T @ H).real)


def step_limit(*, d: float, L: int, lam: float, gamma: float) -> float:
    """The largest step for which projected gradient descent is stable at (k*, v*): 2 / |stiffest rate|."""
    return float(2 / abs(transverse_rates(d=d, L=L, lam=lam, gamma=gamma)[0]))
