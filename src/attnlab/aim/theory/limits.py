r"""Thresholds and limiting laws of the Bayes error.

=============  ====================================================================================
symbol         meaning
=============  ====================================================================================
alpha_PR       perfect (strong) recovery: M = 0 for alpha >= alpha_PR, exact channels only
ratio          alpha / rho = n / (d r), the scale of the small-width limit rho -> 0
t              rho Delta in that limit; M = t (2 - t), q = (1 - t)^2
ratio_w        weak recovery: M = 1 below it in the limit rho -> 0
=============  ====================================================================================
"""

from __future__ import annotations

import numpy as np

from attnlab.aim.channels import Channel, Hardmax, as_channel
from attnlab.aim.spectrum import check_rho, second_moment, small_noise_slope
from attnlab.aim.spectrum import small_width_mmse as small_width_denoising
from attnlab.aim.theory.bayes import check_alpha, ridders
from attnlab.aim.theory.output import channel_strength, check_tokens_for, hardmax_scale, uninformed_strength
from attnlab.common.arrays import ArrayLike


def recovery_threshold(rho: float, tokens: int = 2, channel: str | Channel = "softmax", noise: float = 0.0) -> float:
    r"""The alpha from which on S is recovered perfectly:

    .. math:: \alpha_{PR} = \frac{2\rho - \rho^2}{2k} \ (\rho \le 1), \qquad \frac{1}{2k} \ (\rho \ge 1), \qquad
              k = \tfrac12(T^2 + T - 2) \text{ for softmax}

    which is counting: k n measurements against the d r - r^2/2 parameters of a rank-r matrix. Infinite for hardmax and
    with noise.

    Source: arXiv:2506.01582.  Status: asymptotic (d -> infinity).

    >>> recovery_threshold(0.5, tokens=2)
    0.1875
    """
    law = as_channel(channel, noise=noise)
    k = law.informative(check_tokens_for(law, tokens))
    if k is None or law.noise > 0:
        return float("inf")
    return small_noise_slope(check_rho(rho)) / (2 * k)


def recovery_slope(rho: float) -> float:
    r"""kappa in :math:`M \approx \kappa(\tilde\alpha_{PR} - \tilde\alpha)` below the threshold of an exact channel,
    :math:`\tilde\alpha = 2k\alpha`.

    kappa = (2 - rho)(1 - rho)/(rho (1 + rho)) for rho < 1, 0 at rho = 1 (the approach is faster), (rho - 1)/rho above.

    Source: derived here (rho > 1: free Fisher information of Marchenko-Pastur; rho < 1: fitted form).  Status:
    heuristic for rho < 1, checked to 1e-4; asymptotic for rho > 1.
    """
    rho = check_rho(rho)
    if np.isinf(rho):
        return 1.0
    return (2 - rho) * (1 - rho) / (rho * (1 + rho)) if rho <= 1 else (rho - 1) / rho


def weak_recovery_threshold(tokens: int = 2, channel: str | Channel = "softmax", noise: float = 0.0) -> float:
    r"""The ratio alpha / rho above which M < 1 in the limit rho -> 0: :math:`1/(2\,\mathbb{E}\|g\|^2(0, 1))`.

    softmax: 1/(T^2 + T - 2). At any finite rho the error is below 1 for every alpha > 0.

    Source: arXiv:2506.01582; hardmax derived here.  Status: asymptotic (d -> infinity, then rho -> 0).

    >>> round(weak_recovery_threshold(2, "hardmax"), 6)
    0.403411
    """
    law = as_channel(channel, noise=noise)
    return 1 / (2 * uninformed_strength(check_tokens_for(law, tokens), law))


