"""First-order baselines, done well: Adam and L-BFGS with restarts, in Theta and W or with W projected out."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int
from scipy.optimize import minimize

from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute, jax_device, placed
from attnlab.common.precision import float64
from attnlab.common.seeds import Seed, jax_key, stream
from attnlab.common.stopping import ended
from attnlab.common.threads import single_threaded_blas
from attnlab.common.validation import integer, one_of, positive
from attnlab.mha.engine.damped import EXACT_FIT, OUT_OF_STEPS, OUT_OF_TIME, SETTLED, Budget
from attnlab.mha.engine.squared_error import Objective, compiled, error_and_slope, layer_of, squared_error, two_tokens
from attnlab.mha.engine.variable_projection import regress, row_patterns, through_patterns
from attnlab.mha.layer import Rows, rows_of
from attnlab.mha.learners.base import LayerRegressor, check_examples

METHODS = ("lbfgs", "adam", "projected_lbfgs")
_STEPS = (0.01, 0.05)
# Adam's batches are drawn for a block of steps, since the generator costs as much as a step when it is called for each;
# the clock is looked at after a part of one.
_BLOCK, _PART = 100, 10
DIVERGED = "diverged"
_GOOD = (EXACT_FIT, SETTLED)


class Run(NamedTuple):
    """One start, fitted: the layer, its relative squared error, iterations used, and why it stopped."""

    theta: np.ndarray
    w: np.ndarray
    nmse: float
    n_iter: int
    reason: str


class GradientLearner(LayerRegressor):
    """Fit a layer by gradients.

    Parameters
    ----------
    n_heads : number of heads fitted (more than planted is allowed).
    method : ``lbfgs`` (SciPy, full batch), ``adam`` (optax, minibatches, cosine decay to zero), or ``projected_lbfgs``:
        L-BFGS on the error with W eliminated by regression, which separates what variable projection gives from what
        second order gives.
    n_starts : restarts; the best training error wins, and none is begun after one below ``tol``. Adam's restarts take
        the steps in turn.
    max_iter : L-BFGS iterations of a start; Adam steps of a start.
    step : Adam's peak rate(s).
    batch_size : Adam's minibatch, in examples.
    tol : a start has converged when its relative squared error is below, or when its gradient is: the error that a
        move of the layer's own size along the gradient would change is below the share ``sqrt(tol)`` of the error.
    max_seconds : every start ends, and none is begun, after this time, in which the compilation of a first fit of its
        shape (one or two seconds) does not count.
    compute : where JAX computes (``device``); ``projected_lbfgs`` is BLAS and knows the CPU only.

    Attributes
    ----------
    theta_, w_ : the layer.
    train_nmse_ : relative squared error on the examples, for each start ``train_nmse_path_``.
    n_iter_ : iterations or steps of all starts together; ``converged_`` and ``stop_reason_`` are of the best start.

    Examples
    --------
    >>> from attnlab.mha import Task
    >>> X, y = Task(d=4, k=3, n_heads=1, rho=2.0).sample(300)
    >>> GradientLearner(n_heads=1, random_state=0).fit(X, y).train_nmse_ < 1e-8
    True
    """

    needs = ("n_heads",)

    def __init__(
        self,
        n_heads: int = 1,
        *,
        method: str = "lbfgs",
        n_starts: int = 4,
        max_iter: int = 300,
        step: float | tuple[float, ...] = _STEPS,
        batch_size: int = 256,
        tol: float = 1e-10,
        max_seconds: float | None = None,
        compute: Compute | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_heads = n_heads
        self.method = method
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.step = step
        self.batch_size = batch_size
        self.tol = tol
        self.max_seconds = max_seconds
        self.compute = compute
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> GradientLearner:
        """Run all starts and keep the best."""
        tokens, outputs = check_examples(X, y)
        one_of("method", self.method, METHODS)
        m = integer("n_heads", self.n_heads, low=1)
        n_starts, max_iter = integer("n_starts", self.n_starts, low=1), integer("max_iter", self.max_iter, low=1)
        batch = min(integer("batch_size", self.batch_size, low=1), len(tokens))
        steps = [positive("step", step) for step in np.atleast_1d(self.step).tolist()]
        tol = positive("tol", self.tol)
        budget = Budget.of(None if self.max_seconds is None else positive("max_seconds", self.max_seconds))
        rng = stream(self.random_state, "learner", "mha")
        compute = (self.compute or Compute()).supports(self, "device")
        rows = rows_of(tokens, outputs) if self.method == "projected_lbfgs" else None
        if rows is not None and compute.device == "gpu":
            raise ValueError("compute.device must be 'cpu' or 'auto' with method='projected_lbfgs', got 'gpu'")
        runs: list[Run] = []
        for start in range(n_starts):
            if runs and (runs[-1].nmse < tol or budget.spent):
                break
            theta, w = _initial(m, tokens.shape[-1], outputs.shape[-1], rng)
            if rows is not None:
                runs.append(_projected_lbfgs(rows, theta, max_iter, tol, budget))
                continue
            flat = np.concatenate([theta.ravel(), w.ravel()])
            with placed(compute, self):
                if self.method == "lbfgs":
                    # two_tokens is NumPy: with a GPU the compiled error serves two tokens too.
                    blas = tokens.shape[1] == 2 and jax_device(compute.device).platform == "cpu"
                    runs.append(_lbfgs(tokens, outputs, flat, m, max_iter, tol, budget, blas))
                else:
                    plan = _Plan(max_iter, steps[start % len(steps)], batch, int(rng.integers(2**31)))
                    runs.append(_adam(tokens, outputs, flat, m, plan, tol, budget))
        # A start that left the range of numbers loses to every other; the first is kept when all did.
        best = min(runs, key=lambda run: run.nmse if np.isfinite(run.nmse) else np.inf)
        self.theta_, self.w_, self.train_nmse_, self.n_tokens_ = best.theta, best.w, best.nmse, tokens.shape[1]
        self.train_nmse_path_ = [run.nmse for run in runs]
        used = sum(run.n_iter for run in runs)
        ended(self, converged=best.reason in _GOOD, reason=best.reason, n_iter=used)
        return self


def _initial(m: int, d: int, d_out: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Weak attention and projections of the usual size."""
    # Theta has norm 1/2: logits of that size saturate no pattern.
    return 0.5 * rng.standard_normal((m, d, d)) / d, rng.standard_normal((m, d, d_out)) / np.sqrt(d)


