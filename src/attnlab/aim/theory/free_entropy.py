r"""Free entropy per d^2, whose stationary point is the state evolution.

==========  ==========================================================================
symbol      meaning
==========  ==========================================================================
Phi         q_hat (Q_0 - q)/4 - I(1/q_hat) + alpha Psi_out(q)
I(Delta)    mutual information between S and S + sqrt(Delta) GOE, per d^2
Psi_out     E log Z(y | omega, V), V = Q_0 - q
==========  ==========================================================================
"""

from __future__ import annotations

import numpy as np

from attnlab.aim.channels import NotSolved
from attnlab.aim.spectrum import check_rho, denoising_mmse, edges, quadrature
from attnlab.aim.task import Task
from attnlab.aim.theory.output import LIMIT
from attnlab.common.gaussian import gauss_legendre
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import positive, real


def mutual_information(noise: float, rho: float) -> Prediction:
    r"""I(Delta), per d^2, by the I-MMSE relation :math:`I = \tfrac14\int_0^{1/\Delta} F(1/s)\,ds`.

    Source: D. Guo, S. Shamai, S. Verdu (2005).  Status: exact as d -> infinity.

    >>> round(float(mutual_information(0.6, rho=0.5)), 9)
    0.210162543
    """
    noise, rho = positive("noise", noise), check_rho(rho)
    if np.isinf(rho):
        return Prediction(float(np.log1p(1 / noise) / 4))
    nodes, weights = gauss_legendre(80)
    # Panels that double in length: F bends at snr of order 1 and, with two bulks, where they merge.
    ends = np.concatenate([[0.0], np.geomspace(min(0.25, 1 / noise), 1 / noise, max(2, int(np.log2(4 / noise)) + 1))])
    ends = np.unique(ends)
    low, length = ends[:-1, None], np.diff(ends)[:, None]
    return Prediction(float((length * weights * denoising_mmse(1 / (low + length * nodes), rho)).sum() / 4))


def log_energy_information(noise: float, rho: float) -> Prediction:
    r"""I(Delta) from the spectrum: :math:`\tfrac12\iint\log|x - y|\,\mu\mu - \tfrac14\log\Delta + \tfrac18`, for one
    bulk.

    On x = c + h cos(phi) the double integral is :math:`\log(h/2) - 2\sum_n m_n^2/n` with m_n the Chebyshev
    moments of mu.

    Source: matrix denoising via the HCIZ integral; Chebyshev form derived here.  Status: exact as d -> infinity.
    """
    noise, rho = positive("noise", noise), check_rho(rho)
    ends = edges(noise, rho)
    if len(ends) > 2:
        raise ValueError(
            f"the log-energy form is for a spectrum in one piece, noise={noise:g}, rho={rho:g} has two bulks"
        )
    # More nodes than the highest moment has oscillations.
    bulk, half, centre = quadrature(noise, rho, 2000), np.ptp(ends) / 2, ends.mean()
    angle, order = np.arccos(np.clip((bulk.x[0] - centre) / half, -1, 1)), np.arange(1, 1000)
    moments = np.cos(order[:, None] * angle) @ (bulk.weights[0] * bulk.density[0])
    energy = np.log(half / 2) - 2 * (moments**2 / order).sum()
    return Prediction(float(energy / 2 - np.log(noise) / 4 + 1 / 8))


@from_law(Task, "tokens", "channel", "noise", **LIMIT)
def output_entropy(task: Task, q: float, V: float) -> Prediction:
    r"""Psi_out = E log Z, up to a constant: -(k/2) log(V + noise) for exact channels, 2 sum_r E[P log P] for hardmax
    with two tied tokens.

    Source: arXiv:2506.01582; derived here.  Status: exact.
    """
    value, error = task.law.entropy(V, q + V, task.layout)
    return Prediction(value, error)


@from_law(Task, "rho", "tokens", "channel", "noise", **LIMIT)
def free_entropy(task: Task, q: float, q_hat: float, alpha: float) -> Prediction:
    r""":math:`\Phi(q, \hat q) = \hat q(Q_0 - q)/4 - I(1/\hat q) + \alpha\Psi_{out}(q)`, stationary at the state
    evolution's fixed point; tied attention.

    Source: arXiv:2506.01582.  Status: asymptotic (d -> infinity).
    """
    if not task.tied:
        raise NotSolved("the free entropy is written for tied attention, got tied=False")
    q_hat, alpha = positive("q_hat", q_hat), positive("alpha", alpha)
    Q = task.prior.second_moment(task.rho)
    q = real("q", q, low=0, high=Q, open_high=True)
    psi, error = task.law.entropy(Q - q, Q, task.layout)
    value = q_hat * (Q - q) / 4 - float(mutual_information(1 / q_hat, task.rho)) + alpha * psi
    return Prediction(value, alpha * error, "asymptotic")
