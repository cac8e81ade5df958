r"""Population risks of softmax, linear, erf and softplus attention (arXiv:2509.21936), by quadrature.

==============  =======================================================================
symbol          meaning
==============  =======================================================================
chi_l           X_l.k*, the mark of token l; eps is the location
nu              strength of the mark; law *spiked* (chi_eps has mean sqrt(nu)) or *max* (Pr(eps = l) ~ exp(nu chi_l))
sigma_l         the weight attention gives to token l, from the scores m chi_l
m, c            length of k, and offset of the scores (erf and softplus)
E               excess risk, 1 for the null predictor
==============  =======================================================================

For the best read-out v, :math:`E = 1 - (\mathbb{E}\sigma_\epsilon)^2 / \mathbb{E}\sum_l\sigma_l^2`. Weights that are
normalised, :math:`\sigma_l = g_l/\sum_j g_j`, are averaged through :math:`1/S = \int_0^\infty e^{-uS}du` and
:math:`1/S^2 = \int_0^\infty u e^{-uS}du`, which factorise over tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import optimize, special

from attnlab.common.gaussian import normal_cdf, normal_pdf
from attnlab.common.solution import Solution
from attnlab.common.validation import integer, one_of, real
from attnlab.slr.task import LAWS

ATTENTIONS = ("softmax", "linear", "erf", "softplus")
_STEP = 0.4  # of log u: the trapezoidal rule's error on exp(log u - u) is exp(-pi^2 / 0.4) < 1e-10
Moments: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Attention:
    """The best attention of a kind: its excess risk, and the scores ``scale * chi + offset`` that reach it."""

    risk: float
    scale: float
    offset: float


def bayes_attention_risk(*, nu: float, L: int = 2, law: str = "spiked", lengths: Sequence[int] | None = None) -> float:
    r"""Excess risk of the Bayes predictor :math:`\sum_l p_l\,X_l\cdot v^*`, p the posterior of the location.

    .. math:: E = 1 - \mathbb{E}\sum_l p_l^2 = 1 - \mathbb{E}\,p_\epsilon, \qquad p = \mathrm{softmax}(c_\nu\chi),
              \quad c_\nu = \sqrt\nu \text{ (spiked)},\ \nu \text{ (max)}

    Softmax attention with :math:`k = c_\nu k^*` is this predictor, so it is also the best softmax risk.

    Source: arXiv:2509.21936, proposition 4.2; this quadrature derived here.  Status: exact (error below 1e-8).

    >>> round(bayes_attention_risk(nu=5.0, L=2), 6)
    0.084397
    """
    nu, law, sizes = _setting(nu, L, law, lengths)
    if nu == 0 or math.isinf(nu):
        return float(np.mean([1 - 1 / size for size in sizes])) if nu == 0 else 0.0
    beta = math.sqrt(nu) if law == "spiked" else nu
    return 1 - float(np.mean([_mean_posterior(beta, size, law) for size in sizes]))


def linear_attention_risk(*, nu: float, L: int = 2, law: str = "spiked", lengths: Sequence[int] | None = None) -> float:
    r"""Excess risk of the best linear attention, :math:`\sigma_l = 1 + m\chi_l`.

    .. math:: E = 1 - \frac{B + A^2 N - 2AS}{NB - S^2},\quad A = \mathbb{E}\chi_\epsilon,\ S = \mathbb{E}\sum\chi_l,\
              B = \mathbb{E}\sum\chi_l^2,\ N = \mathbb{E}L

    For the spiked law :math:`L(L-1)/(L^2 + \nu(L-1))`; for the max law :math:`1 - (1 + A^2)/\mathbb{E}L`. Only the mean
    length matters for the spiked law.

    Source: arXiv:2509.21936, section 4; derived here.  Status: exact.

    >>> round(linear_attention_risk(nu=5.0, L=3), 6)
    0.315789
    """
    nu, law, sizes = _setting(nu, L, law, lengths)
    N = float(np.mean(sizes))
    if law == "spiked":
        A, S, B = math.sqrt(nu), math.sqrt(nu), N + nu
    else:
        A, S, B = float(np.mean([_mean_mark(nu, size) for size in sizes])), 0.0, N
    return 1 - (B + A**2 * N - 2 * A * S) / (N * B - S**2)


def attention_risk(
    attention: str, *, nu: float, L: int = 2, law: str = "spiked", lengths: Sequence[int] | None = None
) -> Solution[Attention]:
    r"""Smallest excess risk of an attention of a given kind at population level, over its scale and offset.

    ``softmax``: :math:`\sigma = \mathrm{softmax}(m\chi)`; ``linear``: :math:`1 + m\chi`; ``erf``:
    :math:`1 + \mathrm{erf}(c + m\chi)`; ``softplus``: :math:`\sigma_l \propto \ln(1 + e^{m\chi_l})` (with a large
    negative offset it would become softmax). For the max law with softplus, nu is infinite.

    Source: arXiv:2509.21936, section 4; derived here.  Status: exact up to the quadrature and a numerical minimum.
    """
    nu, law, sizes = _setting(nu, L, law, lengths)
    one_of("attention", attention, ATTENTIONS)
    if attention == "softmax":
        scale = math.sqrt(nu) if law == "spiked" else nu
        best = bayes_attention_risk(nu=nu, L=L, law=law, lengths=lengths)
        return Solution(Attention(best, scale, 0.0), True, 0, 0.0)
    if attention == "linear":
        best = linear_attention_risk(nu=nu, L=L, law=law, lengths=lengths)
        return Solution(Attention(best, _linear_scale(nu, law, sizes), 0.0), True, 0, 0.0)
    if attention == "erf":
        return _best_erf(lambda m, c: _excess([_erf_moments(m, c, nu, size, law) for size in sizes]), nu)
    return _best_softplus(lambda m: _excess([_softplus_moments(m, nu, size, law) for size in sizes]))


def _linear_scale(nu: float, law: str, sizes: Sequence[int]) -> float:
    N = float(np.mean(sizes))
    if law == "spiked":
        return math.sqrt(nu) * (N - 1) / N
    return float(np.mean([_mean_mark(nu, size) for size in sizes]))


def _excess(moments: list[tuple[float, float]]) -> float:
    hit, square = np.mean(moments, axis=0)
    return float(1 - hit**2 / square)


def _best_erf(excess: Callable[[float, float], float], nu: float) -> Solution[Attention]:
    """Nelder-Mead over scale and offset from three starts."""
    size = math.sqrt(min(nu, 25.0))

    def objective(x: np.ndarray) -> float:
        return excess(float(x[0]), float(x[1]))

    starts = np.array([[0.5 * size, 0.0], [size, -size], [3.0 + size, -3.0]])
    found = [optimize.minimize(objective, start, method="Nelder-Mead", tol=1e-9) for start in starts]
    best = min(found, key=lambda result: result.fun)
    value = Attention(float(best.fun), float(best.x[0]), float(best.x[1]))
    return Solution(value, bool(best.success), int(best.nit), 1e-9)


def _best_softplus(excess: Callable[[float], float]) -> Solution[Attention]:
    """One-dimensional search; scales beyond 40 change the risk by less than 2e-3 and are not searched."""
    found = optimize.minimize_scalar(
        lambda log_m: excess(math.exp(log_m)), bounds=(-3.0, math.log(40.0)), method="bounded", options={"xatol": 1e-4}
    )
    value = Attention(float(found.fun), math.exp(found.x), 0.0)
    return Solution(value, bool(found.success), int(found.nfev), 1e-4)


def _marks(slope: float) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoidal rule for a Gaussian average of a function of exp(slope chi): error below 1e-10 for slopes <= 20."""
    chi = np.linspace(-9.0, 9.0, 2 * math.ceil(9 / min(0.1, 0.25 / min(max(slope, 1e-9), 20.0))) + 1)
    return chi, normal_pdf(chi) * (chi[1] - chi[0])


