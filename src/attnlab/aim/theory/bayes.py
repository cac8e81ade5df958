r"""The Bayes-optimal error, from the state evolution and in closed parametric form.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
alpha       n / d^2, number of sequences per squared dimension
rho         width r / d of the attention matrix; infinity: Gaussian prior
Q_0, q      second moment of S (1 + rho if tied, 1 if untied), and overlap Tr(S S_hat^T)/d
M = V       Q_0 - q, the error E|S - S_hat|^2/d, 1 without data
q_hat       rate alpha E|g|^2(q, V), the strength of the effective observation of S; rate 2 (tied) or 1
Delta       1 / q_hat, its noise
F           denoising error (:mod:`attnlab.aim.spectrum`)
==========  =========================================================================================

The fixed point V = F(Delta), Delta = 1 / (rate alpha E|g|^2(Q_0 - V, V)) is solved by running through Delta:
alpha(Delta) = 1 / (rate Delta E|g|^2(Q_0 - F, F)) falls from infinity (or the recovery threshold) to 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from attnlab.aim.channels import NotSolved
from attnlab.aim.task import Task
from attnlab.aim.theory.output import LIMIT
from attnlab.aim.theory.parts import parts_at, solve_parts
from attnlab.common.arrays import ArrayLike
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, positive, real

DECADES = (-10, 8)  # of Delta in the table, the upper end in units of max(1, 1/rho)
PER_DECADE = 6


@dataclass(frozen=True, eq=False, repr=False)
class StateEvolution(Prediction):
    """The iterated state evolution: error ``value`` at the end and its path.

    Parameters
    ----------
    trajectory : the error after each iteration, the start first.
    overlap, q_hat : Q_0 - value, and the strength of the effective observation.
    n_iter, residual : iterations made, and the last change.
    """

    trajectory: Any = None
    overlap: float = 0.0
    q_hat: float = 0.0
    n_iter: int = 0
    residual: float = 0.0


class FixedPoint(NamedTuple):
    """Where the state evolution ends, for every alpha: effective noise, its relative error, and whether it was
    found.
    """

    delta: np.ndarray
    relative_error: np.ndarray
    found: np.ndarray


@from_law(Task, "rho", "tokens", "channel", "noise", **LIMIT)
def mmse(task: Task, alpha: ArrayLike) -> Prediction:
    r"""Bayes error :math:`M = \mathbb{E}\|S - \hat S\|_F^2/d \in [0, 1]`; broadcasts over alpha >= 0.

    Parametric in Delta: :math:`M = F(\Delta)`, :math:`\alpha = 1/(c\Delta\,\mathbb{E}\|g\|^2(Q_0 - F, F))` with c = 2
    for tied attention, 1 for untied. For k exact measurements in a sequence this is :math:`ck\alpha = F/\Delta`, M = 0
    from the recovery threshold on. Untied self-attention with hardmax or noise: two variances
    (:mod:`attnlab.aim.theory.parts`).

    Source: arXiv:2506.01582 (state evolution, tied); closed form and untied attention derived here.  Status: asymptotic
    (d -> infinity), the fixed point being unique in every case computed.

    >>> round(float(mmse(0.1, rho=0.5)), 6)
    0.392196
    """
    values = check_alpha(alpha)
    fixed = fixed_point(task, values.ravel())
    F = functools.partial(task.prior.denoising_mmse, rho=task.rho)
    error = np.asarray(F(fixed.delta))
    # the relative error of E|g|^2 is that of Delta
    spread = np.abs(np.asarray(F(fixed.delta * (1 + fixed.relative_error))) - error) * (fixed.relative_error > 0)
    shaped = [x.reshape(values.shape)[()] for x in (error, spread, fixed.found)]
    return Prediction(shaped[0], shaped[1], "asymptotic", shaped[2])


@from_law(Task, "rho", "tokens", "channel", "noise", **LIMIT)
def error_parts(task: Task, alpha: float) -> Prediction:
    r"""(V_s, V_a): twice the errors of the symmetric and the antisymmetric part of Theta; their mean is M.

    Noiseless softmax, full mask: :math:`V_s/V = (1 - \alpha T(T-1))/(1 - \alpha(T-1)^2)`,
    :math:`V_a/V = (1 - \alpha(T-1)(T-2))/(1 - \alpha(T-1)^2)`.

    Source: derived here.  Status: asymptotic (d -> infinity), conjectured exact for AMP.

    >>> error_parts(0.2, rho=0.5, tied=False).value.round(4)
    array([0.3719, 0.6198])
    """
    if not task.layout.two_variances:
        raise ValueError("error_parts is about untied self-attention: tied=False, attention='self'")
    values = check_alpha(positive("alpha", alpha))
    fixed = fixed_point(task, values.ravel())
    if not fixed.delta[0] > 0:
        return Prediction(np.zeros(2), status="asymptotic")
    parts = parts_at(task, float(fixed.delta[0]))
    return Prediction(np.array([parts.Vs, parts.Va]), 0.0, "asymptotic", bool(fixed.found[0]))


def exact(task: Task) -> int | None:
    """k where an output is k noiseless linear measurements, otherwise None."""
    return task.law.informative(task.layout) if task.law.noise == 0 else None


def fixed_point(task: Task, alpha: np.ndarray) -> FixedPoint:
    """Delta at the fixed point: infinity without data, 0 beyond the recovery threshold.  Status: asymptotic."""
    k, prior = exact(task), task.prior
    zeros, yes = np.zeros_like(alpha), np.ones(alpha.shape, dtype=bool)
    if k is not None:
        reduced = task.layout.rate * k * alpha
        if np.isinf(task.rho):
            # c k alpha = F/Delta = 1/(1 + Delta) for the centred prior.
            return FixedPoint(np.where(reduced < 1, 1 / np.maximum(reduced, 1e-300) - 1, 0.0), zeros, yes)
        # alpha(Delta) stays finite at Delta = 0: beyond the last entry of the table the error is below 1e-10.
        below = reduced < prior.small_noise_slope(task.rho)
        return FixedPoint(np.where(below, _invert(task, alpha), 0.0), zeros, yes)
    delta = _invert(task, alpha)
    if not task.layout.two_variances:
        V = np.asarray(prior.denoising_mmse(delta, task.rho))
        value, error = task.law.strength(np.maximum(V, 1e-300), prior.second_moment(task.rho), task.layout)
        return FixedPoint(delta, np.broadcast_to(error / value, alpha.shape), yes)
    found = yes.copy()
    for i in np.flatnonzero(np.isfinite(delta) & (delta > 0)):
        delta[i], _, found[i] = solve_parts(task, float(alpha[i]), float(delta[i]))
    return FixedPoint(delta, zeros, found)


@from_law(Task, "rho", "tokens", "channel", "noise", **LIMIT)
def parametric_curve(task: Task, noise_levels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    r"""(alpha, M) along the curve, one point for each effective noise Delta > 0.

    Source: derived here.  Status: asymptotic (d -> infinity).
    """
    delta = np.atleast_1d(np.asarray(noise_levels, dtype=float))
    error = np.atleast_1d(task.prior.denoising_mmse(delta, task.rho))
    if task.layout.two_variances and exact(task) is None:
        return np.array([parts_at(task, float(level)).alpha for level in delta]), error
    return _alpha_of(task, delta), error


def _alpha_of(task: Task, delta: np.ndarray) -> np.ndarray:
    Q = task.prior.second_moment(task.rho)
    error = np.minimum(task.prior.denoising_mmse(delta, task.rho), Q)
    strength = task.law.strength(np.maximum(error, 1e-300), Q, task.layout).value
    return np.asarray(1 / (task.layout.rate * delta * strength))


class Law(NamedTuple):
    """What the curve depends on, which is less than the task: tables are kept for it."""

    task: Task

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Law) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.task.rho, self.task.channel, self.task.layout


@functools.lru_cache(maxsize=128)
def _table(law: Law) -> tuple[np.ndarray, np.ndarray]:
    low, high = DECADES
    high = high + max(0.0, -np.log10(law.task.rho)) if np.isfinite(law.task.rho) else high
    levels = np.logspace(low, high, round((high - low) * PER_DECADE) + 1)
    return levels, _alpha_of(law.task, levels)


def _invert(task: Task, target: np.ndarray) -> np.ndarray:
    """Delta with alpha(Delta) = target: a table brackets, Ridders' method finishes; infinity where target is too
    small.
    """
    levels, table = _table(Law(task))
    # alpha falls with Delta, and the search wants a rising table.
    place = np.searchsorted(-table, -target)
    inside = (place > 0) & (place < len(levels))
    # A target above the table belongs to a Delta below its first level, one below it to a Delta beyond the last.
    answer = np.where(place == 0, 0.0, np.inf)
    if inside.any():
        # Both ends of alpha(Delta) are power laws, straight in logarithms.
        low, high = np.log(levels[place[inside] - 1]), np.log(levels[place[inside]])
        wanted = target[inside]
        answer[inside] = np.exp(ridders(lambda x: np.log(_alpha_of(task, np.exp(x)) / wanted), low, high))
    return answer


def ridders(f: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Roots of a decreasing function in brackets, all at once."""
    f_low, f_high = f(low), f(high)
    x = (low + high) / 2
    for _ in range(8):
        middle = (low + high) / 2
        f_middle = f(middle)
        # Ridders' method: quadratic, and the next point never leaves the bracket, whatever the curvature.
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


