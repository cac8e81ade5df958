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
from scipy.special import ndtr, xlogy

from attnlab.aim.channels import Channel, Hardmax, as_channel
from attnlab.aim.spectrum import check_rho, denoising_mmse, edges, quadrature, second_moment
from attnlab.aim.theory.output import CORRELATIONS, REACH, check_tokens_for
from attnlab.common.gaussian import (
    bivariate_normal_cdf,
    bivariate_normal_pdf,
    gauss_hermite,
    gauss_legendre,
    normal_pdf,
)
from attnlab.common.validation import positive, real


def mutual_information(noise: float, rho: float) -> float:
    r"""I(Delta), per d^2, by the I-MMSE relation :math:`I = \tfrac14\int_0^{1/\Delta} F(1/s)\,ds`.

    Source: D. Guo, S. Shamai, S. Verdu (2005).  Status: exact as d -> infinity.

    >>> round(mutual_information(0.6, rho=0.5), 9)
    0.210162543
    """
    noise, rho = positive("noise", noise), check_rho(rho)
    if np.isinf(rho):
        return float(np.log1p(1 / noise) / 4)
    nodes, weights = gauss_legendre(80)
    # Panels that double in length: F bends at snr of order 1 and, with two bulks, where they merge.
    ends = np.concatenate([[0.0], np.geomspace(min(0.25, 1 / noise), 1 / noise, max(2, int(np.log2(4 / noise)) + 1))])
    ends = np.unique(ends)
    low, length = ends[:-1, None], np.diff(ends)[:, None]
    return float((length * weights * denoising_mmse(1 / (low + length * nodes), rho)).sum() / 4)


def log_energy_information(noise: float, rho: float) -> float:
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
    bulk, half, centre = quadrature(noise, rho, 2000), np.ptp(ends) / 2, ends.mean()
    angle, order = np.arccos(np.clip((bulk.x[0] - centre) / half, -1, 1)), np.arange(1, 1000)
    moments = np.cos(order[:, None] * angle) @ (bulk.weights[0] * bulk.density[0])
    energy = np.log(half / 2) - 2 * (moments**2 / order).sum()
    return float(energy / 2 - np.log(noise) / 4 + 1 / 8)


def output_entropy(q: float, V: float, tokens: int, channel: str | Channel = "softmax", noise: float = 0.0) -> float:
    r"""Psi_out = E log Z, up to a constant: -(k/2) log(V + noise) for exact channels, 2 sum_r E[P log P] for hardmax
    with two tokens.

    Source: arXiv:2506.01582; derived here.  Status: exact.
    """
    law = as_channel(channel, noise=noise)
    tokens, spread = check_tokens_for(law, tokens), V + law.noise
    k = law.informative(tokens)
    if k is not None:
        return float(-k / 2 * np.log(spread))
    if not isinstance(law, Hardmax) or law.legacy or tokens != 2:
        raise ValueError("the free entropy is known for softmax, linear and, with 2 tokens, hardmax")
    return 2 * sum(_mean_entropy(q / spread, r) for r in CORRELATIONS)


def _mean_entropy(c: float, r: float) -> float:
    """E[P log P], P = Phi_2(k; r), k ~ N(0, c [[1, r], [r, 1]]); split as in the channel strength."""
    if c < 1.5:
        x, w = gauss_hermite(64)
        P = bivariate_normal_cdf(np.sqrt(c) * x[:, None], np.sqrt(c) * (r * x[:, None] + np.sqrt(1 - r**2) * x), r)
        return float(w @ xlogy(P, P) @ w)
    x, w = gauss_legendre(96)
    x, w = REACH * (2 * x - 1), 2 * REACH * w
    P = bivariate_normal_cdf(x[:, None], x[None, :], r)
    law = bivariate_normal_pdf(x[:, None] / np.sqrt(c), x[None, :] / np.sqrt(c), r) / c
    above = ndtr(-(REACH - r * x) / np.sqrt(c * (1 - r**2))) * normal_pdf(x / np.sqrt(c)) / np.sqrt(c)
    return float(w @ (law * xlogy(P, P)) @ w + 2 * (w @ (above * xlogy(ndtr(x), ndtr(x)))))


def free_entropy(
    q: float,
    q_hat: float,
    alpha: float,
    rho: float,
    tokens: int = 2,
    channel: str | Channel = "softmax",
    noise: float = 0.0,
) -> float:
    r""":math:`\Phi(q, \hat q) = \hat q(Q_0 - q)/4 - I(1/\hat q) + \alpha\Psi_{out}(q)`, stationary at the state
    evolution's fixed point.

    Source: arXiv:2506.01582.  Status: asymptotic (d -> infinity).
    """
    rho, q_hat, alpha = check_rho(rho), positive("q_hat", q_hat), positive("alpha", alpha)
    Q = second_moment(rho)
    q = real("q", q, low=0, high=Q, open_high=True)
    psi = output_entropy(q, Q - q, tokens, channel, noise)
    return q_hat * (Q - q) / 4 - mutual_information(1 / q_hat, rho) + alpha * psi
