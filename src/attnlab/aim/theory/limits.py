r"""Thresholds and limiting laws of the Bayes error.

=============  ====================================================================================
symbol         meaning
=============  ====================================================================================
alpha_PR       perfect (strong) recovery: M = 0 for alpha >= alpha_PR, exact channels only
ratio          alpha / rho = n / (d r), the scale of the small-width limit rho -> 0
t              rho Delta in that limit; M = t (2 - t), q = (1 - t)^2
ratio_w        weak recovery: M = 1 below it in the limit rho -> 0
c              2 (tied) or 1 (untied): a d x d matrix has d^2/c independent entries
=============  ====================================================================================
"""

from __future__ import annotations

import numpy as np

from attnlab.aim.channels import NotSolved
from attnlab.aim.spectrum import check_rho
from attnlab.aim.spectrum import small_width_mmse as small_width_denoising
from attnlab.aim.task import Task
from attnlab.aim.theory.bayes import check_alpha, exact, ridders
from attnlab.aim.theory.output import LIMIT
from attnlab.aim.theory.parts import parts_at
from attnlab.common.arrays import ArrayLike
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction


@from_law(Task, "rho", "tokens", "channel", "noise", **LIMIT)
def recovery_threshold(task: Task) -> Prediction:
    r"""The alpha from which on S is recovered perfectly:

    .. math:: \alpha_{PR} = \frac{2\rho - \rho^2}{ck} \ (\rho \le 1), \qquad \frac{1}{ck} \ (\rho \ge 1)

    with k of :func:`measurements`, c = 2 tied, 1 untied; tied softmax: ck = T^2 + T - 2. This is counting: k n
    measurements against the parameters of a rank-r matrix. Infinite for hardmax and with noise.

    Source: arXiv:2506.01582 (tied); derived here (untied).  Status: asymptotic (d -> infinity).

    >>> float(recovery_threshold(0.5, tokens=2))
    0.1875
    """
    k = exact(task)
    threshold = float("inf") if k is None else task.prior.small_noise_slope(task.rho) / (task.layout.rate * k)
    return Prediction(threshold, status="asymptotic")


def recovery_slope(rho: float) -> Prediction:
    r"""kappa in :math:`M \approx \kappa(\tilde\alpha_{PR} - \tilde\alpha)` below the threshold of an exact channel with
    tied attention, :math:`\tilde\alpha = 2k\alpha`.

    kappa = (2 - rho)(1 - rho)/(rho (1 + rho)) for rho < 1, 0 at rho = 1 (the approach is faster), (rho - 1)/rho above.

    Source: derived here (rho > 1: free Fisher information of Marchenko-Pastur; rho < 1: fitted form).  Status:
    heuristic for rho < 1, checked to 1e-4; asymptotic for rho > 1.
    """
    rho = check_rho(rho)
    if np.isinf(rho):
        return Prediction(1.0, status="asymptotic")
    if rho > 1:
        return Prediction((rho - 1) / rho, status="asymptotic")
    return Prediction((2 - rho) * (1 - rho) / (rho * (1 + rho)), status="heuristic")


@from_law(Task, "tokens", "channel", "noise", **LIMIT)
def weak_recovery_threshold(task: Task) -> Prediction:
    r"""The ratio alpha / rho above which M < 1 in the limit rho -> 0: :math:`1/(c\,\mathbb{E}\|g\|^2(0, 1))`.

    Softmax: 1/(ck). At any finite rho the error is below 1 for every alpha > 0.

    Source: arXiv:2506.01582; hardmax and untied attention derived here.  Status: asymptotic (d -> infinity, then rho ->
    0).

    >>> round(float(weak_recovery_threshold(2, "hardmax")), 6)
    0.403411
    """
    value, error = task.law.strength(1.0, 1.0, task.layout)
    threshold = 1 / (task.layout.rate * float(value))
    return Prediction(threshold, threshold * float(error / value), "asymptotic")


