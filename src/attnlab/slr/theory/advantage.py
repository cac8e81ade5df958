r"""Population risks of attention with different activations (arXiv:2509.21936), by quadrature.

==============  =======================================================================
symbol          meaning
==============  =======================================================================
chi_l           X_l.k*, the mark of token l; eps is the location
nu              strength of the mark
sigma_l         the weight attention gives to token l, from the scores m chi_l + c
K               number of informative tokens
E               excess risk, 1 for the predictor zero
==============  =======================================================================

For the best read-out v, :math:`E = 1 - (\mathbb{E}\sum_{j\in J}\sigma_j)^2/(K\,\mathbb{E}\sum_l\sigma_l^2)`. What
depends on the law is in :mod:`attnlab.slr.laws`, what depends on the activation in :mod:`attnlab.slr.activations`.
"""

from __future__ import annotations

from attnlab.common.prediction import Prediction
from attnlab.slr.activations import Activation, Linear, activation_of
from attnlab.slr.task import Task
from attnlab.slr.theory.follow_up import check, in_any_dimension
from attnlab.slr.theory.population import bayes_risk


@in_any_dimension
def bayes_attention_risk(task: Task) -> Prediction:
    r"""Excess risk of the Bayes predictor, the posterior mean of the output over the locations.

    .. math:: E = 1 - \mathbb{E}\sum_l p_l^2 = 1 - \mathbb{E}\,p_\epsilon, \qquad p = \mathrm{softmax}(c_\nu\chi),
              \quad c_\nu = \sqrt\nu \text{ (spiked)},\ \nu \text{ (max)}

    for one location. Softmax attention with :math:`k = c_\nu k^*` is this predictor, so it is also the best softmax
    risk. The risk is computed as a sum of positive terms: the relative error is below 1e-9 for every strength. With
    several locations the posterior is not a softmax, and the risk is an average over draws (:func:`bayes_risk`).

    Source: arXiv:2509.21936, proposition 4.2; this quadrature derived here.  Status: exact, up to the stated error.

    >>> round(bayes_attention_risk(nu=5.0, L=2), 6)
    0.084397
    """
    check(task, "bayes_attention_risk", several=True, lengths=True)
    found = bayes_risk(task)
    return Prediction(float(found) - task.noise_std**2, found.error, detail=found.detail)


@in_any_dimension
def linear_attention_risk(task: Task) -> Prediction:
    r"""Excess risk of the best linear attention, :math:`\sigma_l = 1 + m\chi_l`.

    .. math:: E = 1 - \frac{K^2B + A^2 N - 2KAS}{K(NB - S^2)},\quad A = \mathbb{E}\sum_J\chi_j,\
              S = \mathbb{E}\sum\chi_l,\ B = \mathbb{E}\sum\chi_l^2,\ N = \mathbb{E}L

    For the spiked law and K = 1 it is :math:`L(L-1)/(L^2 + \nu(L-1))`; for the max law
    :math:`1 - (1 + A^2)/\mathbb{E}L`. Only the mean length matters for the spiked law.

    Source: arXiv:2509.21936, section 4, for K = 1; derived here.  Status: exact.

    >>> round(linear_attention_risk(nu=5.0, L=3), 6)
    0.315789
    """
    return attention_risk(task, Linear())


@in_any_dimension
def attention_risk(task: Task, activation: str | Activation) -> Prediction:
    r"""Smallest excess risk at population level of attention with a given activation, over the scale of its scores.

    ``activation``: a name (``softmax``, ``linear``, ``softplus``, ``erf``, ``raised_erf``, ``offset_erf``) or an
    object (:mod:`attnlab.slr.activations`). ``detail`` has the best scale and offset and the residual, the slope of the
    risk there. Under the max law softplus needs an infinite nu. ``converged`` is False where the best scale lies at the
    end of the search; ``error`` is then what the last factor of two in the scale brought.

    Source: arXiv:2509.21936, section 4, for K = 1; derived here.  Status: exact, up to quadrature and a numerical
    minimum.

    >>> round(attention_risk("offset_erf", nu=5.0, L=3), 3)
    0.262
    """
    found = activation_of(activation)
    check(task, "attention_risk", several=True, lengths=True)
    best = found.best(task.law_in_force, task.sizes, task.locations)
    detail = {"scale": best.scale, "offset": best.offset, "residual": best.residual}
    return Prediction(best.risk, best.error, converged=best.converged, detail=detail)