def _normalised_moments(
    log_g: Callable[[np.ndarray], np.ndarray], slope: float, nu: float, L: int, law: str
) -> Moments:
    """E sigma_eps and E sum sigma^2 for sigma_l = g(chi_l) / sum_j g(chi_j)."""
    chi, weight = _marks(slope)
    shift = math.sqrt(nu) if law == "spiked" else 0.0
    noise, marked = log_g(chi), log_g(chi + shift)
    log_u = np.arange(-max(noise[-1], marked[-1]) - 36.0, -noise[0] + 5.0, _STEP)
    decay, first, second = _laplace(log_u, noise)
    laplace = decay @ weight
    if law == "spiked":
        decay_marked, first_marked, second_marked = _laplace(log_u, marked)
        hit = np.sum((first_marked @ weight) * laplace ** (L - 1))
        own = (second_marked @ weight) * laplace ** (L - 1)
        others = (L - 1) * (second @ weight) * laplace ** max(L - 2, 0) * (decay_marked @ weight)
        return _STEP * float(hit), _STEP * float(np.sum(own + others))
    square = _STEP * L * float(np.sum((second @ weight) * laplace ** (L - 1)))
    if not math.isinf(nu):
        raise ValueError(f"nu must be inf for softplus attention under the max law, got {nu!r}")
    # the marked token is the largest: all others lie below it
    below = np.cumsum(decay * weight, axis=1) - 0.5 * decay * weight
    return _STEP * L * float(np.sum((first * below ** (L - 1)) @ weight)), square


