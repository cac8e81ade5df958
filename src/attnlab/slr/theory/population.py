r"""Exact population risks of erf attention and of the reference predictors (arXiv:2410.01537).

============================  ====================================================================
symbol                        meaning
============================  ====================================================================
kappa, nu, theta, eta, rho    k.k*, v.v*, v.k*, k.v*, k.v
d, L                          dimension and number of tokens
lam                           inverse temperature inside the erf
gamma                         standard deviation of the informative token
noise_std                     standard deviation of the output noise
M                             the manifold theta = eta = rho = 0
============================  ====================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize

from attnlab.common.arrays import ArrayLike
from attnlab.common.records import Estimate
from attnlab.common.seeds import Seed, generator
from attnlab.common.solution import Solution
from attnlab.common.validation import finite_array, integer, nonnegative, positive
from attnlab.slr import overlaps as formula


def risk(
    kappa: ArrayLike,
    nu: ArrayLike,
    theta: ArrayLike = 0.0,
    eta: ArrayLike = 0.0,
    rho: ArrayLike = 0.0,
    *,
    d: int,
    L: int,
    lam: ArrayLike,
    gamma: float = 2**-0.5,
    noise_std: float = 0.0,
) -> np.ndarray | float:
    r"""Risk :math:`\mathbb{E}(y - T(X))^2` of :math:`T(X) = \sum_l \mathrm{erf}(\lambda X_l\cdot k)\,X_l\cdot v`.

    .. math::
        R = \epsilon^2 + \gamma^2 - 2[\gamma^2\nu E_0 + \lambda\gamma^2\mu\,\eta\theta E_1
            + \lambda^2\gamma^4 \eta\rho E_2] + (\mu^2\theta^2 + \gamma^2) Z + 2\lambda\gamma^2\mu\,\theta\rho Z_1
            + \lambda^2\gamma^4\rho^2 Z_2 \\
            + (L-1)(Z_0 + \lambda^2\rho^2 Z_{02}) + (L-1)(L-2)C^2\rho^2
            + 2(L-1)C\rho(\mu\theta E_0 + \lambda\gamma^2\rho E_1)

    with the averages of :mod:`attnlab.slr.overlaps`. Broadcasts over the overlaps and ``lam``.

    Source: arXiv:2410.01537, theorem 1; this form derived here.  Status: exact.

    >>> round(float(risk(1.0, 1.0, 0.0, 0.0, 0.0, d=400, L=10, lam=0.1)), 6)  # (k*, v*)
    0.113498
    """
    overlaps, lam = _overlaps(kappa, nu, theta, eta, rho), _temperatures(lam)
    d, L, gamma = _law(d, L, gamma)
    noise_std = nonnegative("noise_std", noise_std)
    return _plain(formula.risk(overlaps, d=d, L=L, lam=lam, gamma=gamma, noise_std=noise_std))


def risk_gradient(
    kappa: ArrayLike,
    nu: ArrayLike,
    theta: ArrayLike = 0.0,
    eta: ArrayLike = 0.0,
    rho: ArrayLike = 0.0,
    *,
    d: int,
    L: int,
    lam: ArrayLike,
    gamma: float = 2**-0.5,
    noise_std: float = 0.0,
) -> tuple[np.ndarray | float, ...]:
    r"""Partial derivatives of :func:`risk` in the order kappa, nu, theta, eta, rho.

    ``noise_std`` is accepted so that both functions take the same arguments; it does not matter.

    Source: derived here.  Status: exact.
    """
    overlaps, lam = _overlaps(kappa, nu, theta, eta, rho), _temperatures(lam)
    d, L, gamma = _law(d, L, gamma)
    nonnegative("noise_std", noise_std)
    parts = formula.gradient(overlaps, d=d, L=L, lam=lam, gamma=gamma)
    return tuple(_plain(part) for part in np.broadcast_arrays(*parts))


def manifold_risk(
    kappa: ArrayLike,
    nu: ArrayLike,
    *,
    d: int,
    L: int,
    lam: ArrayLike,
    gamma: float = 2**-0.5,
    noise_std: float = 0.0,
) -> np.ndarray | float:
    r"""The risk on the invariant manifold M, where theta = eta = rho = 0.

    .. math:: R = \epsilon^2 + \gamma^2\big(1 - 2\nu\,\mathrm{erf}(c\kappa)
              + \zeta(\lambda\mu\kappa; \lambda\gamma)\big) + (L-1)\,\zeta(0; \lambda), \quad
              c = \lambda\mu/\sqrt{1 + 2\lambda^2\gamma^2}

    Source: arXiv:2410.01537; derived here.  Status: exact.
    """
    return risk(kappa, nu, d=d, L=L, lam=lam, gamma=gamma, noise_std=noise_std)


def oracle_risk(
    *, d: int, L: int, lam: ArrayLike, gamma: float = 2**-0.5, noise_std: float = 0.0
) -> np.ndarray | float:
    r"""Risk of erf attention at the planted pair, (k, v) = (k*, v*).

    Tends to :math:`\epsilon^2` when :math:`\lambda\sqrt d \to \infty` and :math:`\lambda\sqrt L \to 0`.

    Source: arXiv:2410.01537, corollary 2.  Status: exact.

    >>> round(float(oracle_risk(d=400, L=10, lam=(400 * 10) ** -0.25)), 6)
    0.175748
    """
    return risk(1.0, 1.0, d=d, L=L, lam=lam, gamma=gamma, noise_std=noise_std)


def best_temperature(*, d: int, L: int, gamma: float = 2**-0.5) -> Solution[float]:
    """The ``lam`` at which the planted pair has the smallest risk (a smooth function of one variable).

    Source: derived here.  Status: exact.

    >>> best = best_temperature(d=400, L=10)
    >>> round(best.value, 5), best.converged
    (0.06377, True)
    """
    d, L, gamma = _law(d, L, gamma)

    def log_risk(log_lam: float) -> float:
        return float(np.log(oracle_risk(d=d, L=L, lam=float(np.exp(log_lam)), gamma=gamma)))

    centre = np.log((d * L) ** -0.25)
    grid = np.linspace(centre - 6, centre + 4, 101)
    best = int(np.argmin([log_risk(x) for x in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, 100)]
    found = optimize.minimize_scalar(log_risk, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    return Solution(float(np.exp(found.x)), bool(found.success) and 0 < best < 100, int(found.nfev), float(high - low))


def null_risk(*, gamma: float = 2**-0.5, noise_std: float = 0.0) -> float:
    r"""Risk of predicting zero, :math:`\epsilon^2 + \gamma^2`.

    Source: derived here.  Status: exact.
    """
    return nonnegative("noise_std", noise_std) ** 2 + positive("gamma", gamma) ** 2


def linear_risk(
    *, d: int | None = None, L: ArrayLike, gamma: float = 2**-0.5, noise_std: float = 0.0
) -> np.ndarray | float:
    r"""Risk of the best linear predictor in all tokens.

    .. math:: R = \epsilon^2 + \gamma^2 - \frac{\gamma^4}{\gamma^2 + L - 1}, \qquad
              \beta_l = \frac{\gamma^2}{\gamma^2 + L - 1}\, v^* \text{ for every } l

    It is the same in every dimension (``d`` is accepted so that all references take the same arguments); as L grows it
    is no better than predicting zero.

    Source: arXiv:2410.01537, proposition 3.  Status: exact.

    >>> round(float(linear_risk(L=10)), 6)
    0.473684
    """
    if d is not None:
        integer("d", d, low=2)
    length = finite_array("L", L)
    if (length < 1).any():
        raise ValueError(f"L must be at least 1, got {L!r}")
    square = positive("gamma", gamma) ** 2
    return _plain(nonnegative("noise_std", noise_std) ** 2 + square - square**2 / (square + length - 1))


def bayes_risk(
    *, d: int, L: int, gamma: float = 2**-0.5, noise_std: float = 0.0, n_draws: int = 200_000, seed: Seed = 0
) -> Estimate:
    r"""Risk of the best predictor of all, :math:`\sum_l p_l\, X_l\cdot v^*` with the posterior p of the location.

    .. math:: R = \epsilon^2 + \mathbb{E}\Big[\sum_l p_l z_l^2 - \Big(\sum_l p_l z_l\Big)^2\Big], \quad
              p = \mathrm{softmax}_l\big(\mu\chi_l/\gamma^2 + (1 - \gamma^{-2})|X_l|^2/2\big)

    Only :math:`\chi_l = X_l\cdot k^*`, :math:`z_l = X_l\cdot v^*` and the norm of the rest (a chi-square with d - 2
    degrees of freedom) enter, so a draw costs 3L numbers in any dimension. Returns the average over ``n_draws`` with
    its 95 % interval.

    Source: derived here.  Status: exact up to the stated Monte Carlo error.
    """
    d, L, gamma = _law(d, L, gamma)
    n_draws = integer("n_draws", n_draws, low=2)
    rng = generator(seed)
    excess = np.concatenate([_bayes_draws(d, L, gamma, size, rng) for size in _chunks(n_draws, 4_000_000 // (3 * L))])
    mean, half = excess.mean(), 1.959964 * excess.std(ddof=1) / np.sqrt(n_draws)
    floor = nonnegative("noise_std", noise_std) ** 2
    return Estimate(float(floor + mean), float(floor + mean - half), float(floor + mean + half), n_draws)


def _bayes_draws(d: int, L: int, gamma: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Posterior variance of the output over locations, the informative token being the first."""
    mu = np.sqrt(d / 2)
    chi, z = rng.standard_normal((2, n, L))
    rest = rng.chisquare(d - 2, (n, L)) if d > 2 else np.zeros((n, L))
    chi[:, 0], z[:, 0], rest[:, 0] = mu + gamma * chi[:, 0], gamma * z[:, 0], gamma**2 * rest[:, 0]
    score = mu * chi / gamma**2 + (1 - gamma**-2) * (chi**2 + z**2 + rest) / 2
    p = np.exp(score - score.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    mean = np.sum(p * z, axis=1, keepdims=True)
    return np.asarray(np.sum(p * (z - mean) ** 2, axis=1))


def _chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def _overlaps(*values: ArrayLike) -> list[np.ndarray]:
    """The five overlaps as arrays in [-1, 1] (rounding beyond the ends is let through)."""
    arrays = []
    for name, value in zip(formula.NAMES, values, strict=True):
        array = finite_array(name, value)
        if (np.abs(array) > 1 + 1e-6).any():
            raise ValueError(f"{name} must be in [-1, 1] (k, v, k*, v* have norm 1), got {value!r}")
        arrays.append(array)
    return arrays


def _temperatures(lam: ArrayLike) -> np.ndarray:
    array = finite_array("lam", lam)
    if (array <= 0).any():
        raise ValueError(f"lam must be positive, got {lam!r}")
    return array


def _law(d: Any, L: Any, gamma: Any) -> tuple[int, int, float]:
    return integer("d", d, low=2), integer("L", L, low=2), positive("gamma", gamma)


def _plain(value: Any) -> np.ndarray | float:
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array