def small_width_mmse(
    ratio: ArrayLike, tokens: int = 2, channel: str | Channel = "softmax", noise: float = 0.0
) -> np.ndarray | float:
    r"""Bayes error in the limit rho -> 0 at fixed ratio = alpha / rho; broadcasts over ratio >= 0.

    Parametric: M = t (2 - t), ratio(t) = 1/(2 t E|g|^2((1 - t)^2, M)) for t in (0, 1), M = 1 below the
    weak-recovery threshold. Softmax:
    M = x (2 - x) with x = ratio (T^2 + T - 2) in [1, 2], then 0.

    Source: arXiv:2506.01582.  Status: asymptotic (d -> infinity, then rho -> 0).

    >>> round(small_width_mmse(1.5 / 4), 6)
    0.75
    """
    law = as_channel(channel, noise=noise)
    tokens = check_tokens_for(law, tokens)
    values = check_alpha(ratio)
    k = law.informative(tokens)
    if k is not None and law.noise == 0:
        x = np.clip(2 * k * values, 1.0, 2.0)
        error = x * (2 - x)
    else:
        error = small_width_denoising(_small_width_t(values.ravel(), tokens, law)).reshape(values.shape)
    return float(error) if values.ndim == 0 else np.asarray(error)


def _small_width_t(ratio: np.ndarray, tokens: int, channel: Channel) -> np.ndarray:
    def gap(x: np.ndarray, target: np.ndarray) -> np.ndarray:
        t = np.exp(x)
        M = small_width_denoising(t)
        return np.asarray(-np.log(2 * t * channel_strength(1 - M, M, tokens, channel) * target))

    low, high = np.full_like(ratio, np.log(1e-8)), np.zeros_like(ratio)
    beyond = gap(high, ratio) >= 0
    t = np.ones_like(ratio)
    if (~beyond).any():
        bracket = low[~beyond], high[~beyond]
        for _ in range(12):  # halve the long bracket first: Ridders' method wants a nearly straight piece
            middle = (bracket[0] + bracket[1]) / 2
            right = gap(middle, ratio[~beyond]) > 0
            bracket = np.where(right, middle, bracket[0]), np.where(right, bracket[1], middle)
        t[~beyond] = np.exp(ridders(lambda x: gap(x, ratio[~beyond]), *bracket))
    return t


def large_alpha_mmse(alpha: ArrayLike, rho: float) -> np.ndarray | float:
    r"""Hardmax with two tokens at many samples: :math:`M \simeq D_\rho^2 (1 + \rho)/(4 c^2\alpha^2)`, c = 1.441294, so
    it never vanishes.

    From :math:`\mathbb{E}\|g\|^2 \simeq c/\sqrt{V Q_0}` and F = D_rho Delta, with D_rho = 2 rho - rho^2 (rho < 1),
    1 above and :math:`c = \tfrac{4}{\sqrt{2\pi}}\int\varphi^2/\Phi`.

    Source: derived here.  Status: asymptotic (alpha -> infinity).

    >>> round(25 * large_alpha_mmse(5.0, rho=0.5), 4)
    0.1015
    """
    rho = check_rho(rho)
    values = check_alpha(alpha)
    tau = 1e-10
    c = float(hardmax_scale(2)(tau)) / np.sqrt(tau)
    law = small_noise_slope(rho) ** 2 * second_moment(rho) / (4 * c**2 * np.maximum(values, 1e-300) ** 2)
    return float(law) if values.ndim == 0 else np.asarray(law)


def scaled_alpha(alpha: ArrayLike, tokens: int, channel: str | Channel = "softmax") -> np.ndarray | float:
    r"""2 k alpha = alpha (T^2 + T - 2) for softmax, the one variable on which all numbers of tokens agree.

    Source: arXiv:2506.01582.  Status: exact.
    """
    law = as_channel(channel)
    k = law.informative(check_tokens_for(law, tokens))
    if k is None or isinstance(law, Hardmax):
        raise ValueError(f"channel {law.name!r} is not an exact linear measurement: there is no such rescaling")
    scaled = 2 * k * check_alpha(alpha)
    return float(scaled) if scaled.ndim == 0 else scaled
