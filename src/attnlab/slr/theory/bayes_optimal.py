r"""Learning from N = alpha D samples: the Bayes-optimal state evolution of the spiked law (arXiv:2509.21936).

==============  =======================================================================
symbol          meaning
==============  =======================================================================
alpha           samples per dimension
q_k, q_v        overlaps of the posterior means of k*, v* with themselves, in [0, 1)
hq              precision that the data bring: q = hq / (1 + hq)
omega           the fields X k_hat / sqrt(D), X v_hat / sqrt(D) on the tokens
w_l             posterior probability of location l given the fields and y
Delta           noise_std^2, variance of the output noise
E               excess risk of the Bayes predictor, 1 for the predictor zero
==============  =======================================================================

k*, v* have independent standard Gaussian entries and gamma = 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from attnlab.common.prediction import Prediction
from attnlab.common.seeds import stream
from attnlab.common.validation import integer, one_of, positive
from attnlab.slr.task import Task
from attnlab.slr.theory.follow_up import check, in_any_dimension

STARTS = ("uninformed", "informed")


@in_any_dimension
def bayes_state_evolution(
    task: Task,
    alpha: float,
    *,
    start: str = "uninformed",
    n_draws: int = 2**15,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> Prediction:
    r"""Overlaps and error reached by Bayes-optimal AMP, as D grows with N = alpha D samples.

    .. math:: \hat q_k = \alpha\nu\,\mathbb{E}\sum_l w_l^2,\quad
              \hat q_v = \alpha\,\mathbb{E}\sum_l\Big[\frac{w_l(y - \omega^v_l)}{1 - q_v + \Delta}\Big]^2,\quad
              q = \frac{\hat q}{1 + \hat q},\quad E = 1 - q_v\,\mathbb{E}\sum_l p_l^2

    with :math:`\omega^k_l = \sqrt{q_k}N + q_k\sqrt\nu\,1[l = \epsilon]`, :math:`\omega^v_l = \sqrt{q_v}N`,
    :math:`w_l \propto \exp(\sqrt\nu\,\omega^k_l - (y - \omega^v_l)^2/2(1 - q_v + \Delta))` and
    :math:`p = \mathrm{softmax}(\sqrt\nu\,\omega^k)`. Averages are over ``n_draws`` fixed quasi-random points.

    ``start="uninformed"`` begins at q = 0 and gives what AMP reaches; ``"informed"`` begins near the truth. Where the
    two differ the problem is hard: better estimates exist than are found. The value is the excess risk E; ``detail``
    has q_k, q_v, n_iter and the residual (the last change of q). One location only: for several, the posterior of a
    sample runs over subsets, and the scalar channel changes.

    Source: arXiv:2509.21936; equations derived here.  Status: asymptotic (D to infinity), quadrature error about 1e-3.
    """
    nu, L, noise_var = _numbers(task, "bayes_state_evolution")
    alpha, tol = positive("alpha", alpha), positive("tol", tol)
    one_of("start", start, STARTS)
    integer("n_draws", n_draws, low=1), integer("max_iter", max_iter, low=1)
    normals = _normals(2 * L + 1, int(n_draws))
    # Just below the truth: at 1, without output noise, the spread of y would be zero.
    q = np.array([0.0, 0.0] if start == "uninformed" else [0.999, 1 - 1e-6])
    residual, n_iter = math.inf, 0
    while residual > tol and n_iter < max_iter:
        update = _step(q, alpha, nu, L, noise_var, normals)
        # Half a step damps oscillations and has the same fixed points; the residual is that of a whole one.
        residual, q, n_iter = float(np.abs(update - q).max()), 0.5 * (q + update), n_iter + 1
    detail = {"q_k": float(q[0]), "q_v": float(q[1]), "n_iter": n_iter, "residual": residual}
    value, error = _excess(q, nu, L, normals)
    return Prediction(value, max(error, residual), "asymptotic", residual <= tol, detail)


def _numbers(task: Task, name: str) -> tuple[float, int, float]:
    """Strength, length and noise variance; what is not solved is refused."""
    check(task, name, several=False, lengths=False)
    if task.law_in_force.name != "spiked":
        raise ValueError(f"law must be 'spiked' for {name}, got {task.law!r}")
    return task.strength, task.L, positive("noise_std", task.noise_std) ** 2


@in_any_dimension
def bayes_fixed_points(task: Task, alpha: float, *, n_draws: int = 2**15) -> tuple[Prediction, Prediction]:
    """Both fixed points, uninformed and informed; they differ in the hard phase.

    Source: derived here.  Status: asymptotic.
    """
    low, high = (bayes_state_evolution(task, alpha, start=start, n_draws=n_draws) for start in STARTS)
    return low, high


@in_any_dimension
def hard_phase(task: Task, *, bounds: tuple[float, float] = (0.2, 5.0), n_draws: int = 2**13) -> Prediction:
    """The interval of alpha in which the informed and the uninformed fixed points differ (by 0.02 in error).

    Its lower end is where the informed fixed point appears, its upper end the algorithmic threshold. ``converged`` is
    False, and the interval empty (NaN), where no hard phase was found between the bounds. ``error`` and the residual
    are the width of the last bracket.

    Source: derived here.  Status: asymptotic; ends to within 0.02.
    """

    def differ(alpha: float) -> bool:
        low, high = bayes_fixed_points(task, alpha, n_draws=n_draws)
        return bool(low - high > 0.02)

    grid = np.geomspace(*bounds, 15)
    hard = [differ(float(alpha)) for alpha in grid]
    # A hard phase that reaches a bound has an end that no bracket holds.
    if not any(hard) or hard[0] or hard[-1]:
        nothing = np.array([math.nan, math.nan])
        return Prediction(nothing, math.inf, "asymptotic", converged=False, detail={"residual": math.inf})
    first, last = hard.index(True), len(hard) - 1 - hard[::-1].index(True)
    lower, width = _bisect(differ, grid[first - 1], grid[first])
    upper, other = _bisect(lambda alpha: not differ(alpha), grid[last], grid[last + 1])
    width = max(width, other)
    return Prediction(np.array([lower, upper]), width, "asymptotic", detail={"residual": width})


def _bisect(condition: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Where a condition that is false at ``low`` becomes true, and the width of the last bracket."""
    while high - low > 0.02:
        middle = (low + high) / 2
        low, high = (low, middle) if condition(middle) else (middle, high)
    return float((low + high) / 2), float(high - low)


