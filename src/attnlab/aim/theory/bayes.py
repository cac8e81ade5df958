r"""The Bayes-optimal error, from the state evolution and in closed parametric form.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
alpha       n / d^2, number of sequences per squared dimension
rho         width r / d of the attention matrix; infinity: centred Gaussian prior
Q_0, q      second moment 1 + rho of S, and overlap Tr(S S_hat)/d
M = V       Q_0 - q, the error E|S - S_hat|^2/d, 1 without data
q_hat       2 alpha E|g|^2(q, V), the strength of the effective observation of S
Delta       1 / q_hat, its noise
F           denoising error (:mod:`attnlab.aim.spectrum`)
==========  =========================================================================================

The fixed point V = F(Delta), Delta = 1 / (2 alpha E|g|^2(Q_0 - V, V)) is solved by running through Delta:
alpha(Delta) = 1 / (2 Delta E|g|^2(Q_0 - F, F)) falls from infinity (or the recovery threshold) to 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlab.aim.channels import Channel, as_channel
from attnlab.aim.spectrum import check_rho, denoising_mmse, second_moment, small_noise_slope
from attnlab.aim.theory.output import channel_strength, check_tokens_for
from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import integer, positive, real

TABLE = np.logspace(-10, 8, 217)


@dataclass(frozen=True)
class StateEvolution:
    """The iterated state evolution: error ``value``, its path, and whether it settled."""

    value: float
    converged: bool
    n_iter: int
    residual: float
    trajectory: np.ndarray
    overlap: float
    q_hat: float


def mmse(
    alpha: ArrayLike, rho: float, tokens: int = 2, channel: str | Channel = "softmax", noise: float = 0.0
) -> np.ndarray | float:
    r"""Bayes error :math:`M = \mathbb{E}\|S - \hat S\|_F^2/d \in [0, 1]`; broadcasts over alpha >= 0.

    Parametric in Delta: :math:`M = F(\Delta)`, :math:`\alpha = 1/(2\Delta\,\mathbb{E}\|g\|^2(Q_0 - F, F))`.
    For softmax this is :math:`\tilde\alpha = \alpha(T^2+T-2) = F/\Delta`, M = 0 from the recovery threshold on.

    Source: arXiv:2506.01582 (state evolution); closed form derived here.  Status: asymptotic (d -> infinity), the fixed
    point being unique in every case computed.

    >>> round(mmse(0.1, rho=0.5), 6)
    0.392196
    """
    law = as_channel(channel, noise=noise)
    tokens, rho = check_tokens_for(law, tokens), check_rho(rho)
    values = check_alpha(alpha)
    delta = effective_noise(values.ravel(), rho, tokens, law).reshape(values.shape)
    error = np.asarray(denoising_mmse(delta, rho))
    return float(error) if values.ndim == 0 else error


def effective_noise(alpha: np.ndarray, rho: float, tokens: int, channel: Channel) -> np.ndarray:
    """Delta at the fixed point: infinity without data, 0 beyond the recovery threshold.  Status: asymptotic."""
    k = channel.informative(tokens)
    if k is not None and channel.noise == 0:
        reduced = 2 * k * alpha
        if np.isinf(rho):
            return np.asarray(np.where(reduced < 1, 1 / np.maximum(reduced, 1e-300) - 1, 0.0))
        # alpha(Delta) stays finite at Delta = 0: beyond the last entry of the table the error is below 1e-10.
        return np.where(
            reduced >= small_noise_slope(rho), 0.0, _invert(lambda delta: _alpha_of(delta, rho, tokens, channel), alpha)
        )
    return _invert(lambda delta: _alpha_of(delta, rho, tokens, channel), alpha)


def parametric_curve(
    noise_levels: ArrayLike, rho: float, tokens: int = 2, channel: str | Channel = "softmax", noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    r"""(alpha, M) along the curve, one point for each effective noise Delta > 0.

    Source: derived here.  Status: asymptotic (d -> infinity).
    """
    law = as_channel(channel, noise=noise)
    tokens, rho = check_tokens_for(law, tokens), check_rho(rho)
    delta = np.atleast_1d(np.asarray(noise_levels, dtype=float))
    return _alpha_of(delta, rho, tokens, law), np.atleast_1d(denoising_mmse(delta, rho))


def _alpha_of(delta: np.ndarray, rho: float, tokens: int, channel: Channel) -> np.ndarray:
    error = np.minimum(denoising_mmse(delta, rho), second_moment(rho))
    return np.asarray(1 / (2 * delta * channel_strength(second_moment(rho) - error, error, tokens, channel)))


def _invert(function: Callable[[np.ndarray], np.ndarray], target: np.ndarray) -> np.ndarray:
    """x with function(x) = target for a decreasing function of x > 0: a table brackets, Ridders' method finishes."""
    table = function(TABLE)
    place = np.searchsorted(-table, -target)
    inside = (place > 0) & (place < len(TABLE))
    answer = np.where(place == 0, 0.0, np.inf)
    if inside.any():
        low, high = np.log(TABLE[place[inside] - 1]), np.log(TABLE[place[inside]])
        answer[inside] = np.exp(ridders(lambda x: np.log(function(np.exp(x)) / target[inside]), low, high))
    return answer


