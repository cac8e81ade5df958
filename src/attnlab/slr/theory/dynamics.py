r"""Training as a map of five numbers: projected gradient descent and gradient flow in the overlaps.

One step of projected gradient descent on the spheres stays in the span of (k, v, k*, v*), so it is an explicit map of
(kappa, nu, theta, eta, rho), exact in every dimension d. The symbols are those of :mod:`attnlab.slr.overlaps`;
``alpha`` is the step.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import integrate

from attnlab.common.advice import advise
from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute, placed
from attnlab.common.law import from_law
from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.common.validation import finite_array, integer, nonnegative, positive
from attnlab.slr.namespace import jax_namespace
from attnlab.slr.task import Task
from attnlab.slr.theory import overlaps as formula

VECTORISED = 10_000  # runs


@from_law(Task)
def gradient_descent(
    task: Task,
    overlaps: ArrayLike,
    *,
    lam: float,
    step: float,
    n_steps: int,
    log_every: int = 1,
    decay: float = 0.0,
    penalty_mean: float = 0.0,
    penalty_overlap: float = 0.0,
    check_step: bool = True,
    compute: Compute | None = None,
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
    penalty_mean : weight of the penalty :math:`(v\cdot\mathbb{E}X)^2 = (K\mu\theta/L)^2`.
    penalty_overlap : weight of the penalty :math:`\rho^2`.
    compute : the device on which to iterate; ``auto`` is JAX's default one.

    Returns
    -------
    trajectory : (logs, runs, 5); the first entry is the initial state, the last the state after ``n_steps``.

    Source: arXiv:2410.01537, section 5 (the algorithm); the map is derived here.  Status: exact.

    >>> path = gradient_descent([0.05, 0.05, 0, 0, 0], d=400, L=10, lam=0.1, step=4e-3, n_steps=2000, log_every=1000)
    >>> path.shape
    (3, 1, 5)
    """
    start, law = check_overlaps(overlaps), formula.setting(task)
    lam, step = positive("lam", lam), positive("step", step)
    n_steps, log_every = integer("n_steps", n_steps, low=0), integer("log_every", log_every, low=1)
    penalties = nonnegative("penalty_mean", penalty_mean), nonnegative("penalty_overlap", penalty_overlap)
    options = (lam, step, nonnegative("decay", decay), *penalties)
    if check_step:
        warn_if_unstable(step, task, lam)
    with placed(compute, gradient_descent):
        return _trajectory(start, law, options, n_steps, log_every)


def warn_if_unstable(step: float, task: Task, lam: float) -> None:
    """Warn, with the limit, when a step is too long for (k*, v*) to be stable."""
    limit = formula.step_limit(formula.setting(task), lam)
    if step > limit:
        advise(
            f"step={step:g} is beyond the stability limit {limit:.3g} at (k*, v*) for d={task.d}, L={task.L}, "
            f"lam={lam:g}: the overlaps theta, eta, rho will oscillate",
            stacklevel=4,
        )


@float64
def _trajectory(
    start: np.ndarray, law: formula.Setting, options: tuple[float, ...], n_steps: int, log_every: int
) -> np.ndarray:
    """Whole blocks of ``log_every`` steps, then what remains."""
    blocks, rest = divmod(n_steps, log_every)
    # Numbers as arrays: another value does not compile again. One for each run, as XLA on a CPU vectorises loops over
    # arrays alone (two thirds of the time at 250 runs); not where memory is the limit.
    shape = len(start) if len(start) <= VECTORISED else ()
    given = formula.Setting(*(np.full(shape, x) for x in law)), tuple(np.full(shape, x) for x in options)
    last, path = _scan()(start.T, *given, np.int64(log_every), blocks, np.int64(0))
    parts = [start.T[None], np.asarray(path)]
    if rest:
        last, _ = _scan()(np.asarray(last), *given, np.int64(rest), 1, np.int64(blocks * log_every))
        parts.append(np.asarray(last)[None])
    return np.moveaxis(np.concatenate(parts), 1, 2)


@functools.cache
def _scan() -> Any:
    """The compiled loop; built on first use so that importing the theory does not import JAX."""
    import jax
    import jax.numpy as jnp

    xp = jax_namespace()

    def advance(t: Any, state: Any, law: formula.Setting, options: Any) -> Any:
        lam, alpha, decay, penalty_mean, penalty_overlap = options
        partial = formula.gradient(state, law, lam / (1 + decay * t), xp)
        r_kappa, r_nu, r_theta, r_eta, r_rho = partial
        r_theta = r_theta + 2 * penalty_mean * (law.K * law.mu / law.L) ** 2 * state[2]
        r_rho = r_rho + 2 * penalty_overlap * state[4]
        return descend(state, (r_kappa, r_nu, r_theta, r_eta, r_rho), alpha, jnp.sqrt)

    @functools.partial(jax.jit, static_argnames="blocks")
    def scan(state: Any, law: Any, options: Any, log_every: Any, blocks: int, first: Any) -> Any:
        def block(carry: Any, _: None) -> Any:
            t, state = carry
            state = jax.lax.fori_loop(t, t + log_every, lambda i, s: advance(i, s, law, options), state)
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
    # s_k = k.g_k: the projection on the sphere leaves k the factor 1 + alpha s_k. norm_k is |g_k|^2.
    a_k, a_v = 1 + alpha * s_k, 1 + alpha * s_v
    norm_k = r_kappa**2 + r_eta**2 + r_rho**2 + 2 * r_rho * (theta * r_kappa + nu * r_eta)
    norm_v = r_nu**2 + r_theta**2 + r_rho**2 + 2 * r_rho * (eta * r_nu + kappa * r_theta)
    # The projected gradient is orthogonal to its vector: Pythagoras gives the length after the step.
    n_k, n_v = sqrt(1 + alpha**2 * (norm_k - s_k**2)), sqrt(1 + alpha**2 * (norm_v - s_v**2))
    # g_k.g_v, the term of second order in k.v.
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


