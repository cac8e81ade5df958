r"""Untied self-attention: the errors of the symmetric and the antisymmetric part of Theta.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
V_s, V_a    2 |D_s|^2/d and 2 |D_a|^2/d, D = Theta - Theta_hat;  V = (V_s + V_a)/2 is the error M
g_s, g_a    parts of g = grad_omega log Z along symmetric and antisymmetric directions of h
gamma       1/V - 1/Delta: what the prior adds to the precision of both parts
==========  =========================================================================================

    V = F(Delta),  V_s = 1/(gamma + 2 alpha E|g_s|^2),  V_a = 1/(gamma + 2 alpha E|g_a|^2),  V = (V_s + V_a)/2

h_aa sees only the symmetric part of Theta, so that its sensing matrices are not isotropic. For noiseless softmax and
linear outputs V is nevertheless that of isotropic ones. Source: derived here.  Status: conjectured exact for AMP with
the rotationally invariant estimator; not proved optimal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from attnlab.aim.task import Task


class Parts(NamedTuple):
    """One point of the curve: alpha and the two errors at the effective noise Delta."""

    alpha: float
    Vs: float
    Va: float


def parts_at(task: Task, delta: float) -> Parts:
    """Solve for V_s at one effective noise: both equations must give the same alpha."""
    V = float(task.prior.denoising_mmse(delta, task.rho))
    gamma = 1 / V - 1 / delta

    def gap(share: float) -> float:
        Vs, Va = share * V, (2 - share) * V
        symmetric, antisymmetric = task.law.strength_parts(Vs, Va, task.layout)
        # (1/V_s - gamma)/E|g_s|^2 and the same of a are both 2 alpha; multiplied out.
        return (1 / Vs - gamma) * antisymmetric - (1 / Va - gamma) * symmetric

    # the symmetric part is seen better, by the diagonal of h: V_s <= V
    share = 1.0 if gap(1.0) >= 0 else float(brentq(gap, _lowest(gap), 1.0, xtol=1e-10, rtol=1e-12))
    Vs = share * V
    symmetric, _ = task.law.strength_parts(Vs, 2 * V - Vs, task.layout)
    return Parts((1 / Vs - gamma) / (2 * symmetric), Vs, 2 * V - Vs)


def _lowest(gap: object) -> float:
    """A share of V below the root: halved until the gap is positive."""
    low = 0.5
    while gap(low) < 0 and low > 1e-6:  # type: ignore[operator]
        low /= 2
    return low


def solve_parts(task: Task, alpha: float, first: float) -> tuple[float, Parts, bool]:
    """Delta, the errors there, and whether a bracket was found, from the isotropic solution as the first guess."""

    def gap(log_delta: float) -> float:
        return float(np.log(parts_at(task, float(np.exp(log_delta))).alpha / alpha))

    low = high = float(np.log(first))
    for width in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2):
        if gap(low) < 0:  # alpha falls with Delta
            low -= width
        elif gap(high) > 0:
            high += width
        else:
            root = float(brentq(gap, low, high, xtol=1e-9)) if high > low else low
            return float(np.exp(root)), parts_at(task, float(np.exp(root))), True
    return first, parts_at(task, first), False
