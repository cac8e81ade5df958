r"""The population risk of erf attention and its derivatives, as functions of five overlaps.

=======================  ==========================================================================
symbol                   meaning
=======================  ==========================================================================
kappa, nu                k.k*, v.v*: what is to be learned
theta, eta, rho          v.k*, k.v*, k.v: zero on the invariant manifold M
mu                       the mean of an informative token along k*; sqrt(d/2) in arXiv:2410.01537
gamma                    standard deviation of an informative token
L, K                     tokens, and informative ones among them
lam                      inverse temperature inside the erf
s, t                     lam gamma and lam mu kappa
a, b                     sqrt(1 + 2 s^2), sqrt(1 + 4 s^2)
E0 .. E3                 E erf^(j)(t + s G), G ~ N(0, 1)
Z .. Z3                  zeta(t; s) = E erf(t + s G)^2 and its derivatives in t
C, Z0, Z02               the same for a token of pure noise: E erf'(lam G) lam, zeta(0; lam), zeta''(0; lam)
m                        mu theta E0 + lam gamma^2 rho E1, the mean output of an informative token
=======================  ==========================================================================

Output and target are sums over independent tokens: K informative and n = L - K of pure noise. Second moments add up,
and means enter through the products of different tokens.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from attnlab.slr.namespace import NUMPY, Namespace
from attnlab.slr.task import Task

NAMES = ("kappa", "nu", "theta", "eta", "rho")


class Setting(NamedTuple):
    """What the formulas need of a task; numbers, or arrays that broadcast."""

    mu: Any
    gamma: Any
    L: Any
    K: Any


def setting(task: Task) -> Setting:
    """The numbers of a task; erf attention is solved for the spiked law and one length."""
    if task.law_in_force.name != "spiked":
        raise ValueError(f"law must be 'spiked': erf attention is not solved for {task.law!r}")
    if task.lengths is not None:
        raise ValueError(f"lengths must be None: erf attention is not solved for random lengths, got {task.lengths}")
    return Setting(math.sqrt(task.strength), task.law_in_force.gamma, task.L, task.locations)


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


def moments(kappa: Any, law: Setting, lam: Any, xp: Namespace = NUMPY) -> Moments:
    """All averages that the risk and its gradient use."""
    s, t = lam * law.gamma, lam * law.mu * kappa
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


def risk(overlaps: Any, law: Setting, lam: Any, noise_std: Any = 0.0, xp: Namespace = NUMPY) -> Any:
    """The population risk R(kappa, nu, theta, eta, rho)."""
    kappa, nu, theta, eta, rho = overlaps
    mu, gamma, L, K = law
    m = moments(kappa, law, lam, xp)
    c1, c2, n = lam * gamma**2, lam**2 * gamma**4, L - K
    cross = gamma**2 * nu * m.E0 + c1 * mu * eta * theta * m.E1 + c2 * eta * rho * m.E2
    square = (mu**2 * theta**2 + gamma**2) * m.Z + 2 * c1 * mu * theta * rho * m.Z1 + c2 * rho**2 * m.Z2
    noise = m.Z0 + lam**2 * rho**2 * m.Z02
    mean, noise_mean = mu * theta * m.E0 + c1 * rho * m.E1, m.C * rho
    # Products of different tokens, which are independent: pairs of informative ones, of noise, and mixed.
    means = K * (K - 1) * mean**2 + n * (n - 1) * noise_mean**2 + 2 * K * n * mean * noise_mean
    return noise_std**2 + gamma**2 - 2 * K**0.5 * cross + K * square + n * noise + means


def gradient(overlaps: Any, law: Setting, lam: Any, xp: Namespace = NUMPY) -> tuple[Any, ...]:
    """Partial derivatives of the risk, in the order of :data:`NAMES`."""
    kappa, nu, theta, eta, rho = overlaps
    mu, gamma, L, K = law
    m = moments(kappa, law, lam, xp)
    c1, c2, n, root = lam * gamma**2, lam**2 * gamma**4, L - K, K**0.5
    cross = gamma**2 * nu * m.E1 + c1 * mu * eta * theta * m.E2 + c2 * eta * rho * m.E3
    square = (mu**2 * theta**2 + gamma**2) * m.Z1 + 2 * c1 * mu * theta * rho * m.Z2 + c2 * rho**2 * m.Z3
    mean = mu * theta * m.E0 + c1 * rho * m.E1
    # derivatives of the means' terms in the mean of an informative and of a noise token
    by_mean = 2 * K * ((K - 1) * mean + n * m.C * rho)
    by_noise = 2 * n * ((n - 1) * m.C * rho + K * mean)
    return (
        lam * mu * (K * square - 2 * root * cross + by_mean * (mu * theta * m.E1 + c1 * rho * m.E2)),
        # linear in nu; the zero gives the slope the shape of nu
        -2 * root * gamma**2 * m.E0 + 0 * nu,
        2 * mu * (K * (mu * theta * m.Z + c1 * rho * m.Z1) - root * c1 * eta * m.E1) + by_mean * mu * m.E0,
        -2 * root * (c1 * mu * theta * m.E1 + c2 * rho * m.E2),
        2 * (K * (c1 * mu * theta * m.Z1 + c2 * rho * m.Z2) - root * c2 * eta * m.E2 + n * lam**2 * rho * m.Z02)
        + by_mean * c1 * m.E1
        + by_noise * m.C,
    )


def transverse_rates(law: Setting, lam: float) -> np.ndarray:
    r"""Eigenvalues of the gradient flow at (k*, v*) in the directions (theta, eta, rho) that leave M.

    With H the Hessian of R in these three overlaps and T the inner products of the corresponding moves of (k, v),
    the linearised flow is :math:`\dot y = -THy + Dy`, D from the projection on the spheres.
    """
    mu, gamma, L, K = law
    lam = np.float64(lam)
    m = moments(np.float64(1.0), law, lam)
    c1, c2, n, root = lam * gamma**2, lam**2 * gamma**4, L - K, K**0.5
    # the mean of an informative token is linear: m = x theta + w rho
    x, w = mu * m.E0, c1 * m.E1
    tt = K * (mu**2 * m.Z + (K - 1) * x**2)
    tr = K * (c1 * mu * m.Z1 + (K - 1) * x * w + n * m.C * x)
    rr = K * (c2 * m.Z2 + (K - 1) * w**2 + 2 * n * m.C * w) + n * (lam**2 * m.Z02 + (n - 1) * m.C**2)
    te, er = -root * c1 * mu * m.E1, -root * c2 * m.E2
    H = 2 * np.array([[tt, te, tr], [te, 0.0, er], [tr, er, rr]])
    # Gradients in (k, v): of theta (0, k*), of eta (v*, 0), of rho (v*, k*).
    T = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 2]])
    r_kappa, r_nu, *_ = gradient((np.float64(1), np.float64(1), 0.0, 0.0, 0.0), law, lam)
    # The rest, with s_k = r_kappa and s_v = r_nu: theta s_v, eta s_k, rho (s_k + s_v) - r_kappa theta - r_nu eta.
    D = np.array([[r_nu, 0, 0], [0, r_kappa, 0], [-r_kappa, -r_nu, r_kappa + r_nu]])
    return np.sort(np.linalg.eigvals(D - T @ H).real)


def step_limit(law: Setting, lam: float) -> float:
    """The largest step for which projected gradient descent is stable at (k*, v*): 2 / |stiffest rate|."""
    return float(2 / abs(transverse_rates(law, lam)[0]))


def possible(overlaps: np.ndarray) -> np.ndarray:
    """Whether four unit vectors with k*.v* = 0 have these overlaps (..., 5): their Gram matrix has no negative part."""
    kappa, nu, theta, eta, rho = np.moveaxis(overlaps, -1, 0)
    # Components of k and v outside span(k*, v*) have these squared lengths and this inner product.
    k, v, kv = 1 - kappa**2 - eta**2, 1 - nu**2 - theta**2, rho - kappa * theta - eta * nu
    slack = 1e-6  # rounding of overlaps that were computed in single precision
    return np.asarray((k >= -slack) & (v >= -slack) & (kv**2 <= np.maximum(k, 0) * np.maximum(v, 0) + slack))
