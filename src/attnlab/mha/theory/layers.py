"""Moments of logits and sums, agreement of heads, and the information bound."""

from __future__ import annotations

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import integer, positive
from attnlab.mha.engine.normal_equations import normal_equations
from attnlab.mha.engine.variable_projection import regress
from attnlab.mha.layer import Rows, attention
from attnlab.mha.task import Task


@from_law(Task, "d", "n_heads", k=2)
def logit_moments(task: Task) -> Prediction:
    r"""For each head: variance of a logit between two tokens, mean and variance of a token's logit with itself (signs).

    .. math::
        \mathrm{Var}(x_a \Theta x_b^\top) = \|\Theta\|_F^2, \quad
        \mathbb{E}\, x_a \Theta x_a^\top = \mathrm{tr}\,\Theta, \quad
        \mathrm{Var}(x_a \Theta x_a^\top) = \sum_{p<q} (\Theta_{pq} + \Theta_{qp})^2

    The value has shape ``(m, 3)``.

    Source: derived here.  Status: exact.

    >>> heads = np.diag([1.0, 2.0])[None], np.eye(2)[None]
    >>> logit_moments(d=2, n_heads=1, planted=heads)[0]
    array([5., 3., 0.])
    """
    theta = task.Theta
    mixed = np.triu(theta + theta.transpose(0, 2, 1), 1)
    squares, own = (np.sum(a**2, axis=(1, 2)) for a in (theta, mixed))
    return Prediction(np.stack([squares, np.trace(theta, axis1=1, axis2=2), own], axis=1))


@from_law(Task, "d", "k", "n_heads")
def crude_sum_mean(task: Task) -> Prediction:
    r"""Mean of the crude estimate of the sum of projections, to first order in Theta.

    .. math:: \sum_i \Big[I + \tfrac{k-1}{k} \Theta_i - \tfrac{2(k-1)}{k^2} \mathrm{diag}(\Theta_i)\Big] W_i

    Source: derived here.  Status: asymptotic (error of second order in rho).
    """
    theta, k = task.Theta, task.k
    diagonal = np.einsum("ipp->ip", theta)[:, :, None] * np.eye(task.d)
    factor = np.eye(task.d) + (k - 1) / k * theta - 2 * (k - 1) / k**2 * diagonal
    return Prediction(np.einsum("ipq,iqs->ps", factor, task.W), status="asymptotic")


@from_law(Task, "n_heads", "k", "rho", d=2)
def agreement_probability(task: Task, delta: float) -> Prediction:
    r"""Probability that all heads agree on a row, their log-odds being within delta of head one's.

    With Gaussian logits of variance rho^2 the (m-1)(k-1) differences have covariance
    :math:`(I + 11^\top)_{m-1} \otimes \rho^2 (I + 11^\top)_{k-1}`, so for small delta

    .. math:: P \approx \Big(\frac{2\delta}{\sqrt{2\pi}\,\rho}\Big)^{(m-1)(k-1)} m^{-(k-1)/2}\, k^{-(m-1)/2} .

    Source: derived here; the exponent is the reason why fully agreeing rows become rare (arXiv:2402.04084).
    Status: asymptotic (delta << rho, many comparable singular values, incoherent heads).

    >>> round(agreement_probability(0.1, n_heads=2, k=2, rho=4.0), 5)
    0.00997
    """
    m, k, rho = task.n_heads, integer("k", task.k, low=2), task.rho
    density = (2 * positive("delta", delta) / (np.sqrt(2 * np.pi) * rho)) ** ((m - 1) * (k - 1))
    return Prediction(float(min(1.0, density * m ** (-(k - 1) / 2) * k ** (-(m - 1) / 2))), status="asymptotic")


@from_law(Task, "noise_std", "d", "k", "n_heads")
def cramer_rao(task: Task, X: ArrayLike) -> Prediction:
    r"""Smallest rms relative error of each head that unbiased estimation from these tokens allows.

    .. math::
        \frac{\sigma}{\|\Theta_i\|_F} \sqrt{\mathrm{tr}\,(H^{-1})_{ii}}, \qquad
        H = J_\Theta^\top (I - P_Z) J_\Theta

    with H the information about Theta once W is eliminated. Least squares attains it as n grows; errors fall as
    :math:`\sigma/\sqrt n`.

    Source: derived here.  Status: bound, asymptotically attained.
    """
    theta, w = task.layer
    tokens = check_tokens(X, n_tokens=task.k, d=task.d)
    n, k, d = tokens.shape
    rows = Rows(tokens.reshape(n * k, d), np.repeat(tokens, k, axis=0), attention(tokens, theta, w).reshape(n * k, -1))
    # W is eliminated: the inverse of this Schur complement is Theta's block of the inverse of the whole.
    information = normal_equations(rows, theta, regress(rows, theta)).H
    variances = np.diag(np.linalg.inv(information)).reshape(len(theta), -1).sum(axis=1)
    return Prediction(task.noise_std * np.sqrt(variances) / np.linalg.norm(theta, axis=(1, 2)), status="bound")