@from_law(Task, "tokens", "channel", "noise", **LIMIT)
def small_width_mmse(task: Task, ratio: ArrayLike) -> Prediction:
    r"""Bayes error in the limit rho -> 0 at fixed ratio = alpha / rho; broadcasts over ratio >= 0.

    Parametric: M = t (2 - t), ratio(t) = 1/(c t E|g|^2((1 - t)^2, M)) for t in (0, 1), M = 1 below the weak-recovery
    threshold. Exact channels: M = x (2 - x) with x = c k ratio in [1, 2], then 0.

    Source: arXiv:2506.01582.  Status: asymptotic (d -> infinity, then rho -> 0).

    >>> round(float(small_width_mmse(1.5 / 4)), 6)
    0.75
    """
    values = check_alpha(ratio)
    k = exact(task)
    if k is not None:
        x = np.clip(task.layout.rate * k * values, 1.0, 2.0)
        error = x * (2 - x)
    else:
        error = small_width_denoising(_small_width_t(task, values.ravel())).reshape(values.shape)
    return Prediction(np.asarray(error)[()], status="asymptotic")


def _small_width_t(task: Task, ratio: np.ndarray) -> np.ndarray:
    def gap(x: np.ndarray, target: np.ndarray) -> np.ndarray:
        t = np.exp(x)
        strength = task.law.strength(small_width_denoising(t), 1.0, task.layout).value
        # Negated: t E|g|^2 grows with t, and ridders is for decreasing functions.
        return np.asarray(-np.log(task.layout.rate * t * strength * target))

    t = np.ones_like(ratio)
    beyond = (ratio == 0) | (gap(np.zeros_like(ratio), np.maximum(ratio, 1e-300)) >= 0)
    if (~beyond).any():
        target = ratio[~beyond]
        bracket = np.full_like(target, np.log(1e-100)), np.zeros_like(target)
        for _ in range(14):  # halve the long bracket first: Ridders' method wants a nearly straight piece
            middle = (bracket[0] + bracket[1]) / 2
            right = gap(middle, target) > 0
            bracket = np.where(right, middle, bracket[0]), np.where(right, bracket[1], middle)
        t[~beyond] = np.exp(ridders(lambda x: gap(x, target), *bracket))
    return t


@from_law(Task, "rho", "tokens", tied=True, channel="hardmax", **LIMIT)
def large_alpha_mmse(task: Task, alpha: ArrayLike) -> Prediction:
    r"""Hardmax at many samples: :math:`M \simeq D_\rho^2 Q_0/(c^2 C^2\alpha^2)`, so it never vanishes.

    From :math:`\mathbb{E}\|g\|^2 \simeq C/\sqrt{V Q_0}` and F = D_rho Delta, with D_rho = 2 rho - rho^2 (rho < 1), 1
    above; two tokens: :math:`C = \tfrac{4}{\sqrt{2\pi}}\int\varphi^2/\Phi = 1.441294`. Untied self-attention has the
    limit of alpha^2 M for two variances (:mod:`attnlab.aim.theory.parts`), 4/3 of this for rho >= 1.

    Source: derived here.  Status: asymptotic (alpha -> infinity).

    >>> round(25 * float(large_alpha_mmse(5.0, rho=0.5)), 4)
    0.1015
    """
    if not task.law.scale_free:
        raise NotSolved(f"channel must be hardmax without noise for the law of large alpha, got {task.law}")
    values, tau = check_alpha(alpha), 1e-20
    if task.layout.two_variances:
        # alpha^2 M along the curve, at a Delta where it has reached its limit.
        limit = float(task.prior.denoising_mmse(1e-14, task.rho)) * parts_at(task, 1e-14).alpha ** 2
        return Prediction(np.asarray(limit / np.maximum(values, 1e-150) ** 2)[()], status="asymptotic")
    C = float(task.law.strength(tau, 1.0, task.layout).value) * np.sqrt(tau)
    D, Q = task.prior.small_noise_slope(task.rho), task.prior.second_moment(task.rho)
    # The square of a smaller alpha underflows.
    law = D**2 * Q / (task.layout.rate * C * np.maximum(values, 1e-150)) ** 2
    return Prediction(np.asarray(law)[()], status="asymptotic")


@from_law(Task, "tokens", "channel", **LIMIT)
def scaled_alpha(task: Task, alpha: ArrayLike) -> Prediction:
    r"""c k alpha, the one variable on which all numbers of tokens agree; tied softmax: alpha (T^2 + T - 2).

    Source: arXiv:2506.01582.  Status: exact.
    """
    k = task.law.informative(task.layout)
    if k is None:
        raise NotSolved(f"channel {task.law.name!r} is not an exact linear measurement: there is no such rescaling")
    return Prediction(np.asarray(task.layout.rate * k * check_alpha(alpha))[()])