def ridders(f: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Roots of a decreasing function in brackets, all at once."""
    f_low, f_high = f(low), f(high)
    x = (low + high) / 2
    for _ in range(8):
        middle = (low + high) / 2
        f_middle = f(middle)
        root = np.sqrt(np.maximum(f_middle**2 - f_low * f_high, 0.0))
        step = np.divide((middle - low) * f_middle, root, out=np.zeros_like(root), where=root > 0)
        previous, x = x, np.clip(middle + step, low, high)
        f_x = f(x)
        left, right = np.minimum(x, middle), np.maximum(x, middle)
        f_left, f_right = np.where(x < middle, f_x, f_middle), np.where(x < middle, f_middle, f_x)
        # The function falls: the root lies right of every positive value.
        low, f_low = _pick(f_right > 0, (right, f_right), _pick(f_left > 0, (left, f_left), (low, f_low)))
        high, f_high = _pick(f_left <= 0, (left, f_left), _pick(f_right <= 0, (right, f_right), (high, f_high)))
        if np.abs(x - previous).max() < 1e-8:  # quadratic convergence: the next change would be below rounding
            break
    return np.asarray(x)


def _pick(
    test: np.ndarray, yes: tuple[np.ndarray, np.ndarray], no: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    return np.where(test, yes[0], no[0]), np.where(test, yes[1], no[1])


def state_evolution(
    alpha: float,
    rho: float,
    tokens: int = 2,
    channel: str | Channel = "softmax",
    noise: float = 0.0,
    *,
    start: float = 1.0,
    damping: float = 0.0,
    max_iter: int = 2000,
    tol: float = 1e-10,
) -> StateEvolution:
    r"""Iterate :math:`V \leftarrow F(1/(2\alpha\,\mathbb{E}\|g\|^2(Q_0 - V, V)))` from V = ``start`` (1: no knowledge).

    Damping keeps the share ``damping`` of the old V in the channel step, as :class:`attnlab.aim.AMP` does; the
    trajectory holds the error F after each iteration, ``start`` first.

    Source: arXiv:2506.01582.  Status: asymptotic (d -> infinity).

    >>> round(state_evolution(0.1, rho=0.5).value, 6)
    0.392196
    """
    law = as_channel(channel, noise=noise)
    tokens, rho, alpha = check_tokens_for(law, tokens), check_rho(rho), positive("alpha", alpha)
    damping = real("damping", damping, low=0, high=1, open_high=True)
    Q = second_moment(rho)
    V = error = real("start", start, low=0, high=1, open_low=True)
    path, residual, q_hat = [error], np.inf, 0.0
    for _ in range(integer("max_iter", max_iter, low=1)):
        V = (1 - damping) * error + damping * V
        q_hat = float(2 * alpha * channel_strength(Q - V, V, tokens, law))
        error = float(denoising_mmse(1 / q_hat, rho))
        residual = abs(error - path[-1])
        path.append(error)
        if residual < tol:
            break
    return StateEvolution(error, residual < tol, len(path) - 1, residual, np.array(path), Q - error, q_hat)


def check_alpha(alpha: ArrayLike) -> np.ndarray:
    """Return alpha as an array of finite numbers >= 0."""
    values = np.asarray(alpha, dtype=float)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"alpha must be a number in [0, inf), got {alpha!r}")
    return values
