r"""The landscape off the manifold: saddle, swapped minimum, instability at large temperature, step-size limit.

==============  =======================================================================
symbol          meaning
==============  =======================================================================
A, B            4 gamma^2 c / sqrt(pi), 2 c / (b sqrt(pi)): the flow near k, v ~ 0 on M
D               2 mu^2 zeta(0; lam gamma): the restoring force on theta
c               lam mu / a
theta_s         overlap v.k* at the swapped minimum, where k = ± v*
==============  =======================================================================

The other symbols are those of :mod:`attnlab.slr.theory.overlaps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import optimize, special

from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import positive
from attnlab.slr.task import Task
from attnlab.slr.theory import overlaps as formula
from attnlab.slr.theory.dynamics import velocity

# What depends on L only through K may be asked without it.
ANY_LENGTH = 10**6


@dataclass(frozen=True)
class SaddleExponents:
    """Growth rates at the origin of the overlaps: towards (k*, v*) on M, and towards the swapped minimum."""

    manifold: float
    swapped: float

    @property
    def gap(self) -> float:
        """By how much the right direction grows faster."""
        return self.manifold - self.swapped


@from_law(Task, L=ANY_LENGTH)
def saddle_exponents(task: Task, *, lam: float, L: int | None = None) -> SaddleExponents:
    r"""The two unstable exponents of the gradient flow at kappa = nu = theta = eta = rho = 0.

    .. math:: \sigma_{man} = \tfrac{\sqrt K A}{2}\big(\sqrt{KB^2 + 4} - \sqrt K B\big), \qquad
              \sigma_{swap} = \tfrac12\big(\sqrt{K^2D^2 + 4KA^2} - KD\big)

    Both are independent of L, which is accepted and does not matter. From a random start the two modes compete.

    Source: derived here.  Status: exact.

    >>> rates = saddle_exponents(d=400, lam=0.5)
    >>> round(rates.manifold, 6), round(rates.swapped, 6)
    (1.190653, 0.974727)
    """
    law = formula.setting(task)
    c, b = _slopes(law, positive("lam", lam))
    root = math.sqrt(law.K)
    # sqrt K is taken into A and B, K into D.
    A, B = 4 / math.sqrt(math.pi) * law.gamma**2 * c * root, 2 / math.sqrt(math.pi) * c / b * root
    D = 2 * law.K * law.mu**2 * float(formula.zeta(0.0, lam * law.gamma))
    return SaddleExponents(A * (math.hypot(B, 2) - B) / 2, (math.hypot(D, 2 * A) - D) / 2)


@from_law(Task, L=ANY_LENGTH)
def escape_steps(task: Task, *, lam: float, step: float, L: int | None = None) -> Prediction:
    r"""Steps that gradient descent on M needs to leave the saddle from overlaps of size :math:`d^{-1/2}`.

    .. math:: t = \frac{\ln\sqrt d}{\alpha\,\sigma_{man}}

    Source: derived here.  Status: heuristic (the exponential rate is exact, the prefactor is not).

    >>> round(float(escape_steps(d=400, lam=0.1, step=4e-3)))
    971
    """
    rate = saddle_exponents(task, lam=lam).manifold
    return Prediction(math.log(task.d) / 2 / (positive("step", step) * rate), status="heuristic")


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


@from_law(Task)
def swapped_minimum(task: Task, *, lam: float) -> SwappedMinimum:
    r"""Where training fails off the manifold: k has learned v*, and v part of k*.

    .. math:: \theta_s = \min\Big(1, \frac{2\gamma^2 c}{\sqrt{K\pi}\,\mu^2\zeta(0; \lambda\gamma)}\Big),\quad
              R_s = \epsilon^2 + \gamma^2 + K\gamma^2\zeta(0;\lambda\gamma) + (L-K)\zeta(0;\lambda)
              - 4\sqrt{K/\pi}\,\gamma^2 c\,\theta_s + K\mu^2\zeta(0;\lambda\gamma)\,\theta_s^2

    Source: derived here.  Status: exact.

    >>> point = swapped_minimum(d=400, L=10, lam=0.1)
    >>> round(point.theta, 5), round(point.risk, 6), point.stable
    (0.62977, 0.115512, True)
    """
    law, lam = formula.setting(task), positive("lam", lam)
    c, _ = _slopes(law, lam)
    flat = float(formula.zeta(0.0, lam * law.gamma))
    theta = min(1.0, 2 * law.gamma**2 * c / (math.sqrt(law.K * math.pi) * law.mu**2 * flat))
    point = np.array([0.0, 0.0, theta, 1.0, 0.0])
    value = formula.risk(point, law, np.float64(lam), task.noise_std)
    rates = np.linalg.eigvals(flow_jacobian(task, point, lam=lam))
    return SwappedMinimum(theta, float(value), float(rates.real.max()))


@from_law(Task, L=ANY_LENGTH)
def manifold_minimum(task: Task, *, lam: float, L: int | None = None) -> Prediction:
    r"""The overlap kappa at the minimum of the risk on M, where nu = 1 (and its negative).

    .. math:: \kappa_M = \min\Big(1, \frac bc\,\mathrm{erf}^{-1}\big(K^{-1/2}\big)\Big)

    For one location it is 1, the planted pair. With K > 1 an informative token should count :math:`K^{-1/2}`, and at
    a large lam it would count more: then k turns away from k* until the average weight is right. Independent of L.

    Source: derived here.  Status: exact.

    >>> round(manifold_minimum(d=400, locations=4, lam=0.1), 4)
    0.3423
    """
    law = formula.setting(task)
    c, b = _slopes(law, positive("lam", lam))
    return Prediction(min(1.0, b / c * float(special.erfinv(law.K**-0.5))))


@from_law(Task)
def flow_jacobian(task: Task, overlaps: Any, *, lam: float) -> Float[np.ndarray, "5 5"]:
    """Derivative of :func:`~attnlab.slr.theory.velocity`, by central differences.

    Source: derived here.  Status: exact up to rounding (about 1e-8 relative).
    """
    # Central differences: truncation of h^2 = 1e-10 and rounding of 1e-16 / h = 1e-11.
    point, h = np.asarray(overlaps, dtype=np.float64), 1e-5
    shifts = h * np.eye(5)
    above, below = (velocity(task, point + e, lam=lam) for e in (shifts, -shifts))
    return np.asarray((above - below).T / (2 * h))


@from_law(Task)
def transverse_exponent(task: Task, *, lam: float) -> Prediction:
    """Largest rate at which the flow leaves M at (k*, v*); positive: the planted pair is a saddle.

    Source: derived here.  Status: exact.

    >>> round(transverse_exponent(d=400, L=10, lam=0.9), 4)
    0.021
    """
    return Prediction(float(formula.transverse_rates(formula.setting(task), positive("lam", lam))[-1]))


def instability_threshold(
    task: Task | None = None, *, d: int | None = None, L: int = 10, gamma: float = 2**-0.5, locations: int = 1
) -> Prediction:
    r"""The ``lam`` above which (k*, v*) is unstable off M; :math:`\sqrt3/2` as :math:`d \to \infty` (``d=None``).

    There a noise token's variance, :math:`\zeta(0;\lambda) + \rho^2(\lambda^2 Z_{02} - C^2)`, falls with
    :math:`\rho^2`, and :math:`\theta = -(L-1)C\rho/\mu` removes the mean. ``detail`` has the residual, the rate at the
    root.

    Source: derived here.  Status: exact for given d; asymptotic for ``d=None`` (one location).

    >>> round(instability_threshold(), 6)
    0.866025
    """
    if task is None and d is None:
        return Prediction(math.sqrt(3) / 2, status="asymptotic")
    law = formula.setting(Task(d, L, gamma, locations=locations) if task is None else task)  # type: ignore[arg-type]

    def rate(lam: float) -> float:
        return float(formula.transverse_rates(law, lam)[-1])

    # The grid brackets the first change of sign; a root finder alone could end at a later one.
    grid = np.geomspace(0.05, 20, 200)
    signs = np.array([rate(lam) > 0 for lam in grid])
    # Never unstable on the grid, or from its start on: there is no bracket.
    if not signs.any() or signs[0]:
        return Prediction(math.nan, math.inf, converged=False, detail={"residual": math.inf})
    first = int(signs.argmax())
    root, report = optimize.brentq(rate, grid[first - 1], grid[first], xtol=1e-12, full_output=True)
    detail = {"residual": abs(rate(root)), "n_iter": int(report.iterations)}
    return Prediction(float(root), 1e-12, converged=bool(report.converged), detail=detail)


@from_law(Task)
def step_size_limit(task: Task, *, lam: float) -> Prediction:
    r"""The largest step for which gradient descent is stable at (k*, v*): 2 over the stiffest rate of the flow.

    Source: derived here.  Status: exact.

    >>> round(step_size_limit(d=400, L=10, lam=0.1), 4)
    0.0047
    """
    return Prediction(formula.step_limit(formula.setting(task), positive("lam", lam)))


def _slopes(law: formula.Setting, lam: float) -> tuple[float, float]:
    """The numbers c and b."""
    s = lam * law.gamma
    return lam * law.mu / math.sqrt(1 + 2 * s**2), math.sqrt(1 + 4 * s**2)