@from_law(Task, "rho", "tokens", "channel", "noise", **LIMIT)
def state_evolution(
    task: Task, alpha: float, *, start: float = 1.0, damping: float = 0.0, max_iter: int = 2000, tol: float = 1e-10
) -> StateEvolution:
    r"""Iterate :math:`V \leftarrow F(1/(c\alpha\,\mathbb{E}\|g\|^2(Q_0 - V, V)))` from V = ``start`` (1: no knowledge).

    Damping keeps the share ``damping`` of the old V in the channel step, as :class:`attnlab.aim.AMP` does; the
    trajectory holds the error F after each iteration, ``start`` first.

    Source: arXiv:2506.01582.  Status: asymptotic (d -> infinity).

    >>> round(float(state_evolution(0.1, rho=0.5)), 6)
    0.392196
    """
    if task.layout.two_variances and exact(task) is None:
        raise NotSolved(
            "the iteration of untied self-attention with hardmax or noise is not solved; mmse gives its fixed point"
        )
    alpha, damping = positive("alpha", alpha), real("damping", damping, low=0, high=1, open_high=True)
    Q = task.prior.second_moment(task.rho)
    V = error = real("start", start, low=0, high=1, open_low=True)
    path, residual, q_hat, relative = [error], np.inf, 0.0, 0.0
    for _ in range(integer("max_iter", max_iter, low=1)):
        V = (1 - damping) * error + damping * V
        strength = task.law.strength(V, Q, task.layout)
        q_hat, relative = task.layout.rate * alpha * float(strength.value), float(strength.error / strength.value)
        error = float(task.prior.denoising_mmse(1 / q_hat, task.rho))
        residual = abs(error - path[-1])
        path.append(error)
        if residual < tol:
            break
    spread = abs(float(task.prior.denoising_mmse((1 + relative) / q_hat, task.rho)) - error) if relative else 0.0
    end = {"overlap": Q - error, "q_hat": q_hat, "n_iter": len(path) - 1, "residual": residual}
    return StateEvolution(error, spread, "asymptotic", residual < tol, trajectory=np.array(path), **end)


def check_alpha(alpha: ArrayLike) -> np.ndarray:
    """Return alpha as an array of finite numbers >= 0."""
    values = np.asarray(alpha, dtype=float)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"alpha must be a number in [0, inf), got {alpha!r}")
    return values
