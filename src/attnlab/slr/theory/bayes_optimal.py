r"""Learning from N = alpha D samples: the Bayes-optimal state evolution of the spiked law (arXiv:2509.21936).

==============  =======================================================================
symbol          meaning
==============  =======================================================================
alpha           samples per dimension
q_k, q_v        overlaps of the posterior means of k*, v* with themselves, in [0, 1)
hq              precision that the data bring: q = hq / (1 + hq)
omega           the fields X k_hat / sqrt(D), X v_hat / sqrt(D) on the tokens
w_l             posterior probability of location l given the fields and y
noise_var       variance Delta of the output noise
E               excess risk of the Bayes predictor, 1 for the null predictor
==============  =======================================================================

k*, v* have independent standard Gaussian entries and gamma = 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from attnlab.common.solution import Solution
from attnlab.common.validation import integer, nonnegative, one_of, positive

STARTS = ("uninformed", "informed")


@dataclass(frozen=True)
class BayesOptimal:
    """A fixed point of the state evolution: overlaps, excess risk, and whether the iteration settled."""

    q_k: float
    q_v: float
    error: float
    converged: bool
    n_iter: int
    residual: float


def bayes_state_evolution(
    alpha: float,
    *,
    nu: float,
    L: int,
    noise_var: float = 0.01,
    start: str = "uninformed",
    n_draws: int = 2**15,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> BayesOptimal:
    r"""Overlaps and error reached by Bayes-optimal AMP, as D grows with N = alpha D samples.

    .. math:: \hat q_k = \alpha\nu\,\mathbb{E}\sum_l w_l^2,\quad
              \hat q_v = \alpha\,\mathbb{E}\sum_l\Big[\frac{w_l(y - \omega^v_l)}{1 - q_v + \Delta}\Big]^2,\quad
              q = \frac{\hat q}{1 + \hat q},\quad E = 1 - q_v\,\mathbb{E}\sum_l p_l^2

    with :math:`\omega^k_l = \sqrt{q_k}N + q_k\sqrt\nu\,1[l = \epsilon]`, :math:`\omega^v_l = \sqrt{q_v}N`,
    :math:`w_l \propto \exp(\sqrt\nu\,\omega^k_l - (y - \omega^v_l)^2/2(1 - q_v + \Delta))` and
    :math:`p = \mathrm{softmax}(\sqrt\nu\,\omega^k)`. Averages are over ``n_draws`` fixed quasi-random points.

    ``start="uninformed"`` begins at q = 0 and gives what AMP reaches; ``"informed"`` begins near the truth. Where the
    two differ the problem is hard: better estimates exist than are found.

    Source: arXiv:2509.21936; equations derived here.  Status: asymptotic (D to infinity), quadrature error about 1e-3.
    """
    positive("alpha", alpha), nonnegative("nu", nu), integer("L", L, low=2), positive("noise_var", noise_var)
    one_of("start", start, STARTS)
    integer("n_draws", n_draws, low=1), integer("max_iter", max_iter, low=1)
    normals = _normals(2 * L + 1, int(n_draws))
    q = np.array([0.0, 0.0] if start == "uninformed" else [0.999, 1 - 1e-6])
    residual, n_iter = math.inf, 0
    while residual > tol and n_iter < max_iter:
        update = _step(q, alpha, nu, L, noise_var, normals)
        residual, q, n_iter = float(np.abs(update - q).max()), 0.5 * (q + update), n_iter + 1
    return BayesOptimal(float(q[0]), float(q[1]), _error(q, nu, L, normals), residual <= tol, n_iter, residual)


def bayes_fixed_points(
    alpha: float, *, nu: float, L: int, noise_var: float = 0.01, n_draws: int = 2**15
) -> tuple[BayesOptimal, BayesOptimal]:
    """Both fixed points, uninformed and informed; they differ in the hard phase.

    Source: derived here.  Status: asymptotic.
    """
    low, high = (
        bayes_state_evolution(alpha, nu=nu, L=L, noise_var=noise_var, start=start, n_draws=n_draws) for start in STARTS
    )
    return low, high


def hard_phase(
    *, nu: float, L: int, noise_var: float, bounds: tuple[float, float] = (0.2, 5.0), n_draws: int = 2**13
) -> Solution[tuple[float, float]]:
    """The interval of alpha in which the informed and the uninformed fixed points differ (by 0.02 in error).

    Its lower end is where the informed fixed point appears, its upper end the algorithmic threshold. ``converged`` is
    False, and the interval empty (NaN), where no hard phase was found between the bounds.

    Source: derived here.  Status: asymptotic; ends to within 0.02.
    """

    def differ(alpha: float) -> bool:
        low, high = bayes_fixed_points(alpha, nu=nu, L=L, noise_var=noise_var, n_draws=n_draws)
        return low.error - high.error > 0.02

    grid = np.geomspace(*bounds, 15)
    hard = [differ(alpha) for alpha in grid]
    if not any(hard) or hard[0] or hard[-1]:
        return Solution((math.nan, math.nan), False, len(grid), math.inf)
    first, last = hard.index(True), len(hard) - 1 - hard[::-1].index(True)
    lower = _bisect(differ, grid[first - 1], grid[first])
    upper = _bisect(lambda alpha: not differ(alpha), grid[last], grid[last + 1])
    return Solution((lower, upper), True, len(grid), 0.02)


def _bisect(condition: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that is false at ``low`` becomes true."""
    while high - low > 0.02:
        middle = (low + high) / 2
        low, high = (low, middle) if condition(middle) else (middle, high)
    return float((low + high) / 2)


@functools.lru_cache(maxsize=8)
def _normals(dimension: int, n: int) -> np.ndarray:
    """Quasi-random standard normals, (dimension, n); always the same points."""
    # the seed selects one scrambling of the Sobol sequence: part of the quadrature rule, not a source of noise
    uniform = stats.qmc.Sobol(dimension, seed=20).random(1 << (n - 1).bit_length())[:n]
    points = special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12)).T.copy()
    points.flags.writeable = False
    return points


def _step(q: np.ndarray, alpha: float, nu: float, L: int, noise_var: float, normals: np.ndarray) -> np.ndarray:
    omega_k, omega_v = _fields(q, nu, L, normals)
    spread = 1 - q[1] + noise_var
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


def _error(q: np.ndarray, nu: float, L: int, normals: np.ndarray) -> float:
    p = special.softmax(math.sqrt(nu) * _fields(q, nu, L, normals)[0], axis=0)
    return float(1 - q[1] * np.mean(np.sum(p**2, axis=0)))
