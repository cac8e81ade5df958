"""Erf attention trained on the product of two spheres, as in arXiv:2410.01537."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from attnlab.common.advice import advise
from attnlab.common.compute import placed
from attnlab.common.precision import float64
from attnlab.common.seeds import branch, jax_key, seed_sequence, spawn, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import finite_array, integer, nonnegative, positive
from attnlab.slr.learners.tokens import TokenRegressor
from attnlab.slr.theory.overlaps import Setting, step_limit

LOGS = 100
STATIONARY = 0.01


class SingleLocationAttention(TokenRegressor):
    r"""Erf attention with unit vectors k and v, fitted by gradient descent.

    The prediction is :math:`\sum_l \mathrm{erf}(\lambda X_l\cdot k)\,X_l\cdot v`, a step is

    .. math:: k \leftarrow \frac{k - \alpha(g_k - (k\cdot g_k)k)}{|\cdot|},\qquad
              v \leftarrow \frac{v - \alpha(g_v - (v\cdot g_v)v)}{|\cdot|}

    with the gradients of the mean square error (plus a penalty) on the whole data or on random batches.
    :meth:`partial_fit` makes one step on each batch it is given, for training on fresh data.

    Parameters
    ----------
    lam : inverse temperature inside the erf; not trained.
    decay : at step t the temperature is lam / (1 + decay t).
    step : step size; a warning names the stability limit of the single-location law when it is exceeded.
    n_steps : steps of :meth:`fit`.
    batch_size : sequences drawn at random for each step; None uses all.
    penalty_mean : weight of :math:`(v\cdot\bar X)^2`, :math:`\bar X` the mean token: steers v away from k*.
    n_starts : initialisations tried by :meth:`fit`, uniform on the spheres; the one with the smallest training error is
        kept. ``fit`` and the first ``partial_fit`` take a pair (k, v) as ``init`` instead.
    n_tokens : tokens of the flat form ``X (n, n_tokens * d)``.
    compute : the device on which to train; ``auto`` is JAX's default one.
    random_state : seed of initialisation and batches.

    Attributes
    ----------
    k_, v_ : (d,), the fitted directions.
    lam_ : the temperature at the last step, used by :meth:`predict`.
    loss_ : mean square error on the training data at the end (of the batch, after :meth:`partial_fit`).
    loss_curve_ : that of the batch at up to 100 evenly spaced steps, and ``loss_``.
    slope_ : squared length of the gradient on the spheres at the end, on all the data.
    converged_, n_iter_, stop_reason_ : whether a tenth more steps would lower the objective by less than 1 % to first
        order (``slope_`` times that much time), the steps made, and why they ended.

    Source: arXiv:2410.01537, section 5.
    """

    def __init__(
        self,
        lam: Any = 0.1,
        *,
        decay: Any = 0.0,
        step: Any = 1e-3,
        n_steps: Any = 10_000,
        batch_size: Any = None,
        penalty_mean: Any = 0.0,
        n_starts: Any = 1,
        n_tokens: Any = None,
        compute: Any = None,
        random_state: Any = None,
    ):
        self.lam = lam
        self.decay = decay
        self.step = step
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.penalty_mean = penalty_mean
        self.n_starts = n_starts
        self.n_tokens = n_tokens
        self.compute = compute
        self.random_state = random_state

    def fit(self, X: Any, y: Any, init: Any = None) -> SingleLocationAttention:
        """Train from fresh initialisations, or from the pair ``init`` = (k, v), and keep the best."""
        n_steps, n_starts = integer("n_steps", self.n_steps, low=1), integer("n_starts", self.n_starts, low=1)
        batch = None if self.batch_size is None else integer("batch_size", self.batch_size, low=1)
        X, y = self._check_fit(X, y)
        self._check_options()
        # A given pair is the only start: more runs would repeat it.
        seeds = spawn(branch(seed_sequence(self.random_state), "learner", "slr"), n_starts if init is None else 1)
        with placed(self.compute, self):
            runs = [
                _run(X, y, self._start(seed, init), self._options(), 0, n_steps, batch, jax_key(seed, "batches"))
                for seed in seeds
            ]
            W, self.loss_curve_ = min(runs, key=lambda run: float(run[1][-1]))
            self._keep(W, n_steps)
            self.slope_, objective = _slope(X, y, W, self.lam_, self.penalty_mean)
        settled = self.slope_ * self.step * n_steps / 10 <= STATIONARY * objective
        reason = "stationary" if settled else "n_steps reached, the loss still falls"
        ended(self, converged=settled, reason=reason, n_iter=n_steps)
        return self

    def partial_fit(self, X: Any, y: Any, init: Any = None) -> SingleLocationAttention:
        """One step on this batch; the first call draws the initialisation."""
        X, y = self._check_fit(X, y, reset=not hasattr(self, "k_"))
        if not hasattr(self, "k_"):
            self._check_options()
            self.n_iter_, self.loss_curve_ = 0, np.empty(0)
            self.k_, self.v_ = self._start(spawn(branch(self.random_state, "learner", "slr"), 1)[0], init).T
        with placed(self.compute, self):
            W = np.stack([self.k_, self.v_], 1)
            # The key draws nothing here: the batch is all that was given.
            W, loss = _run(X, y, W, self._options(), self.n_iter_, 1, None, jax_key(0))
        self.loss_curve_ = np.append(self.loss_curve_, loss[-1])[-LOGS:]
        self._keep(W, self.n_iter_ + 1)
        # one step says nothing of convergence, and is no reason to warn
        self.n_iter_, self.converged_, self.stop_reason_ = self.n_iter_ + 1, False, "one batch at a time"
        return self

    def _keep(self, W: np.ndarray, n_steps: int) -> None:
        self.k_, self.v_ = W[:, 0], W[:, 1]
        self.loss_, self.lam_ = float(self.loss_curve_[-1]), self.lam / (1 + self.decay * n_steps)

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """The layer's output at the last temperature."""
        X = self._check_predict(X)
        return np.asarray(np.sum(special.erf(self.lam_ * (X @ self.k_)) * (X @ self.v_), axis=1))

    def _check_options(self) -> None:
        lam, step = positive("lam", self.lam), positive("step", self.step)
        nonnegative("decay", self.decay), nonnegative("penalty_mean", self.penalty_mean)
        # The data do not tell their law: the limit is that of the paper's, nu = d/2 and gamma^2 = 1/2.
        law = Setting((self.d_in_ / 2) ** 0.5, 2**-0.5, max(self.n_tokens_in_, 2), 1)
        limit = step_limit(law, lam)
        if step > limit:
            advise(
                f"step={step:g} is beyond the stability limit {limit:.3g} of the single-location law for "
                f"d={self.d_in_}, L={self.n_tokens_in_}, lam={lam:g}: training will oscillate",
                stacklevel=3,
            )

    def _options(self) -> tuple[float, ...]:
        return (self.lam, self.decay, self.step, self.penalty_mean)

    def _start(self, seed: np.random.SeedSequence, init: Any) -> Float[np.ndarray, "d 2"]:
        if init is None:
            pair = stream(seed, "start").standard_normal((2, self.d_in_))
        else:
            pair = finite_array("init", init, shape=(2, self.d_in_)).astype(np.float64)
        norms = np.linalg.norm(pair, axis=1, keepdims=True)
        if (norms == 0).any():
            raise ValueError("init must be a pair of non-zero vectors")
        return np.asarray((pair / norms).T)


