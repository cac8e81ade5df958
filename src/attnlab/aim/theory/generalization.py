r"""Error of predicting y on fresh sequences, E|y - y_hat|_F^2 (sum over the T^2 entries).

==========  ==========================================================================
symbol      meaning
==========  ==========================================================================
omega, z    z ~ N(omega, V I) given omega ~ N(0, q I), whitened indices
Bayes       y_hat = E[y | omega]
plug-in     y_hat = the output at the estimated indices omega
==========  ==========================================================================
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from attnlab.aim.channels import Channel, Hardmax, Linear, Softmax, as_channel
from attnlab.aim.points import normal_points
from attnlab.aim.spectrum import check_rho, second_moment
from attnlab.aim.theory.output import check_tokens_for
from attnlab.common.validation import one_of, real

POINTS = 2**16


def generalization_error(
    error: float,
    rho: float,
    tokens: int = 2,
    channel: str | Channel = "softmax",
    *,
    beta: float = 1.0,
    predictor: str = "bayes",
) -> float:
    r""":math:`\mathbb{E}\|y - \hat y\|_F^2` on fresh data at estimation error ``error`` (q = Q_0 - error), noiseless
    outputs.

    Bayes: E|y|^2 - E<y, y'>, two outputs that share omega; plug-in: E|y(z) - y(omega)|^2. Two tokens: softmax rows are
    sigmoids of N(0, 3 Q_0) with overlap 3 q; hardmax 2 arccos(q/Q_0)/pi (Bayes) and 4 arccos(sqrt(q/Q_0))/pi
    (plug-in).

    Source: arXiv:2506.01582; closed forms derived here.  Status: asymptotic (d -> infinity); quasi-Monte Carlo to 1e-3
    for T >= 3.

    >>> round(generalization_error(0.392196, rho=0.5), 5)
    0.12085
    """
    rho = check_rho(rho)
    Q = second_moment(rho)
    V = real("error", error, low=0, high=Q)
    law = as_channel(channel, beta=beta)
    tokens = check_tokens_for(law, tokens)
    one_of("predictor", predictor, ("bayes", "plug-in"))
    if isinstance(law, Linear):
        return float(V * tokens * (tokens + 1))  # diagonal entries have variance 2V, both predictors agree
    if tokens == 2 and isinstance(law, Softmax):
        return _two_sigmoids(Q - V, V, law.beta, predictor)
    if tokens == 2 and isinstance(law, Hardmax):
        share = np.clip((Q - V) / Q, 0.0, 1.0)
        return float(2 * np.arccos(share) / np.pi if predictor == "bayes" else 4 * np.arccos(np.sqrt(share)) / np.pi)
    return _sampled_rows(law, Q - V, V, tokens, predictor)


def _two_sigmoids(q: float, V: float, beta: float, predictor: str) -> float:
    """4 E Var[p | omega] (Bayes) or 4 E (p - p_hat)^2 (plug-in), p the sigmoid of a row's logit difference."""
    (centre, w), (shift, v) = (_trapezoid(np.sqrt(3 * variance), beta) for variance in (q, V))
    p = expit(beta * (centre[:, None] + shift))
    best = p @ v if predictor == "bayes" else expit(beta * centre)
    return float(4 * (w @ ((p - best[:, None]) ** 2 @ v)))


def _trapezoid(sigma: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for N(0, sigma^2) against functions of sigmoid(beta x), whose poles are pi/beta away."""
    half = int(np.clip(9 * sigma * max(beta / 0.6, 2.5 / max(sigma, 1e-12)), 1, 2000))
    x = np.linspace(-9, 9, 2 * half + 1)
    weights = np.exp(-(x**2) / 2)
    return sigma * x, weights / weights.sum()


def _sampled_rows(channel: Channel, q: float, V: float, tokens: int, predictor: str) -> float:
    """T times the error of one row, whose T logits are independent: variance 2 on the diagonal, 1 elsewhere."""
    scale = np.r_[np.sqrt(2.0), np.ones(tokens - 1)]
    normals = normal_points(3 * tokens, POINTS).reshape(POINTS, 3, tokens) * scale
    omega = np.sqrt(q) * normals[:, 0]
    first, second = (_row(channel, omega + np.sqrt(V) * normals[:, i]) for i in (1, 2))
    if predictor == "plug-in":
        return float(tokens * ((first - _row(channel, omega)) ** 2).sum(axis=1).mean())
    return float(tokens * ((first - second) ** 2).sum(axis=1).mean() / 2)


def _row(channel: Channel, logits: np.ndarray) -> np.ndarray:
    """One output row; channels act on square arrays, so the row is repeated and the first copy kept."""
    tokens = logits.shape[-1]
    return channel.output(np.broadcast_to(logits[:, None, :], (len(logits), tokens, tokens)))[:, 0]
