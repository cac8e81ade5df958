r"""What a bias buys: functions of the correlation <x_0, x_i> at a cost that does not grow with the dimension.

==========  =====================================================================================
symbol      meaning
==========  =====================================================================================
t           <x_0, x_i>
mu_k(t)     E[relu(t + g) He_k(g)]
b_k         coefficients of the class F(t) = sum_k b_k mu_k(t), with cost sum_k k! 4^k b_k^2
==========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import optimize, special

from attnlab.common.gaussian import normal_cdf, normal_pdf
from attnlab.common.solution import Solution
from attnlab.common.validation import integer, real
from attnlab.rfa.series import relu_hermite
from attnlab.rfa.sphere import inner_product_law

TERMS = 60


def dimension_free_cost(
    function: Callable[[np.ndarray], np.ndarray], d: int, eps: float, *, terms: int = TERMS
) -> Solution[float]:
    r"""Least cost of a dimension-free function within relative squared error eps of F(t), in L2 of the law of t.

    .. math:: \min_b \sum_k k!\,4^k b_k^2 \quad\text{such that}\quad
              \mathbb{E}\Big[\big(F(t) - \textstyle\sum_k b_k \mu_k(t)\big)^2\Big] \le \varepsilon\, \mathbb{E}[F(t)^2]

    A monomial of degree two or more is not in the class itself (its members vanish at minus infinity and grow at most
    linearly), so the cost at eps = 0 is infinite and the approximate cost is the meaningful one.

    Source: derived here from the kernel expansion of the biased ReLU.  Status: exact for the class named.
    """
    d, eps = integer("d", d, low=2), real("eps", eps, low=0, high=1, open_low=True, open_high=True)
    t, w = inner_product_law(d)
    # Weights this small are lost in every sum.
    keep = w > 1e-20
    t, w = t[keep], w[keep]
    k = np.arange(terms)
    # Columns scaled to unit cost: F = A c with cost |c|^2, rows weighted by the law of t.
    price = np.exp(0.5 * (special.gammaln(k + 1) + k * np.log(4)))
    A = np.sqrt(w)[:, None] * (relu_hermite(terms - 1, t) / price[:, None]).T
    target = np.sqrt(w) * function(t)
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    projected = U.T @ target
    outside = float(target @ target - projected @ projected)
    allowed = eps * float(target @ target)

    def excess(log_shift: float) -> float:
        return outside + float(np.sum((projected / (1 + s**2 * np.exp(-log_shift))) ** 2)) - allowed

    # Singular values below 1e-14 are rounding, and a smaller shift would only fit it.
    low, high = np.log(1e-28), np.log(s[0] ** 2) + 40
    if excess(low) > 0:
        return Solution(np.inf, False, 0, excess(low) / allowed)
    found = optimize.brentq(excess, low, high, xtol=1e-12, full_output=True)
    # The least |c| for a given residual is a ridge solution, at the shift where the residual is the allowed one.
    c = s * projected / (s**2 + np.exp(found[0]))
    return Solution(float(c @ c), bool(found[1].converged), int(found[1].iterations), abs(excess(found[0])) / allowed)


def biased_trace_bound(d: int, scale: float = 1.0) -> float:
    r"""A bound on E K(x, x) of BRFA with bias c I.

    .. math:: 2\,\mathbb{E}_t\mathbb{E}_g[\mathrm{relu}(ct + g)^2]
              = 2\,\mathbb{E}_t[(1+c^2t^2)\Phi(ct) + ct\,\varphi(ct)]

    Source: derived here (Jensen over the keys).  Status: bound.
    """
    t, w = inner_product_law(integer("d", d, low=2))
    m = real("scale", scale) * t
    return float(2 * w @ ((1 + m**2) * normal_cdf(m) + m * normal_pdf(m)))