@float64
def _lbfgs(
    X: np.ndarray, y: np.ndarray, start: np.ndarray, m: int, max_iter: int, tol: float, budget: Budget, blas: bool
) -> Run:
    objective = two_tokens(X, y, m) if blas else compiled(X, y, m, start, budget)
    with single_threaded_blas():  # products of a block are too small for a thread more
        x, error, used, reason = _minimise(objective, start, max_iter, tol, budget)
    return Run(*layer_of(x, m, X.shape[-1]), error, used, reason)


def _minimise(
    objective: Objective, start: np.ndarray, max_iter: int, tol: float, budget: Budget
) -> tuple[np.ndarray, float, int, str]:
    """L-BFGS to rounding: the minimum, its value, the iterations used and why they ended."""
    # SciPy takes ftol as absolute where the error is below one: its default of 2e-9 would end a fit above tol. Its own
    # limit of 15 000 calls would end a long run, so maxfun grows with maxiter.
    options: Any = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-18, "gtol": 1e-12, "maxcor": 20}

    def in_time(x: np.ndarray) -> None:
        if budget.spent:
            # SciPy then returns the point reached; any other exception would lose it.
            raise StopIteration

    callback: Any = in_time
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options, callback=callback)
    reason = _ending(float(found.fun), found.jac, found.x, tol)
    if not reason:
        reason = OUT_OF_TIME if budget.spent else (SETTLED if found.success else OUT_OF_STEPS)
    return found.x, float(found.fun), int(found.nit), reason


def _ending(error: float, slope: np.ndarray, at: np.ndarray, tol: float) -> str:
    """What the last point says of itself; empty when it is neither exact nor stationary."""
    if not np.isfinite(error):
        return DIVERGED
    if error < tol:
        return EXACT_FIT
    return SETTLED if np.linalg.norm(slope) * np.linalg.norm(at) < np.sqrt(tol) * error else ""


