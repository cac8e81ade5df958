"""The gradient baseline: full-batch Adam on the squared error of the mean output, from several starts at once."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from attnlab.common.compute import Compute, placed
from attnlab.common.seeds import Seed, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import integer, nonnegative, positive
from attnlab.smi.learners.predictor import DirectionsPredictor
from attnlab.smi.link import Link
from attnlab.smi.outputs import mean_function


class GradientDescent(DirectionsPredictor):
    r"""Least squares on the directions by Adam with a cosine schedule.

    .. math:: \min_W \tfrac1n\sum |y - \text{mean}(XW^T/\sqrt d)|^2 + \tfrac{\text{ridge}}{2d}|W|^2

    A baseline with one setting, not the best that descent can do.

    Parameters
    ----------
    link : as in :class:`attnlab.smi.Task`; its mean output must be differentiable.
    n_starts : starts with entries N(0, 1), trained side by side; the one with the smallest loss is kept.
    step, n_steps : largest learning rate, and number of steps.
    ridge : penalty on W.
    tol : training loss per sequence below which the data count as fitted.
    compute : the device on which to train; ``auto`` is JAX's default one.
    random_state : of the starts.

    Attributes
    ----------
    W_ : (r, d), the best start's directions.
    weights_ : those of all starts, (n_starts, r, d).
    loss_ : final training loss per sequence of the best start.
    losses_ : those of all starts.
    converged_, n_iter_, stop_reason_ : whether the best start fits the data.
    """

    needs = ("link",)

    def __init__(
        self,
        link: str | Link = "attention",
        *,
        n_starts: int = 10,
        step: float = 0.03,
        n_steps: int = 1000,
        ridge: float = 0.0,
        tol: float = 1e-4,
        compute: Compute | None = None,
        random_state: Seed = None,
    ) -> None:
        self.link = link
        self.n_starts = n_starts
        self.step = step
        self.n_steps = n_steps
        self.ridge = ridge
        self.tol = tol
        self.compute = compute
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> GradientDescent:
        """Train all starts on the whole batch."""
        n_starts, n_steps = integer("n_starts", self.n_starts, low=1), integer("n_steps", self.n_steps, low=1)
        rate, ridge = positive("step", self.step), nonnegative("ridge", self.ridge)
        tol = positive("tol", self.tol)
        X, y = self._check_data(X, y)
        y = self._outputs(y)
        if not np.isfinite(slope := _slope_size(self.law)) or slope == 0:
            raise ValueError(f"link {self.law} has a mean output without a gradient; give it a smooth mean")
        rng = stream(self.random_state, "learner", "smi")
        W = rng.standard_normal((n_starts, self.law.rank, X.shape[2]))
        tokens = np.asarray(X / np.sqrt(X.shape[2]), np.float32)
        with placed(self.compute, self):
            trained, losses = _train(
                self.law, n_steps, np.asarray(W, np.float32), tokens, np.asarray(y, np.float32), rate, ridge
            )
            self.weights_, self.losses_ = np.asarray(trained, np.float64), np.asarray(losses, np.float64)
        # argmin would choose a start that diverged to NaN.
        best = int(np.argmin(np.where(np.isfinite(self.losses_), self.losses_, np.inf)))
        self.W_, self.loss_ = self.weights_[best], float(self.losses_[best])
        fitted = bool(self.loss_ <= tol)
        ended(self, converged=fitted, reason="data fitted" if fitted else "data not fitted", n_iter=n_steps)
        return self


@functools.lru_cache(maxsize=256)
def _slope_size(link: Link) -> float:
    """Size of the derivative of the mean output at a generic z."""
    # Off z = 0, where the slope of an even function vanishes, and without equal entries.
    z = jnp.linspace(-0.9, 1.1, link.dimension).reshape(link.tokens, link.rank)
    return float(jnp.abs(jax.jacfwd(mean_function(link))(z)).max())


@functools.partial(jax.jit, static_argnames=("link", "n_steps"))
def _train(
    link: Link, n_steps: int, W: jax.Array, F: jax.Array, y: jax.Array, rate: Any, ridge: Any
) -> tuple[jax.Array, jax.Array]:
    """Adam on every start; W (starts, r, d), F = X / sqrt(d)."""
    mean = jax.vmap(mean_function(link))
    n, d = len(F), F.shape[2]

    def loss(one: jax.Array) -> jax.Array:
        return jnp.asarray(jnp.sum((mean(F @ one.T) - y) ** 2) / n)

    def penalised(one: jax.Array) -> jax.Array:
        return jnp.asarray(loss(one) + 0.5 * ridge * jnp.sum(one**2) / d)

    # Adam is invariant under the scale of the loss; d restores entries of order one in the gradient.
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, n_steps))

    def update(carry: Any, _: None) -> tuple[Any, None]:
        W, state = carry
        move, state = optimiser.update(d * jax.vmap(jax.grad(penalised))(W), state)
        return (optax.apply_updates(W, move), state), None

    (W, _), _ = jax.lax.scan(update, (W, optimiser.init(W)), None, length=n_steps)
    return W, jax.vmap(loss)(W)
