r"""The learning curve of linear regression on all tokens at once.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
p           L d, number of coefficients
s           second moment of a token's entry, (K gamma^2 + L - K)/L; along k* the mark is added
kappa       effective ridge: sum_i s_i/(s_i + kappa) + n ridge/kappa = n over the p entries
spent       (1/n) sum_i (s_i/(s_i + kappa))^2, the share of the examples spent on noise
R           risk of the best linear predictor (:func:`attnlab.slr.theory.linear_risk`)
==========  =======================================================================================
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import nonnegative, positive
from attnlab.slr.task import Task
from attnlab.slr.theory.population import linear_risk, null_risk


@from_law(Task)
def linear_learning_curve(task: Task, n: float, *, ridge: float = 0.0) -> Prediction:
    r"""Test error of (ridge) linear regression on the L d entries of a sequence after n examples.

    .. math:: \mathcal E = \frac{R + \beta^2 s\,\kappa^2/(s + \kappa)^2}{1 - \mathrm{spent}}, \qquad
              \beta^2 s = \epsilon^2 + \gamma^2 - R

    since the best coefficients lie along v*, where every token has second moment s. Without ridge and with n > p this
    is :math:`R/(1 - p/n)`; at n = p it diverges, below it least squares of minimum norm interpolates.

    Source: omniscient risk estimate (arXiv:2006.13198, arXiv:2110.03922) with the second moments derived here.
    Status: asymptotic (n and p large together).

    >>> round(linear_learning_curve(400, d=20, L=5), 4)  # R = 0.4444 and p/n = 1/4
    0.5926
    """
    n, ridge = positive("n", n), nonnegative("ridge", ridge)
    best = float(linear_risk(task))
    moment, count = task.law_in_force.token_moments(task.L, task.locations, task.d)
    kappa = _effective_ridge(moment, count, n, ridge)
    share = moment / (moment + kappa)
    spent = float(count @ share**2) / n
    # Entry 0 is the second moment along v*, where the best coefficients lie.
    bias = (float(null_risk(task)) - best) * (1 - share[0]) ** 2
    return Prediction(float("inf") if spent >= 1 else (best + bias) / (1 - spent), status="asymptotic")


def _effective_ridge(moment: np.ndarray, count: np.ndarray, n: float, ridge: float) -> float:
    """kappa >= 0; zero for least squares with more examples than coefficients."""
    if ridge == 0 and n >= count.sum():
        return 0.0

    def excess(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        return float(count @ (moment / (moment + kappa)) + n * ridge / kappa - n)

    # In log kappa, since kappa runs over many decades; at the upper end the two terms sum to n / e at most.
    high = np.log((count @ moment) / n + ridge) + 1.0
    return float(np.exp(optimize.brentq(excess, -40.0, high, xtol=1e-12)))
