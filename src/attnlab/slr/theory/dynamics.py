r"""Training as a map of five numbers: projected gradient descent and gradient flow in the overlaps.

One step of projected gradient descent on the spheres stays in the span of (k, v, k*, v*), so it is an explicit map of
(kappa, nu, theta, eta, rho), exact in every dimension d. The symbols are those of :mod:`attnlab.slr.overlaps`;
``alpha`` is the step.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import integrate

from attnlab.common.arrays import ArrayLike
from attnlab.common.precision import float64
from attnlab.common.solution import Solution
from attnlab.common.validation import finite_array, integer, nonnegative, positive
from attnlab.slr import overlaps as formula


def gradient_descent(
    overlaps: ArrayLike,
    *,
    d: int,
    L: int,
    lam: float,
    gamma: float = 2**-0.5,
    step: float,
    n_steps: int,
    log_every: int = 1,
    decay: float = 0.0,
    penalty_mean: float = 0.0,
    penalty_overlap: float = 0.0,
    check_step: bool = True,
) -> Float[np.ndarray, "logs runs 5"]:
    r"""Projected gradient descent on the population risk, as the exact map of the five overlaps.

    .. math:: k \leftarrow \frac{k - \alpha(g_k - (k\cdot g_k)k)}{|\cdot|},\quad
              v \leftarrow \frac{v - \alpha(g_v - (v\cdot g_v)v)}{|\cdot|},\quad
              g_k = R_\kappa k^* + R_\eta v^* + R_\rho v,\quad g_v = R_\nu v^* + R_\theta k^* + R_\rho k

    both from the same (k, v); :math:`\lambda_t = \lambda/(1 + \text{decay}\,t)`. All runs go through one ``lax.scan``.

    Parameters
    ----------
    overlaps : (runs, 5) or (5,), the initial kappa, nu, theta, eta, rho.
    step : the step size alpha; a warning names the stability limit at (k*, v*) when it is exceeded at the first
        ``lam`` (``check_step=False`` silences it: with a decaying ``lam`` the limit is met later).
    log_every : the state is kept every so many steps.
    penalty_mean : weight of the penalty :math:`(v\cdot\mathbb{E}X)^2 = (\mu\theta/L)^2`.
    penalty_overlap : weight of the penalty :math:`\rho^2`.

    Returns
    -------
    trajectory : (logs, runs, 5); the first entry is the initial state, the last the state after ``n_steps``.

    Source: arXiv:2410.01537, section 5 (the algorithm); the map is derived here.  Status: exact.

    >>> path = gradient_descent([0.05, 0.05, 0, 0, 0], d=400, L=10, lam=0.1, step=4e-3, n_steps=2000, log_every=1000)
    >>> path.shape
    (3, 1, 5)
    """
    start = _start(overlaps)
    d, L = integer("d", d, low=2), integer("L", L, low=2)
    lam, gamma, step = positive("lam", lam), positive("gamma", gamma), positive("step", step)
    n_steps, log_every = integer("n_steps", n_steps, low=0), integer("log_every", log_every, low=1)
    penalties = nonnegative("penalty_mean", penalty_mean), nonnegative("penalty_overlap", penalty_overlap)
    law = (d, L, lam, gamma, step, nonnegative("decay", decay), *penalties)
    if check_step:
        warn_if_unstable(step, d=d, L=L, lam=lam, gamma=gamma)
    return _trajectory(start, law, n_steps, log_every)


def warn_if_unstable(step: float, *, d: int, L: int, lam: float, gamma: float) -> None:
    """Warn, with the limit, when a step is too long for (k*, v*) to be stable."""
    limit = formula.step_limit(d=d, L=L, lam=lam, gamma=gamma)
    if step > limit:
        warnings.warn(
            f"step={step:g} is beyond the stability limit {limit:.3g} at (k*, v*) for d={d}, L={L}, lam={lam:g}: "
            "the overlaps theta, eta, rho will oscillate",
            stacklevel=3,
        )


@float64
def _trajectory(start: np.ndarray, law: tuple[Any, ...], n_steps: int, log_every: int) -> np.ndarray:
    """Whole blocks of ``log_every`` steps, then what remains."""
    blocks, rest = divmod(n_steps, log_every)
    law = tuple(np.float64(x) for x in law)
    last, path = _scan()(start.T, law, np.int64(log_every), blocks, np.int64(0))
    parts = [start.T[None], np.asarray(path)]
    if rest:
        last, _ = _scan()(np.asarray(last), law, np.int64(rest), 1, np.int64(blocks * log_every))
        parts.append(np.asarray(last)[None])
    return np.moveaxis(np.concatenate(parts), 1, 2)


@functools.cache
def _scan() -> Any:
    """The compiled loop; built on first use so that importing the theory does not import JAX."""
    import jax
    import jax.numpy as jnp

    xp = formula.jax_namespace()

    def advance(t: Any, state: Any, law: tuple[Any, ...]) -> Any:
        d, L, lam, gamma, alpha, decay, penalty_mean, penalty_overlap = law
        partial = formula.gradient(state, d=d, L=L, lam=lam / (1 + decay * t), gamma=gamma, xp=xp)
        r_kappa, r_nu, r_theta, r_eta, r_rho = partial
        r_theta = r_theta + penalty_mean * d / L**2 * state[2]
        r_rho = r_rho + 2 * penalty_overlap * state[4]
        return descend(state, (r_kappa, r_nu, r_theta, r_eta, r_rho), alpha, jnp.sqrt)

    @functools.partial(jax.jit, static_argnames="blocks")
    def scan(state: Any, law: tuple[Any, ...], log_every: Any, blocks: int, first: Any) -> Any:
        def block(carry: Any, _: None) -> Any:
            t, state = carry
            state = jax.lax.fori_loop(t, t + log_every, lambda i, s: advance(i, s, law), state)
            return (t + log_every, state), state

        (_, state), path = jax.lax.scan(block, (first, tuple(state)), None, length=blocks)
        return jnp.stack(state), jnp.stack(path, axis=1)

    return scan


def descend(overlaps: Any, partial: Any, alpha: Any, sqrt: Any = np.sqrt) -> tuple[Any, ...]:
    """One step of projected gradient descent, given the partial derivatives of the risk.

    Source: derived here.  Status: exact.
    """
    kappa, nu, theta, eta, rho = overlaps
    r_kappa, r_nu, r_theta, r_eta, r_rho = partial
    s_k, s_v = kappa * r_kappa + eta * r_eta + rho * r_rho, nu * r_nu + theta * r_theta + rho * r_rho
    a_k, a_v = 1 + alpha * s_k, 1 + alpha * s_v
    norm_k = r_kappa**2 + r_eta**2 + r_rho**2 + 2 * r_rho * (theta * r_kappa + nu * r_eta)
    norm_v = r_nu**2 + r_theta**2 + r_rho**2 + 2 * r_rho * (eta * r_nu + kappa * r_theta)
    n_k, n_v = sqrt(1 + alpha**2 * (norm_k - s_k**2)), sqrt(1 + alpha**2 * (norm_v - s_v**2))
    inner = (
        r_kappa * (r_theta + r_rho * kappa)
        + r_eta * (r_nu + r_rho * eta)
        + r_rho * (r_nu * nu + r_theta * theta + r_rho * rho)
    )
    rho_next = (
        a_k * a_v * rho
        - alpha * a_k * (r_nu * eta + r_theta * kappa + r_rho)
        - alpha * a_v * (r_kappa * theta + r_eta * nu + r_rho)
        + alpha**2 * inner
    )
    return (
        (a_k * kappa - alpha * (r_kappa + r_rho * theta)) / n_k,
        (a_v * nu - alpha * (r_nu + r_rho * eta)) / n_v,
        (a_v * theta - alpha * (r_theta + r_rho * kappa)) / n_v,
        (a_k * eta - alpha * (r_eta + r_rho * nu)) / n_k,
        rho_next / (n_k * n_v),
    )


def velocity(overlaps: Any, *, d: int, L: int, lam: float, gamma: float = 2**-0.5) -> np.ndarray:
    r"""Time derivative of the overlaps under the gradient flow on the spheres; (..., 5) in, (..., 5) out.

    Source: derived here (:func:`descend` to first order in alpha).  Status: exact.
    """
    state = np.moveaxis(np.asarray(overlaps, dtype=np.float64), -1, 0)
    kappa, nu, theta, eta, rho = state
    r_kappa, r_nu, r_theta, r_eta, r_rho = formula.gradient(state, d=d, L=L, lam=np.float64(lam), gamma=gamma)
    s_k, s_v = kappa * r_kappa + eta * r_eta + rho * r_rho, nu * r_nu + theta * r_theta + rho * r_rho
    rates = (
        kappa * s_k - r_kappa - r_rho * theta,
        nu * s_v - r_nu - r_rho * eta,
        theta * s_v - r_theta - r_rho * kappa,
        eta * s_k - r_eta - r_rho * nu,
        rho * (s_k + s_v) - (r_nu * eta + r_theta * kappa + r_rho) - (r_kappa * theta + r_eta * nu + r_rho),
    )
    return np.stack(np.broadcast_arrays(*rates), axis=-1)


def gradient_flow(
    overlaps: ArrayLike, times: ArrayLike, *, d: int, L: int, lam: float, gamma: float = 2**-0.5
) -> Solution[np.ndarray]:
    r"""The gradient flow :math:`\dot k = -\mathrm{grad}_k R,\ \dot v = -\mathrm{grad}_v R` on the spheres.

    The limit of :func:`gradient_descent` for small steps, at time (step size) x (number of steps).

    Returns
    -------
    Solution whose ``value`` has shape (times, runs, 5), integrated by an implicit method (the flow is stiff) to a
    relative tolerance of 1e-8.

    Source: arXiv:2410.01537; derived here.  Status: exact up to the integrator's tolerance.
    """
    start = _start(overlaps)
    d, L = integer("d", d, low=2), integer("L", L, low=2)
    lam, gamma = positive("lam", lam), positive("gamma", gamma)
    at = np.sort(finite_array("times", times, ndim=1))
    if at[0] < 0:
        raise ValueError(f"times must be non-negative, got {at[0]}")

    def rates(_: float, state: np.ndarray) -> np.ndarray:
        return velocity(state, d=d, L=L, lam=lam, gamma=gamma)

    runs = [integrate.solve_ivp(rates, (0, at[-1]), x, method="LSODA", t_eval=at, rtol=1e-8, atol=1e-10) for x in start]
    value = np.stack([run.y.T for run in runs], axis=1)
    return Solution(value, all(run.success for run in runs), max(run.nfev for run in runs), 1e-8)


def _start(overlaps: ArrayLike) -> Float[np.ndarray, "runs 5"]:
    start = np.atleast_2d(finite_array("overlaps", overlaps)).astype(np.float64)
    if start.ndim != 2 or start.shape[1] != 5:
        raise ValueError(f"overlaps must have shape (runs, 5): kappa, nu, theta, eta, rho; got {start.shape}")
    if (np.abs(start) > 1 + 1e-6).any():
        raise ValueError("overlaps must be in [-1, 1] (k, v, k*, v* have norm 1)")
    return start
