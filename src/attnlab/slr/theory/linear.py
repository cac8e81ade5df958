r"""The learning curve of linear regression on all tokens at once.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
p           L d, number of coefficients
s           second moment of a token's entry, (gamma^2 + L - 1)/L; along k* it is s + nu/L
kappa       effective ridge: sum_i s_i/(s_i + kappa) + n ridge/kappa = n over the p entries
spent       (1/n) sum_i (s_i/(s_i + kappa))^2, the share of the examples spent on noise
R           risk of the best linear predictor (:func:`attnlab.slr.theory.linear_risk`)
==========  =======================================================================================
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from attnlab.common.validation import integer, nonnegative, one_of, positive
from attnlab.slr.task import LAWS
from attnlab.slr.theory.population import linear_risk


def linear_learning_curve(
    n: float,
    *,
    d: int,
    L: int,
    gamma: float = 2**-0.5,
    noise_std: float = 0.0,
    nu: float | None = None,
    law: str = "spiked",
    ridge: float = 0.0,
) -> float:
    r"""Test error of (ridge) linear regression on the L d entries of a sequence after n examples.

    .. math:: \mathcal E = \frac{R + \beta^2 s\,\kappa^2/(s + \kappa)^2}{1 - \mathrm{spent}}, \qquad
              \beta^2 s = \epsilon^2 + \gamma^2 - R

    since the best coefficients lie along v*, where every token has second moment s. Without ridge and with n > p this
    is :math:`R/(1 - p/n)`; at n = p it diverges, below it least squares of minimum norm interpolates.

    Source: omniscient risk estimate (arXiv:2006.13198, arXiv:2110.03922) with the second moments derived here.
    Status: asymptotic (n and p large together).

    >>> round(float(linear_learning_curve(400, d=20, L=5)), 4)  # R = 0.4444 and p/n = 1/4
    0.5926
    """
    d, L, n = integer("d", d, low=2), integer("L", L, low=2), positive("n", n)
    ridge, strength = nonnegative("ridge", ridge), d / 2 if nu is None else nonnegative("nu", nu)
    one_of("law", law, LAWS)
    # under the max law all tokens are standard Gaussian
    mark = strength / L if law == "spiked" else 0.0
    best = float(linear_risk(L=L, gamma=gamma, noise_std=noise_std))
    s = (gamma**2 + L - 1) / L
    moment, count = np.array([s, s + mark]), np.array([L * (d - 1), L])
    kappa = _effective_ridge(moment, count, n, ridge)
    share = moment / (moment + kappa)
    spent = float(count @ share**2) / n
    bias = (noise_std**2 + gamma**2 - best) * (1 - share[0]) ** 2
    return float("inf") if spent >= 1 else (best + bias) / (1 - spent)


def _effective_ridge(moment: np.ndarray, count: np.ndarray, n: float, ridge: float) -> float:
    """kappa >= 0; zero for least squares with more examples than coefficients."""
    if ridge == 0 and n >= count.sum():
        return 0.0

    def excess(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        return float(count @ (moment / (moment + kappa)) + n * ridge / kappa - n)

    high = np.log((count @ moment) / n + ridge) + 1.0
    return float(np.exp(optimize.brentq(excess, -40.0, high, xtol=1e-12)))
