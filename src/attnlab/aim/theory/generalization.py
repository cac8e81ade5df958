r"""Error of predicting y on fresh sequences, E|y - y_hat|_F^2 (sum over the entries).

==========  ==========================================================================
symbol      meaning
==========  ==========================================================================
omega, z    z ~ N(omega, V I) given omega ~ N(0, q I), whitened indices
Bayes       y_hat = E[y | omega]
plug-in     y_hat = the (mean) output at the estimated indices omega
==========  ==========================================================================
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from attnlab.aim.channels.residual import Residual
from attnlab.aim.task import Task
from attnlab.aim.theory.output import LIMIT
from attnlab.aim.theory.parts import parts_at
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import one_of, real

PREDICTORS = ("bayes", "plug-in")


@from_law(Task, "rho", "tokens", "channel", **LIMIT)
def generalization_error(task: Task, error: float, *, predictor: str = "bayes") -> Prediction:
    r""":math:`\mathbb{E}\|y - \hat y\|_F^2` on fresh data at estimation error ``error`` (q = Q_0 - error).

    Bayes: :math:`\tfrac12\mathbb{E}|y - y'|^2`, two outputs that share omega; plug-in: E|y(z) - y(omega)|^2. The noise
    of the channel is part of y. Two visible entries in a row: softmax rows are sigmoids (tied, no noise: of N(0, 3 Q_0)
    with overlap 3 q), hardmax rows have arccos(q/Q_0)/pi (Bayes) and 2 arccos(sqrt(q/Q_0))/pi (plug-in). Untied
    self-attention: h_aa has the residual variance V_s, the others V.

    Source: arXiv:2506.01582; closed forms derived here.  Status: asymptotic (d -> infinity); longer rows and own
    channels by quasi-Monte Carlo, with its standard error.

    >>> round(float(generalization_error(0.392196, rho=0.5)), 5)
    0.12085
    """
    one_of("predictor", predictor, PREDICTORS)
    value, spread = task.law.generalization(residual(task, error), predictor)
    return Prediction(value, spread, "asymptotic")


def residual(task: Task, error: float) -> Residual:
    """What is left unknown of the indices at an estimation error."""
    total = task.prior.second_moment(task.rho)
    V = real("error", float(error), low=0, high=total)  # a Prediction is a number too
    # At both ends the two parts are equal, and no finite Delta belongs to V.
    if not task.layout.two_variances or V in (0.0, total):
        return Residual(task.layout, total, V, V)

    def gap(log_delta: float) -> float:
        return float(task.prior.denoising_mmse(np.exp(log_delta), task.rho)) - V

    parts = parts_at(task, float(np.exp(brentq(gap, np.log(1e-12), np.log(1e12), xtol=1e-12))))
    return Residual(task.layout, total, parts.Vs, parts.Va)
