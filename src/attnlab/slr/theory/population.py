r"""Exact population risks of erf attention and of the reference predictors (arXiv:2410.01537).

============================  ====================================================================
symbol                        meaning
============================  ====================================================================
kappa, nu, theta, eta, rho    k.k*, v.v*, v.k*, k.v*, k.v
d, L, K                       dimension and number of tokens, number of informative ones
lam                           inverse temperature inside the erf
gamma                         standard deviation of an informative token
noise_std                     standard deviation of the output noise
M                             the manifold theta = eta = rho = 0
============================  ====================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from attnlab.common.arrays import ArrayLike
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import finite_array, integer
from attnlab.slr.laws.subsets import posterior_variance
from attnlab.slr.task import Task
from attnlab.slr.theory import overlaps as formula

# ``nu`` is the overlap v.v* here; the strength of the mark is the task's, or the default d/2.
in_overlaps = from_law(Task, nu=None, law="spiked", lengths=None, directions=None)


@in_overlaps
def risk(
    task: Task,
    kappa: ArrayLike,
    nu: ArrayLike,
    theta: ArrayLike = 0.0,
    eta: ArrayLike = 0.0,
    rho: ArrayLike = 0.0,
    *,
    lam: ArrayLike,
) -> Prediction:
    r"""Risk :math:`\mathbb{E}(y - T(X))^2` of :math:`T(X) = \sum_l \mathrm{erf}(\lambda X_l\cdot k)\,X_l\cdot v`.

    .. math::
        R = \epsilon^2 + \gamma^2 - 2\sqrt K[\gamma^2\nu E_0 + \lambda\gamma^2\mu\,\eta\theta E_1
            + \lambda^2\gamma^4 \eta\rho E_2] + K[(\mu^2\theta^2 + \gamma^2) Z + 2\lambda\gamma^2\mu\,\theta\rho Z_1
            + \lambda^2\gamma^4\rho^2 Z_2] \\
            + n(Z_0 + \lambda^2\rho^2 Z_{02}) + K(K-1)m^2 + n(n-1)C^2\rho^2 + 2KnC\rho\,m,
            \qquad n = L - K,\ m = \mu\theta E_0 + \lambda\gamma^2\rho E_1

    with the averages of :mod:`attnlab.slr.theory.overlaps`. Broadcasts over the overlaps and ``lam``.

    Source: arXiv:2410.01537, theorem 1, for K = 1; this form and K > 1 derived here.  Status: exact.

    >>> round(risk(1.0, 1.0, 0.0, 0.0, 0.0, d=400, L=10, lam=0.1), 6)  # (k*, v*)
    0.113498
    """
    given, lam = _overlaps(kappa, nu, theta, eta, rho), _temperatures(lam)
    return Prediction(_plain(formula.risk(given, formula.setting(task), lam, task.noise_std)))


@in_overlaps
def risk_gradient(
    task: Task,
    kappa: ArrayLike,
    nu: ArrayLike,
    theta: ArrayLike = 0.0,
    eta: ArrayLike = 0.0,
    rho: ArrayLike = 0.0,
    *,
    lam: ArrayLike,
) -> tuple[np.ndarray | float, ...]:
    r"""Partial derivatives of :func:`risk` in the order kappa, nu, theta, eta, rho.

    Source: derived here.  Status: exact.
    """
    given, lam = _overlaps(kappa, nu, theta, eta, rho), _temperatures(lam)
    parts = formula.gradient(given, formula.setting(task), lam)
    return tuple(_plain(part) for part in np.broadcast_arrays(*parts))


@in_overlaps
def manifold_risk(task: Task, kappa: ArrayLike, nu: ArrayLike, *, lam: ArrayLike) -> Prediction:
    r"""The risk on the invariant manifold M, where theta = eta = rho = 0.

    .. math:: R = \epsilon^2 + \gamma^2\big(1 - 2\sqrt K\nu\,\mathrm{erf}(c\kappa)
              + K\zeta(\lambda\mu\kappa; \lambda\gamma)\big) + (L-K)\,\zeta(0; \lambda), \quad
              c = \lambda\mu/\sqrt{1 + 2\lambda^2\gamma^2}

    Source: arXiv:2410.01537 for K = 1; derived here.  Status: exact.
    """
    return risk(task, kappa, nu, lam=lam)


@from_law(Task)
def oracle_risk(task: Task, *, lam: ArrayLike) -> Prediction:
    r"""Risk of erf attention at the planted pair, (k, v) = (k*, v*).

    For K = 1 it tends to :math:`\epsilon^2` when :math:`\lambda\sqrt d \to \infty` and :math:`\lambda\sqrt L \to 0`;
    for K > 1 each informative token should count :math:`K^{-1/2}`, so that :math:`\mathrm{erf}(\lambda\mu)` has to be
    near that.

    Source: arXiv:2410.01537, corollary 2.  Status: exact.

    >>> round(oracle_risk(d=400, L=10, lam=(400 * 10) ** -0.25), 6)
    0.175748
    """
    return risk(task, 1.0, 1.0, lam=lam)


@from_law(Task)
def best_temperature(task: Task) -> Prediction:
    """The ``lam`` at which the planted pair has the smallest risk (a smooth function of one variable).

    ``detail`` has the risk there and the residual, the slope of the logarithm of the excess risk in log lam.

    Source: derived here.  Status: exact.

    >>> best = best_temperature(d=400, L=10)
    >>> round(best, 5), best.converged
    (0.06377, True)
    """
    law = formula.setting(task)

    def slope(log_lam: float) -> float:
        h = 1e-5
        above, below = (np.log(_excess(law, np.exp(x))) for x in (log_lam + h, log_lam - h))
        return float((above - below) / (2 * h))

    # The paper's (d L)^{-1/4}, with d = 2 nu.
    centre = np.log((task.strength * 2 * task.L) ** -0.25)
    grid = np.linspace(centre - 6, centre + 4, 101)
    i = int(np.argmin(_excess(law, np.exp(grid))))
    if not 0 < i < 100:
        return Prediction(float(np.exp(grid[i])), np.inf, converged=False, detail={"residual": abs(slope(grid[i]))})
    # The minimum as a root of the slope: the value alone would give half of the digits.
    root, report = optimize.brentq(slope, grid[i - 1], grid[i + 1], xtol=1e-12, full_output=True)
    lam, left = float(np.exp(root)), abs(slope(root))
    detail = {"risk": float(_excess(law, lam) + task.noise_std**2), "residual": left, "n_iter": report.iterations}
    return Prediction(lam, 1e-9 * lam, converged=bool(report.converged), detail=detail)


def _excess(law: formula.Setting, lam: Any) -> Any:
    return formula.risk((1.0, 1.0, 0.0, 0.0, 0.0), law, np.float64(1.0) * lam)


# The formula has neither d nor L: any that a task allows will do.
@from_law(Task, d=2, L=1)
def null_risk(task: Task) -> Prediction:
    r"""Risk of predicting zero, :math:`\epsilon^2 + \gamma^2`, under every law and length.

    Source: derived here.  Status: exact.
    """
    return Prediction(task.noise_std**2 + task.law_in_force.gamma**2)


def _each_length(f: Callable[..., Prediction]) -> Callable[..., Prediction]:
    """With an array in the place of L, one prediction for each length."""

    @functools.wraps(f)
    def call(*args: Any, **law: Any) -> Prediction:
        if "L" not in law:
            return f(*args, **law)
        lengths = finite_array("L", law.pop("L"))
        values = [float(f(*args, L=_whole(L), **law)) for L in lengths.ravel()]
        return Prediction(_plain(np.reshape(values, lengths.shape)))

    return call


def _whole(L: float) -> int:
    if int(L) != L:
        raise ValueError(f"L must be an integer >= 1, got {L!r}")
    return int(L)


@_each_length
@from_law(Task, d=2)
def linear_risk(task: Task, *, d: int | None = None) -> Prediction:
    r"""Risk of the best linear predictor in all tokens.

    .. math:: R = \epsilon^2 + \gamma^2\,\frac{L - K}{K\gamma^2 + L - K}, \qquad
              \beta_l = \frac{\sqrt K\gamma^2}{K\gamma^2 + L - K}\, v^* \text{ for every } l

    It is the same in every dimension (``d`` is accepted so that all references take the same arguments). For K = 1 and
    large L it is no better than predicting zero; for K = L it is exact. Broadcasts over L.

    Source: arXiv:2410.01537, proposition 3, for K = 1; derived here.  Status: exact.

    >>> round(linear_risk(L=10), 6)
    0.473684
    """
    if task.lengths is not None:
        raise ValueError(f"lengths must be None: the best linear predictor is not solved for {task.lengths}")
    square, K = task.law_in_force.gamma**2, task.locations
    return Prediction(task.noise_std**2 + square * (task.L - K) / (K * square + task.L - K))


@from_law(Task)
def bayes_risk(task: Task, *, n_draws: int = 200_000, seed: Seed = 0) -> Prediction:
    r"""Risk of the best predictor that knows k* and v*, the posterior mean of the output over the locations.

    .. math:: R = \epsilon^2 + \tfrac1K\,\mathbb{E}\,\mathrm{Var}\Big(\sum_{j\in J} z_j \,\Big|\, X\Big), \quad
              \Pr(J \mid X) \propto \exp\sum_{j\in J}\big(\sqrt\nu\chi_j/\gamma^2 + (1 - \gamma^{-2})|X_j|^2/2\big)

    For gamma = 1 and K = 1 by quadrature (:func:`bayes_attention_risk`). Otherwise an average over ``n_draws``: only
    :math:`\chi_l = X_l\cdot k^*`, :math:`z_l = X_l\cdot v^*` and the norm of the rest (a chi-square with d - 2 degrees
    of freedom) enter, so a draw costs 3L numbers in any dimension; ``error`` is then one standard error.

    Source: derived here.  Status: exact, up to the stated error.
    """
    floor, n_draws = task.noise_std**2, integer("n_draws", n_draws, low=2)
    if task.law_in_force.gamma == 1 and task.locations == 1:
        mean = float(np.mean([task.law_in_force.bayes_excess(L) for L in task.sizes]))
        return Prediction(floor + mean, 1e-9 * mean)
    rng = stream(seed, "theory", "slr", "bayes")
    # equal numbers of draws for each length, in pieces of at most 4e6 numbers
    draws = [
        _bayes_draws(task, L, size, rng)
        for L in task.sizes
        for size in _chunks(max(n_draws // len(task.sizes), 2), 4_000_000 // (3 * L))
    ]
    excess = np.concatenate(draws) / task.locations
    error = float(excess.std(ddof=1) / np.sqrt(len(excess)))
    return Prediction(float(floor + excess.mean()), error, detail={"n_draws": len(excess)})


def _bayes_draws(task: Task, L: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Posterior variance of the sum over the locations, the informative tokens being the first."""
    law, K, gamma = task.law_in_force, task.locations, task.law_in_force.gamma
    chi, z = rng.standard_normal((2, n, L))
    # In two dimensions nothing is left, and a chi-square needs a degree of freedom.
    rest = rng.chisquare(task.d - 2, (n, L)) if task.d > 2 else np.zeros((n, L))
    chi[:, :K] = np.sqrt(task.strength) + gamma * chi[:, :K]
    z[:, :K], rest[:, :K] = gamma * z[:, :K], gamma**2 * rest[:, :K]
    # k* and v* are orthonormal: |X|^2 is the sum of the three.
    return posterior_variance(law.evidence(chi, chi**2 + z**2 + rest), z, K)


def _chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def _overlaps(*values: ArrayLike) -> list[np.ndarray]:
    """The five overlaps in float64 and in [-1, 1] (rounding beyond the ends is let through)."""
    arrays = []
    for name, value in zip(formula.NAMES, values, strict=True):
        array = finite_array(name, value).astype(np.float64)
        if (np.abs(array) > 1 + 1e-6).any():
            raise ValueError(f"{name} must be in [-1, 1] (k, v, k*, v* have norm 1), got {value!r}")
        arrays.append(array)
    return arrays


def _temperatures(lam: ArrayLike) -> np.ndarray:
    array = finite_array("lam", lam).astype(np.float64)
    if (array <= 0).any():
        raise ValueError(f"lam must be positive, got {lam!r}")
    return array


def _plain(value: Any) -> np.ndarray | float:
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array
