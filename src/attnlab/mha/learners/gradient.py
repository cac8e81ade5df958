"""First-order baselines, done well: Adam and L-BFGS with restarts, in Theta and W or with W projected out."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from scipy.optimize import minimize

from attnlab.common.arrays import ArrayLike
from attnlab.common.precision import float64
from attnlab.common.seeds import Seed, generator
from attnlab.common.validation import integer, one_of, positive
from attnlab.mha.layer import Rows, rows_of
from attnlab.mha.learners.base import LayerRegressor, check_examples
from attnlab.mha.varpro import key_covariances, key_responses, regress

METHODS = ("lbfgs", "adam", "projected_lbfgs")
_LEARNING_RATES = (0.01, 0.05)

Layer = tuple[Float[Array, "m d d"], Float[Array, "m d o"]]


class GradientLearner(LayerRegressor):
    """Fit a layer by gradients.

    Parameters
    ----------
    n_heads : number of heads fitted (more than planted is allowed).
    method : ``lbfgs`` (SciPy, full batch), ``adam`` (optax, minibatches, cosine decay to zero), or ``projected_lbfgs``:
        L-BFGS on the error with W eliminated by regression, which separates what variable projection gives from what
        second order gives.
    n_starts : restarts; the best training error wins. Adam's restarts take the learning rates in turn.
    max_iter : L-BFGS iterations of a start; Adam steps of a start.
    learning_rate : Adam's peak rate(s).
    batch_size : Adam's minibatch, in examples.
    max_seconds : no start is begun after this time.

    Attributes
    ----------
    theta_, w_ : the layer.
    train_nmse_ : relative squared error on the examples, for each start ``train_nmse_path_``.
    n_iter_ : iterations or steps of all starts together.

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
        learning_rate: float | tuple[float, ...] = _LEARNING_RATES,
        batch_size: int = 256,
        max_seconds: float | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_heads = n_heads
        self.method = method
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> GradientLearner:
        """Run all starts and keep the best."""
        tokens, outputs, _ = check_examples(X, y)
        one_of("method", self.method, METHODS)
        m = integer("n_heads", self.n_heads, low=1)
        n_starts, max_iter = integer("n_starts", self.n_starts, low=1), integer("max_iter", self.max_iter, low=1)
        batch = min(integer("batch_size", self.batch_size, low=1), len(tokens))
        rates = [positive("learning_rate", rate) for rate in np.atleast_1d(self.learning_rate).tolist()]
        deadline = np.inf if self.max_seconds is None else time.monotonic() + positive("max_seconds", self.max_seconds)
        rng = generator(self.random_state)
        rows = rows_of(tokens, outputs) if self.method == "projected_lbfgs" else None
        best = np.inf
        self.train_nmse_path_, self.n_iter_ = [], 0
        for start in range(n_starts):
            if start and time.monotonic() >= deadline:
                break
            theta, w = _initial(m, tokens.shape[-1], outputs.shape[-1], rng)
            if rows is not None:
                theta, w, error, used = _projected_lbfgs(rows, theta, max_iter)
            elif self.method == "lbfgs":
                theta, w, error, used = _lbfgs(tokens, outputs, theta, w, max_iter)
            else:
                rate = rates[start % len(rates)]
                theta, w, error, used = _adam(
                    tokens, outputs, theta, w, max_iter, rate, batch, int(rng.integers(2**31))
                )
            self.train_nmse_path_.append(error)
            self.n_iter_ += used
            if error < best or start == 0:
                best, self.theta_, self.w_ = error, theta, w
        self.train_nmse_, self.n_tokens_ = float(best), tokens.shape[1]
        return self


