r"""How often the right token is found, and the sign that it carries is read, under the spiked law with gamma = 1.

===========  ==================================================================================
symbol       meaning
===========  ==================================================================================
chi_l        score of token l for the location, N(0, 1), with mean sqrt(nu) at the informative one
z_l          score of token l for the value, N(s_l margin / 2, 1), signs s_l fair coins
p            softmax(sqrt(nu) chi), the posterior of the location
===========  ==================================================================================

These are the numbers that probes of a network's hidden states have, if the states are what the law says.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from attnlab.common.gaussian import normal_cdf, normal_pdf
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import integer, real
from attnlab.slr.task import Task
from attnlab.slr.theory.follow_up import check, in_any_dimension


@in_any_dimension
def location_accuracy(task: Task) -> Prediction:
    r"""Probability that the token with the largest mark is the informative one.

    .. math:: \int \varphi(x - \sqrt\nu)\,\Phi(x)^{L-1}\,dx

    Source: derived here.  Status: exact.

    >>> round(location_accuracy(nu=4.0, L=3), 4)
    0.8658
    """
    shift = _shift(task, "location_accuracy")
    # Equal weights: the integrand is analytic and vanishes at both ends, so the error is exponentially small.
    x = np.arange(-12.0, 12.0, 0.02)
    return Prediction(float(0.02 * normal_pdf(x) @ normal_cdf(x + shift) ** (task.L - 1)), 1e-12)


@in_any_dimension
def reading_accuracy(
    task: Task,
    margin: float,
    *,
    others: float | None = None,
    attention: bool = True,
    n_draws: int = 100_000,
    seed: Seed = 0,
) -> Prediction:
    r"""Probability that the sign of :math:`\sum_l p_l z_l` is that of the informative token.

    With ``attention=False`` the weights are equal, as for a linear read-out of all tokens, which cannot use the
    location: for a large margin it is the share of majorities that the informative token agrees with, 3/4 for L = 3.
    ``others`` is the margin of the tokens that are not informative, where it differs. ``error`` is one standard error.

    Source: derived here.  Status: exact up to the stated Monte Carlo error.
    """
    shift, margin = _shift(task, "reading_accuracy"), real("margin", margin)
    rng = stream(seed, "theory", "slr", "reading")
    chi, noise = rng.standard_normal((2, integer("n_draws", n_draws, low=2), task.L))
    sign = rng.choice([-1.0, 1.0], chi.shape)
    chi[:, 0] += shift
    weight = special.softmax(shift * chi, axis=1) if attention else np.ones_like(chi)
    margins = np.full(task.L, margin if others is None else real("others", others))
    margins[0] = margin
    right = np.sign(np.sum(weight * (noise + margins / 2 * sign), axis=1)) == sign[:, 0]
    return Prediction(float(right.mean()), float(right.std() / math.sqrt(n_draws)))


def _shift(task: Task, name: str) -> float:
    check(task, name, several=False, lengths=False)
    if task.law_in_force.name != "spiked":
        raise ValueError(f"law must be 'spiked' for {name}, got {task.law!r}")
    return math.sqrt(task.strength)
