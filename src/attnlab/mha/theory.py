r"""What can be said about learning a layer before any data are seen.

=============  ====================================================================
symbol         meaning
=============  ====================================================================
m, d, k, o     heads, token width, tokens, output width
rho            head strength, ||Theta_i||_F
delta          precision of agreement, or probability that a certificate is wrong
s, tau         size of a parity, tolerance of a statistical query
sigma, n       label noise, number of examples
=============  ====================================================================
"""

from __future__ import annotations

from math import comb

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import integer, nonnegative, one_of, positive, real
from attnlab.mha.counting import examples_needed, unknowns
from attnlab.mha.hard import parity_heads
from attnlab.mha.layer import Rows, attention, check_layer, distinct_rows
from attnlab.mha.normal_equations import normal_equations
from attnlab.mha.varpro import regress

__all__ = [
    "agreement_probability",
    "certificate_examples",
    "certificate_width",
    "cramer_rao",
    "crude_sum_mean",
    "distinct_rows",
    "examples_needed",
    "logit_moments",
    "parity_trivial_error",
    "query_count",
    "sq_queries",
    "step_flops",
    "tail_probability",
    "unknowns",
]


def logit_moments(Theta: ArrayLike) -> tuple[float, float, float]:
    r"""Variance of a logit between two tokens, and mean and variance of a token's logit with itself, for sign tokens.

    .. math::
        \mathrm{Var}(x_a \Theta x_b^\top) = \|\Theta\|_F^2, \quad
        \mathbb{E}\, x_a \Theta x_a^\top = \mathrm{tr}\,\Theta, \quad
        \mathrm{Var}(x_a \Theta x_a^\top) = \sum_{p<q} (\Theta_{pq} + \Theta_{qp})^2

    Source: derived here.  Status: exact.

    >>> logit_moments(np.diag([1.0, 2.0]))
    (5.0, 3.0, 0.0)
    """
    theta = check_layer(np.asarray(Theta, dtype=float)[None], np.zeros((1, np.shape(Theta)[0], 1)))[0][0]
    mixed = np.triu(theta + theta.T, 1)
    return float(np.sum(theta**2)), float(np.trace(theta)), float(np.sum(mixed**2))


def crude_sum_mean(Theta: ArrayLike, W: ArrayLike, k: int) -> np.ndarray:
    r"""Mean of the crude estimate of the sum of projections, to first order in Theta.

    .. math:: \sum_i \Big[I + \tfrac{k-1}{k} \Theta_i - \tfrac{2(k-1)}{k^2} \mathrm{diag}(\Theta_i)\Big] W_i

    Source: derived here.  Status: asymptotic (error of second order in rho).
    """
    theta, w = check_layer(Theta, W)
    k = integer("k", k, low=1)
    diagonal = np.einsum("ipp->ip", theta)[:, :, None] * np.eye(theta.shape[1])
    factor = np.eye(theta.shape[1]) + (k - 1) / k * theta - 2 * (k - 1) / k**2 * diagonal
    mean: np.ndarray = np.einsum("ipq,iqs->ps", factor, w)
    return mean


def agreement_probability(n_heads: int, k: int, rho: float, delta: float) -> float:
    r"""Probability that all heads agree on a row, their log-odds being within delta of head one's.

    With Gaussian logits of variance rho^2 the (m-1)(k-1) differences have covariance
    :math:`(I + 11^\top)_{m-1} \otimes \rho^2 (I + 11^\top)_{k-1}`, so for small delta

    .. math:: P \approx \Big(\frac{2\delta}{\sqrt{2\pi}\,\rho}\Big)^{(m-1)(k-1)} m^{-(k-1)/2}\, k^{-(m-1)/2} .

    Source: derived here; the exponent is the reason why fully agreeing rows become rare (arXiv:2402.04084).
    Status: asymptotic (delta << rho, many comparable singular values, incoherent heads).

    >>> round(agreement_probability(n_heads=2, k=2, rho=4.0, delta=0.1), 5)
    0.00997
    """
    m, k = integer("n_heads", n_heads, low=1), integer("k", k, low=2)
    rho, delta = positive("rho", rho), positive("delta", delta)
    power = (m - 1) * (k - 1)
    density = (2 * delta / (np.sqrt(2 * np.pi) * rho)) ** power
    return float(min(1.0, density * m ** (-(k - 1) / 2) * k ** (-(m - 1) / 2)))


def sq_queries(d: int, size: int, tau: float) -> float:
    r"""Statistical queries of tolerance tau that a parity layer demands, :math:`\binom{d-1}{s}\tau^2`.

    With fewer no learner is better than the predictor that ignores the secret.
    A query's answer depends on the secret through one Fourier coefficient; by Parseval at most 1/tau^2 secrets move
    it by tau.

    Source: derived here (arXiv:2402.04084 proves its own family hard).  Status: bound.

    >>> sq_queries(d=20, size=8, tau=0.01)
    7.5582
    """
    d, size = integer("d", d, low=2), integer("size", size, low=1)
    return comb(d - 1, size) * real("tau", tau, low=0, high=1) ** 2


