r"""The landscape off the manifold: saddle, swapped minimum, instability at large temperature, step-size limit.

==============  =======================================================================
symbol          meaning
==============  =======================================================================
A, B            4 gamma^2 c / sqrt(pi), 2 c / (b sqrt(pi)): the flow near k, v ~ 0 on M
D               d zeta(0; lam gamma): the restoring force on theta
c               lam mu / a
theta_s         overlap v.k* at the swapped minimum, where k = ± v*
==============  =======================================================================

The other symbols are those of :mod:`attnlab.slr.overlaps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import optimize

from attnlab.common.solution import Solution
from attnlab.common.validation import integer, nonnegative, positive
from attnlab.slr import overlaps as formula
from attnlab.slr.theory.dynamics import velocity


@dataclass(frozen=True)
class SaddleExponents:
    """Growth rates at the origin of the overlaps: towards (k*, v*) on M, and towards the swapped minimum."""

    manifold: float
    swapped: float

    @property
    def gap(self) -> float:
        """By how much the right direction grows faster."""
        return self.manifold - self.swapped


def saddle_exponents(*, d: int, L: int = 2, lam: float, gamma: float = 2**-0.5) -> SaddleExponents:
    r"""The two unstable exponents of the gradient flow at kappa = nu = theta = eta = rho = 0.

    .. math:: \sigma_{man} = \tfrac{A}{2}\big(\sqrt{B^2 + 4} - B\big), \qquad
              \sigma_{swap} = \tfrac12\big(\sqrt{D^2 + 4A^2} - D\big)

    Both are independent of L. From a random start the two modes compete.

    Source: derived here.  Status: exact.

    >>> rates = saddle_exponents(d=400, lam=0.5)
    >>> round(rates.manifold, 6), round(rates.swapped, 6)
    (1.190653, 0.974727)
    """
    d, _, lam, gamma = _law(d, L, lam, gamma)
    c, _, b = _slopes(d, lam, gamma)
    A, B = 4 / math.sqrt(math.pi) * gamma**2 * c, 2 / math.sqrt(math.pi) * c / b
    D = d * float(formula.zeta(0.0, lam * gamma))
    return SaddleExponents(A * (math.hypot(B, 2) - B) / 2, (math.hypot(D, 2 * A) - D) / 2)


def escape_steps(*, d: int, lam: float, step: float, gamma: float = 2**-0.5) -> float:
    r"""Steps that gradient descent on M needs to leave the saddle from overlaps of size :math:`d^{-1/2}`.

    .. math:: t = \frac{\ln\sqrt d}{\alpha\,\sigma_{man}}

    Source: derived here.  Status: heuristic (the exponential rate is exact, the prefactor is not).

    >>> round(escape_steps(d=400, lam=0.1, step=4e-3))
    971
    """
    return math.log(d) / 2 / (positive("step", step) * saddle_exponents(d=d, lam=lam, gamma=gamma).manifold)


@dataclass(frozen=True)
class SwappedMinimum:
    """The point k = ±v*, v.k* = ±theta: its risk, and the largest exponent of the flow there (stable if negative)."""

    theta: float
    risk: float
    exponent: float

    @property
    def overlaps(self) -> Float[np.ndarray, " 5"]:
        """(kappa, nu, theta, eta, rho) of the copy with eta = +1."""
        return np.array([0.0, 0.0, self.theta, 1.0, 0.0])

    @property
    def stable(self) -> bool:
        """Whether it is a local minimum."""
        return self.exponent < 0


def swapped_minimum(*, d: int, L: int, lam: float, gamma: float = 2**-0.5, noise_std: float = 0.0) -> SwappedMinimum:
    r"""Where training fails off the manifold: k has learned v*, and v part of k*.

    .. math:: \theta_s = \min\Big(1, \frac{2\gamma^2 c}{\sqrt\pi\,\mu^2\zeta(0; \lambda\gamma)}\Big),\quad
              R_s = \epsilon^2 + \gamma^2 + \gamma^2\zeta(0;\lambda\gamma) + (L-1)\zeta(0;\lambda)
              - \tfrac{4}{\sqrt\pi}\gamma^2 c\,\theta_s + \mu^2\zeta(0;\lambda\gamma)\,\theta_s^2

    Source: derived here.  Status: exact.

    >>> point = swapped_minimum(d=400, L=10, lam=0.1)
    >>> round(point.theta, 5), round(point.risk, 6), point.stable
    (0.62977, 0.115512, True)
    """
    d, L, lam, gamma = _law(d, L, lam, gamma)
    c, mu, _ = _slopes(d, lam, gamma)
    flat = float(formula.zeta(0.0, lam * gamma))
    theta = min(1.0, 2 * gamma**2 * c / (math.sqrt(math.pi) * mu**2 * flat))
    point = np.array([0.0, 0.0, theta, 1.0, 0.0])
    noise_std = nonnegative("noise_std", noise_std)
    value = formula.risk(point, d=d, L=L, lam=np.float64(lam), gamma=gamma, noise_std=noise_std)
    rates = np.linalg.eigvals(flow_jacobian(point, d=d, L=L, lam=lam, gamma=gamma))
    return SwappedMinimum(theta, float(value), float(rates.real.max()))


def flow_jacobian(overlaps: Any, *, d: int, L: int, lam: float, gamma: float = 2**-0.5) -> Float[np.ndarray, "5 5"]:
    """Derivative of :func:`~attnlab.slr.theory.velocity`, by central differences.

    Source: derived here.  Status: exact up to rounding (about 1e-8 relative).
    """
    point, h = np.asarray(overlaps, dtype=np.float64), 1e-5
    shifts = h * np.eye(5)
    above, below = (velocity(point + e, d=d, L=L, lam=lam, gamma=gamma) for e in (shifts, -shifts))
    return np.asarray((above - below).T / (2 * h))


def transverse_exponent(*, d: int, L: int, lam: float, gamma: float = 2**-0.5) -> float:
    """Largest rate at which the flow leaves M at (k*, v*); positive: the planted pair is a saddle.

    Source: derived here.  Status: exact.

    >>> round(transverse_exponent(d=400, L=10, lam=0.9), 4)
    0.021
    """
    d, L, lam, gamma = _law(d, L, lam, gamma)
    return float(formula.transverse_rates(d=d, L=L, lam=lam, gamma=gamma)[-1])


def instability_threshold(*, d: int | None = None, L: int = 10, gamma: float = 2**-0.5) -> Solution[float]:
    r"""The ``lam`` above which (k*, v*) is unstable off M; :math:`\sqrt3/2` as :math:`d \to \infty` (``d=None``).

    There a noise token's variance, :math:`\zeta(0;\lambda) + \rho^2(\lambda^2 Z_{02} - C^2)`, falls with
    :math:`\rho^2`, and :math:`\theta = -(L-1)C\rho/\mu` removes the mean.

    Source: derived here.  Status: exact for given d; asymptotic for ``d=None``.

    >>> round(instability_threshold().value, 6)
    0.866025
    """
    if d is None:
        return Solution(math.sqrt(3) / 2, True, 0, 0.0)
    d, L, _, gamma = _law(d, L, 1.0, gamma)

    def rate(lam: float) -> float:
        return float(formula.transverse_rates(d=d, L=L, lam=lam, gamma=gamma)[-1])

    grid = np.geomspace(0.05, 20, 200)
    signs = np.array([rate(lam) > 0 for lam in grid])
    if not signs.any() or signs[0]:
        return Solution(math.nan, False, len(grid), math.inf)
    first = int(signs.argmax())
    root, report = optimize.brentq(rate, grid[first - 1], grid[first], xtol=1e-12, full_output=True)
    return Solution(float(root), bool(report.converged), int(report.iterations), 1e-12)


def step_size_limit(*, d: int, L: int, lam: float, gamma: float = 2**-0.5) -> float:
    r"""The largest step for which gradient descent is stable at (k*, v*): 2 over the stiffest rate of the flow.

    Source: derived here.  Status: exact.

    >>> round(step_size_limit(d=400, L=10, lam=0.1), 4)
    0.0047
    """
    d, L, lam, gamma = _law(d, L, lam, gamma)
    return formula.step_limit(d=d, L=L, lam=lam, gamma=gamma)


def _slopes(d: int, lam: float, gamma: float) -> tuple[float, float, float]:
    """The numbers c, mu and b."""
    mu = math.sqrt(d / 2)
    return lam * mu / math.sqrt(1 + 2 * (lam * gamma) ** 2), mu, math.sqrt(1 + 4 * (lam * gamma) ** 2)


def _law(d: Any, L: Any, lam: Any, gamma: Any) -> tuple[int, int, float, float]:
    return integer("d", d, low=2), integer("L", L, low=2), positive("lam", lam), positive("gamma", gamma)