def _initial(m: int, d: int, d_out: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Weak attention and projections of the usual size."""
    return 0.5 * rng.standard_normal((m, d, d)) / d, rng.standard_normal((m, d, d_out)) / np.sqrt(d)


def _error(layer: Layer, X: Float[Array, "n k d"], y: Float[Array, "n k o"]) -> Float[Array, ""]:
    """Squared error relative to the labels' second moment."""
    theta, w = layer
    looked_for = jnp.einsum("nap,mpq->nmaq", X, theta)
    patterns = jax.nn.softmax(jnp.einsum("nmaq,nbq->nmab", looked_for, X), axis=-1)
    outputs = jnp.einsum("nmab,nbd,mdo->nao", patterns, X, w, optimize=True)
    return jnp.sum((y - outputs) ** 2) / jnp.sum(y**2)


_error_jit = jax.jit(_error)
_error_and_slope = jax.jit(jax.value_and_grad(_error))


@float64
def _lbfgs(
    X: np.ndarray, y: np.ndarray, theta: np.ndarray, w: np.ndarray, max_iter: int
) -> tuple[np.ndarray, np.ndarray, float, int]:
    size = theta.size
    tokens, labels = jnp.asarray(X), jnp.asarray(y)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        layer = (flat[:size].reshape(theta.shape), flat[size:].reshape(w.shape))
        value, (to_theta, to_w) = _error_and_slope(layer, tokens, labels)
        return float(value), np.concatenate([np.ravel(to_theta), np.ravel(to_w)])

    start = np.concatenate([theta.ravel(), w.ravel()])
    x, error, used = _minimise(objective, start, max_iter)
    return x[:size].reshape(theta.shape), x[size:].reshape(w.shape), error, used


def _minimise(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, max_iter: int
) -> tuple[np.ndarray, float, int]:
    """L-BFGS to rounding: the minimum, its value and the iterations used."""
    options: Any = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-18, "gtol": 1e-12, "maxcor": 20}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.x, float(found.fun), int(found.nit)


def _projected_lbfgs(rows: Rows, theta: np.ndarray, max_iter: int) -> tuple[np.ndarray, np.ndarray, float, int]:
    """L-BFGS in Theta alone: W is the regression, whose derivative drops out of the gradient (envelope theorem)."""
    size = float(np.sum(rows.Y**2))

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        at = flat.reshape(theta.shape)
        fit = regress(rows, at)
        M = key_responses(key_covariances(rows, at, fit.Z), fit.W)
        slope = -2 * rows.Q.T @ (M @ fit.residual[:, :, None])[..., 0]
        return fit.nmse(rows.Y), slope.ravel() / size

    x, error, used = _minimise(objective, theta.ravel(), max_iter)
    at = x.reshape(theta.shape)
    return at, regress(rows, at).W, error, used


@partial(jax.jit, static_argnames=("steps", "batch"))
def _adam_run(
    layer: Layer,
    X: Float[Array, "n k d"],
    y: Float[Array, "n k o"],
    rate: Float[Array, ""],
    key: Array,
    *,
    steps: int,
    batch: int,
) -> Layer:
    optimiser = optax.adam(optax.cosine_decay_schedule(1.0, steps))

    def step(carry: tuple[Layer, optax.OptState], key: Array) -> tuple[tuple[Layer, optax.OptState], None]:
        layer, state = carry
        chosen = jax.random.randint(key, (batch,), 0, len(X))
        slope = jax.grad(_error)(layer, X[chosen], y[chosen])
        updates, state = optimiser.update(slope, state)
        return (optax.apply_updates(layer, jax.tree.map(lambda u: rate * u, updates)), state), None

    (layer, _), _ = jax.lax.scan(step, (layer, optimiser.init(layer)), jax.random.split(key, steps))
    return layer


@float64
def _adam(
    X: np.ndarray,
    y: np.ndarray,
    theta: np.ndarray,
    w: np.ndarray,
    steps: int,
    rate: float,
    batch: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, float, int]:
    tokens, labels = jnp.asarray(X), jnp.asarray(y)
    layer = (jnp.asarray(theta), jnp.asarray(w))
    key = jax.random.key(seed)
    fitted = _adam_run(layer, tokens, labels, jnp.asarray(rate), key, steps=steps, batch=batch)
    return np.asarray(fitted[0]), np.asarray(fitted[1]), float(_error_jit(fitted, tokens, labels)), steps