def _projected_lbfgs(rows: Rows, theta: np.ndarray, max_iter: int, tol: float, budget: Budget) -> Run:
    """L-BFGS in Theta alone: W is the regression, whose derivative drops out of the gradient (envelope theorem)."""
    size = float(np.sum(rows.Y**2))

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        at = flat.reshape(theta.shape)
        fit = regress(rows, at)
        # The slope of head i is -2 sum_a q_a^T (r_a W_i^T C_a), r_a the residual; C is not written.
        seen = fit.residual @ fit.W.reshape(-1, fit.W.shape[-1]).T
        slope = -2 * rows.Q.T @ through_patterns(seen, row_patterns(rows, at), rows.K)
        by_head = slope.reshape(len(slope), len(at), -1).transpose(1, 0, 2)
        return fit.nmse(rows.Y), by_head.ravel() / size

    x, error, used, reason = _minimise(objective, theta.ravel(), max_iter, tol, budget)
    at = x.reshape(theta.shape)
    return Run(at, regress(rows, at).W, error, used, reason)


class _Plan(NamedTuple):
    """What one Adam start does."""

    n_steps: int
    step: float
    batch: int
    seed: int


@partial(jax.jit, static_argnames="m")
def _adam_steps(
    carry: tuple[Array, optax.OptState],
    X: Float[Array, "n k d"],
    y: Float[Array, "n k o"],
    sizes: Float[Array, " steps"],
    drawn: Int[Array, "steps batch"],
    *,
    m: int,
) -> tuple[Array, optax.OptState]:
    """Steps of the given sizes on the drawn examples; a size of zero leaves the layer as it is."""
    # Sizes are an argument and no schedule of the optimiser: one compilation serves them all.
    optimiser = optax.scale_by_adam()

    def step(carry: tuple[Array, optax.OptState], inputs: tuple[Array, Array]) -> tuple[Any, None]:
        (flat, state), (size, chosen) = carry, inputs
        update, state = optimiser.update(jax.grad(squared_error)(flat, X[chosen], y[chosen], m), state)
        return (flat - size * update, state), None

    return jax.lax.scan(step, carry, (sizes, drawn))[0]


@partial(jax.jit, static_argnames=("batch", "n"))
def _batches(key: Array, *, batch: int, n: int) -> Int[Array, "block batch"]:
    """Examples of a block of steps."""
    return jax.random.randint(key, (_BLOCK, batch), 0, n)


@float64
def _adam(X: np.ndarray, y: np.ndarray, start: np.ndarray, m: int, plan: _Plan, tol: float, budget: Budget) -> Run:
    """Adam in parts of few steps, so that the clock is looked at and one compilation serves every number of steps."""
    tokens, labels, first = jnp.asarray(X), jnp.asarray(y), jnp.asarray(start)
    carry, used, longest = (first, optax.scale_by_adam().init(first)), 0, 0.0
    sizes = plan.step * (1 + np.cos(np.pi * np.arange(plan.n_steps) / plan.n_steps)) / 2

    def block() -> Any:
        return _batches(jax_key(plan.seed, "learner", "mha", "batches", used), batch=plan.batch, n=len(X))

    with budget.paused():
        drawn = block()
        _adam_steps.lower(carry, tokens, labels, jnp.zeros(_PART), drawn[:_PART], m=m).compile()
        error_and_slope.lower(first, tokens, labels, m).compile()
    # No part is begun that would end after the deadline, judged by the longest so far.
    while used < plan.n_steps and time.monotonic() + longest < budget.deadline:
        begun, at = time.monotonic(), used % _BLOCK
        if used and at == 0:
            drawn = block()
        taken = sizes[used : used + _PART]
        # The last part is filled up with steps of size zero: the scan keeps its compiled length.
        part = np.zeros(_PART)
        part[: len(taken)] = taken
        carry = _adam_steps(carry, tokens, labels, jnp.asarray(part), drawn[at : at + _PART], m=m)
        # JAX returns before it has computed: the clock would time the call and not the steps.
        carry[0].block_until_ready()
        used += len(taken)
        longest = max(longest, time.monotonic() - begun)
    # Batches do not show the error on all examples, by which the end is judged.
    value, slope = error_and_slope(carry[0], tokens, labels, m)
    flat = np.asarray(carry[0])
    reason = _ending(float(value), np.asarray(slope), flat, tol) or (
        OUT_OF_TIME if used < plan.n_steps else OUT_OF_STEPS
    )
    return Run(*layer_of(flat, m, X.shape[-1]), float(value), used, reason)