def _laplace(log_u: np.ndarray, log_g: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp(-ug), ug exp(-ug) and (ug)^2 exp(-ug) on the grid of u and g."""
    ug = np.exp(np.minimum(log_u[:, None] + log_g[None, :], 30.0))
    decay = np.exp(-ug)
    return decay, ug * decay, ug**2 * decay


def _mean_posterior(beta: float, L: int, law: str) -> float:
    """E sum_l p_l^2 with p = softmax(beta chi); for the spiked law it is also E p_eps."""
    if law == "spiked":
        return _normalised_moments(lambda chi: beta * chi, beta, beta**2, L, law)[0]
    chi, weight = _marks(beta)
    log_u = np.arange(-beta * 9 - 36.0, beta * 9 + 5.0, _STEP)
    decay, _, second = _laplace(log_u, beta * chi)
    return _STEP * L * float(np.sum((second @ weight) * (decay @ weight) ** (L - 1)))


def _mean_mark(nu: float, L: int) -> float:
    """E chi_eps for the max law; for nu = inf the expected largest of L Gaussians."""
    return _tilted(nu, L, lambda chi: chi)


def _tilted(nu: float, L: int, f: Callable[[np.ndarray], np.ndarray]) -> float:
    """E f(chi_eps) under the max law: eps is drawn from softmax(nu chi), or is the largest mark."""
    chi, weight = _marks(1.0 if math.isinf(nu) else nu)
    if math.isinf(nu):
        return float(L * weight @ (f(chi) * normal_cdf(chi) ** (L - 1)))
    if nu == 0:
        return float(weight @ f(chi))
    log_u = np.arange(-nu * 9 - 36.0, nu * 9 + 5.0, _STEP)
    decay, first, _ = _laplace(log_u, nu * chi)
    return _STEP * L * float(np.sum((first @ (weight * f(chi))) * (decay @ weight) ** (L - 1)))


def _erf_moments(m: float, c: float, nu: float, L: int, law: str) -> Moments:
    """E sigma_eps and E sum sigma^2 for sigma = 1 + erf(c + m chi)."""
    chi, weight = _marks(abs(m))

    def sigma(chi: np.ndarray) -> np.ndarray:
        return np.asarray(1 + special.erf(c + m * chi))

    noise = float(weight @ sigma(chi) ** 2)
    if law == "spiked":
        marked = sigma(chi + math.sqrt(nu))
        return float(weight @ marked), float(weight @ marked**2) + (L - 1) * noise
    return _tilted(nu, L, sigma), L * noise


def _softplus_moments(m: float, nu: float, L: int, law: str) -> Moments:
    """The same for sigma_l = g_l / sum g, g = log(1 + exp(m chi))."""

    def log_g(chi: np.ndarray) -> np.ndarray:
        # log(1 + e^x) is e^x to rounding below -30, where its logarithm would be lost
        score = m * chi
        return np.where(score < -30, score, np.log(np.logaddexp(0.0, np.maximum(score, -30.0))))

    return _normalised_moments(log_g, m, nu, L, law)


def _setting(nu: float, L: int, law: str, lengths: Sequence[int] | None) -> tuple[float, str, tuple[int, ...]]:
    one_of("law", law, LAWS)
    if not (law == "max" and nu == math.inf):
        nu = real("nu", nu, low=0.0)
    if lengths is None:
        return nu, law, (integer("L", L, low=1),)
    sizes = tuple(integer("lengths", size, low=1) for size in lengths)
    if not sizes:
        raise ValueError("lengths must hold at least one length, got an empty sequence")
    return nu, law, sizes