@float64
def _run(
    X: np.ndarray,
    y: np.ndarray,
    W: np.ndarray,
    options: tuple[float, ...],
    first: int,
    n_steps: int,
    batch: int | None,
    key: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient descent on W = (k, v); the loss before each block of steps, and at the end on all the data."""
    blocks = min(LOGS, n_steps)
    every, rest = divmod(n_steps, blocks)
    options = tuple(np.float64(o) for o in options)
    batch = None if batch is None else min(batch, len(X))
    descend, loss, _ = _compiled()
    mean = X.mean(axis=(0, 1))
    # What is left over comes first: the blocks then have one length and reach the end. Lengths are traced, the
    # number of blocks is compiled in: fits of other lengths reuse the program.
    if rest:
        W, _ = descend(X, y, mean, W, options, key, np.int64(first), np.int64(rest), 1, batch)
    W, path = descend(X, y, mean, W, options, key, np.int64(first + rest), np.int64(every), blocks, batch)
    # The temperature after the last step, which predictions use.
    lam = options[0] / (1 + options[1] * (first + n_steps))
    return np.asarray(W), np.append(np.asarray(path), float(loss(W, X, y, lam)))


@float64
def _slope(X: np.ndarray, y: np.ndarray, W: np.ndarray, lam: float, penalty: float) -> tuple[float, float]:
    """Squared length of the gradient along the spheres, and the objective."""
    gradient, value = _compiled()[2](W, X, y, X.mean(axis=(0, 1)), np.float64(lam), np.float64(penalty))
    gradient = np.asarray(gradient)
    # The columns of W have norm one: what is left is tangent to the spheres.
    along = gradient - np.sum(W * gradient, axis=0) * W
    return float(np.sum(along**2)), float(value)


@functools.cache
def _compiled() -> tuple[Any, Any, Any]:
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import erf

    def error(W: Any, X: Any, y: Any, lam: Any) -> Any:
        scores, values = jnp.moveaxis(X @ W, -1, 0)
        return jnp.mean((jnp.sum(erf(lam * scores) * values, axis=1) - y) ** 2)

    def objective(W: Any, X: Any, y: Any, mean: Any, lam: Any, penalty: Any) -> Any:
        loss = error(W, X, y, lam)
        return loss + penalty * (W[:, 1] @ mean) ** 2, loss

    def slope(*arguments: Any) -> Any:
        (value, _), gradient = jax.value_and_grad(objective, has_aux=True)(*arguments)
        return gradient, value

    @functools.partial(jax.jit, static_argnames=("blocks", "batch"))
    def descend(
        X: Any,
        y: Any,
        mean: Any,
        W: Any,
        options: Any,
        key: Any,
        first: Any,
        every: Any,
        blocks: int,
        batch: int | None,
    ) -> Any:
        lam, decay, step, penalty = options

        def one(t: Any, W: Any) -> Any:
            rows: Any = slice(None)
            if batch is not None:
                rows = jax.random.randint(jax.random.fold_in(key, t), (batch,), 0, len(X))
            slope, loss = jax.grad(objective, has_aux=True)(W, X[rows], y[rows], mean, lam / (1 + decay * t), penalty)
            W = W - step * (slope - jnp.sum(W * slope, axis=0) * W)
            return W / jnp.linalg.norm(W, axis=0), loss

        def block(carry: Any, _: None) -> Any:
            t, W = carry
            W, loss = one(t, W)
            W = jax.lax.fori_loop(t + 1, t + every, lambda i, W: one(i, W)[0], W)
            return (t + every, W), loss

        (_, W), path = jax.lax.scan(block, (first, W), None, length=blocks)
        return W, path

    return descend, jax.jit(error), jax.jit(slope)