def parity_trivial_error(size: int, steepness: float = 2.0) -> float:
    r"""Relative squared error of the best predictor of a parity layer that ignores the secret, :math:`1/(1+\beta^2)`.

    Source: derived here.  Status: exact.

    >>> round(parity_trivial_error(size=6), 3)
    0.348
    """
    return 1 / (1 + parity_heads(integer("size", size, low=1), positive("steepness", steepness))[2] ** 2)


def certificate_width(n: int, bound: float, delta: float = 0.05, variance: float = 0.0) -> float:
    r"""What the empirical Bernstein bound adds to the mean loss of n examples with losses in [0, bound].

    .. math:: \sqrt{2 V \ln(2/\delta)/n} + 7 b \ln(2/\delta)/(3(n-1))

    Source: arXiv:0907.3740, theorem 4.  Status: exact (the width of a bound).
    """
    n = integer("n", n, low=2)
    log = np.log(2 / real("delta", delta, low=0, high=1, open_low=True, open_high=True))
    spread = np.sqrt(2 * nonnegative("variance", variance) * log / n)
    return float(spread + 7 * positive("bound", bound) * log / (3 * (n - 1)))


def certificate_examples(target: float, bound: float, delta: float = 0.05) -> int:
    """Untouched examples after which an exact fit is certified to have mean loss at most ``target``.

    Source: arXiv:0907.3740, theorem 4, with variance zero.  Status: exact.
    """
    log = np.log(2 / real("delta", delta, low=0, high=1, open_low=True, open_high=True))
    return int(np.ceil(1 + 7 * positive("bound", bound) * log / (3 * positive("target", target))))


def tail_probability(n: int, delta: float = 0.05) -> float:
    r"""Probability with which a fresh example may exceed the largest error of n examples, :math:`\ln(1/\delta)/n`.

    Source: (1 - p)^n <= delta.  Status: bound.
    """
    return float(min(1.0, np.log(1 / real("delta", delta, low=0, high=1, open_low=True)) / integer("n", n, low=1)))


def query_count(d: int, method: str = "pairs", rank: int = 1) -> int:
    """Value queries that recover one head: d + d^2 (pairs), 2 d (wide), d + 6 r d (low rank).

    Source: derived here, after arXiv:2601.16873.  Status: exact.

    >>> query_count(30), query_count(30, "wide"), query_count(30, "low_rank", rank=2)
    (930, 60, 390)
    """
    d, rank = integer("d", d, low=1), integer("rank", rank, low=1)
    return {"pairs": d + d * d, "wide": 2 * d, "low_rank": d + 6 * rank * d}[
        one_of("method", method, ("pairs", "wide", "low_rank"))
    ]


def step_flops(n_heads: int, d: int, rows: int, k: int = 4) -> dict[str, float]:
    r"""Floating-point operations of one Levenberg-Marquardt step, by part (output width d).

    ``assembly`` is the two products over rows, ``rows`` the work on single rows before them, ``projection`` the
    elimination of W, ``solve`` the Cholesky factor; ``direct`` is what a symmetric product of the Jacobian with itself
    would cost.

    Source: derived here.  Status: exact to leading order.
    """
    m, d, r = integer("n_heads", n_heads, low=1), integer("d", d, low=1), integer("rows", rows, low=1)
    k = integer("k", k, low=2)
    pairs, all_pairs, size = d * (d + 1) // 2, m * d * (m * d + 1) // 2, m * d * d
    return {
        "assembly": 2.0 * r * pairs * (all_pairs + m * size),
        "rows": 2.0 * r * m * d * d * (3 * k + m * d),
        "projection": float(size) ** 3,
        "solve": size**3 / 3,
        "direct": r * d * float(size) ** 2,
    }


def cramer_rao(Theta: ArrayLike, W: ArrayLike, X: ArrayLike, noise_std: float) -> np.ndarray:
    r"""Smallest rms relative error of each head that unbiased estimation from these tokens allows.

    .. math::
        \frac{\sigma}{\|\Theta_i\|_F} \sqrt{\mathrm{tr}\,(H^{-1})_{ii}}, \qquad
        H = J_\Theta^\top (I - P_Z) J_\Theta

    with H the information about Theta once W is eliminated. Least squares attains it as n grows; errors fall as
    :math:`\sigma/\sqrt n`.

    Source: derived here.  Status: bound, asymptotically attained.
    """
    theta, w = check_layer(Theta, W)
    tokens = check_tokens(X, d=theta.shape[1])
    n, k, d = tokens.shape
    rows = Rows(tokens.reshape(n * k, d), np.repeat(tokens, k, axis=0), attention(tokens, theta, w).reshape(n * k, -1))
    information = normal_equations(rows, theta, regress(rows, theta)).H
    variances = np.diag(np.linalg.inv(information)).reshape(len(theta), -1).sum(axis=1)
    rms: np.ndarray = nonnegative("noise_std", noise_std) * np.sqrt(variances) / np.linalg.norm(theta, axis=(1, 2))
    return rms