@functools.lru_cache(maxsize=8)
def _normals(dimension: int, n: int) -> np.ndarray:
    """Quasi-random standard normals, (dimension, n); always the same points."""
    # one scrambling of the Sobol sequence: part of the quadrature rule, not a source of noise
    rng = stream(0, "theory", "slr", "bayes_optimal")
    # A power of two, for which Sobol's points are balanced, and the first n of them.
    uniform = stats.qmc.Sobol(dimension, rng=rng).random(1 << (n - 1).bit_length())[:n]
    points = special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12)).T.copy()
    # Every later call is given this array.
    points.flags.writeable = False
    return points


def _step(q: np.ndarray, alpha: float, nu: float, L: int, noise_var: float, normals: np.ndarray) -> np.ndarray:
    omega_k, omega_v = _fields(q, nu, L, normals)
    spread = 1 - q[1] + noise_var
    # Given its field the value of the informative token has variance 1 - q_v.
    y = omega_v[0] + math.sqrt(spread) * normals[2 * L]
    w = special.softmax(math.sqrt(nu) * omega_k - (y - omega_v) ** 2 / (2 * spread), axis=0)
    hq_k = alpha * nu * np.mean(np.sum(w**2, axis=0))
    hq_v = alpha * np.mean(np.sum((w * (y - omega_v) / spread) ** 2, axis=0))
    hq = np.array([hq_k, hq_v])
    return np.asarray(hq / (1 + hq))


def _fields(q: np.ndarray, nu: float, L: int, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The fields (L, draws), the informative token being the first."""
    omega_k = math.sqrt(q[0]) * normals[:L]
    omega_k[0] += q[0] * math.sqrt(nu)
    return omega_k, math.sqrt(q[1]) * normals[L : 2 * L]


def _excess(q: np.ndarray, nu: float, L: int, normals: np.ndarray) -> tuple[float, float]:
    """E and its quadrature error, from four parts of the points (an upper estimate for quasi-random ones)."""
    p = special.softmax(math.sqrt(nu) * _fields(q, nu, L, normals)[0], axis=0)
    kept = np.sum(p**2, axis=0)
    parts = [part.mean() for part in np.array_split(kept, 4)]
    # Over 2: the root of the number of parts.
    return float(1 - q[1] * kept.mean()), float(q[1] * np.std(parts, ddof=1) / 2)