@from_law(Task)
def velocity(task: Task, overlaps: Any, *, lam: float) -> np.ndarray:
    r"""Time derivative of the overlaps under the gradient flow on the spheres; (..., 5) in, (..., 5) out.

    Source: derived here (:func:`descend` to first order in alpha).  Status: exact.
    """
    return _velocity(np.asarray(overlaps, dtype=np.float64), formula.setting(task), np.float64(lam))


def _velocity(overlaps: np.ndarray, law: formula.Setting, lam: float) -> np.ndarray:
    state = np.moveaxis(overlaps, -1, 0)
    kappa, nu, theta, eta, rho = state
    r_kappa, r_nu, r_theta, r_eta, r_rho = formula.gradient(state, law, lam)
    s_k, s_v = kappa * r_kappa + eta * r_eta + rho * r_rho, nu * r_nu + theta * r_theta + rho * r_rho
    rates = (
        kappa * s_k - r_kappa - r_rho * theta,
        nu * s_v - r_nu - r_rho * eta,
        theta * s_v - r_theta - r_rho * kappa,
        eta * s_k - r_eta - r_rho * nu,
        rho * (s_k + s_v) - (r_nu * eta + r_theta * kappa + r_rho) - (r_kappa * theta + r_eta * nu + r_rho),
    )
    return np.stack(np.broadcast_arrays(*rates), axis=-1)


@from_law(Task)
def gradient_flow(task: Task, overlaps: ArrayLike, times: ArrayLike, *, lam: float) -> Prediction:
    r"""The gradient flow :math:`\dot k = -\mathrm{grad}_k R,\ \dot v = -\mathrm{grad}_v R` on the spheres.

    The limit of :func:`gradient_descent` for small steps, at time (step size) x (number of steps). Integrated by an
    implicit method (the flow is stiff); ``error`` is the largest difference to a second integration with a hundred
    times the tolerance, an upper estimate.

    Parameters
    ----------
    times : increasing, from 0 on.

    Returns
    -------
    Prediction whose ``value`` has shape (times, runs, 5).

    Source: arXiv:2410.01537; derived here.  Status: exact, up to the integrator's error.
    """
    start, law, lam = check_overlaps(overlaps), formula.setting(task), positive("lam", lam)
    at = finite_array("times", times, ndim=1).astype(np.float64)
    if len(at) == 0 or at[0] < 0 or (np.diff(at) < 0).any():
        raise ValueError(f"times must be non-negative and increasing, got {times!r}")

    def rates(_: float, state: np.ndarray) -> np.ndarray:
        return _velocity(state, law, np.float64(lam))

    # Near zero, where overlaps start and on M stay, the absolute tolerance decides.
    def run(x: np.ndarray, tol: float) -> Any:
        return integrate.solve_ivp(rates, (0, at[-1]), x, method="LSODA", t_eval=at, rtol=tol, atol=tol / 100)

    # One run at a time: each has steps of its own, and the Jacobian of an implicit step is 5 x 5.
    fine, coarse = ([run(x, tol) for x in start] for tol in (1e-8, 1e-6))
    value = np.stack([one.y.T for one in fine], axis=1)
    error = float(np.max(np.abs(value - np.stack([one.y.T for one in coarse], axis=1))))
    detail = {"n_iter": max(one.nfev for one in fine), "residual": error}
    return Prediction(value, error, converged=all(one.success for one in fine), detail=detail)


def check_overlaps(overlaps: ArrayLike) -> Float[np.ndarray, "runs 5"]:
    """Initial states (runs, 5) that unit vectors can have; others would leave the range of the formulas."""
    start = np.atleast_2d(finite_array("overlaps", overlaps)).astype(np.float64)
    if start.ndim != 2 or start.shape[1] != 5:
        raise ValueError(f"overlaps must have shape (runs, 5): kappa, nu, theta, eta, rho; got {start.shape}")
    if (np.abs(start) > 1 + 1e-6).any():
        raise ValueError("overlaps must be in [-1, 1] (k, v, k*, v* have norm 1)")
    if not (real := formula.possible(start)).all():
        raise ValueError(
            f"overlaps must be those of unit vectors with k*.v* = 0; the Gram matrix of {start[~real][0].tolist()} "
            "has a negative eigenvalue"
        )
    return start
