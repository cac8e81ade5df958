"""Erf attention trained on the product of two spheres, as in arXiv:2410.01537."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from attnlab.common.precision import float64
from attnlab.common.seeds import generator, jax_key, seed_sequence, spawn
from attnlab.common.validation import finite_array, integer, nonnegative, positive
from attnlab.slr.learners.tokens import TokenRegressor, random_state_seed
from attnlab.slr.overlaps import step_limit

LOGS = 100


class SingleLocationAttention(TokenRegressor):
    r"""Erf attention :math:`\sum_l \mathrm{erf}(\lambda X_l\cdot k)\,X_l\cdot v`, |k| = |v| = 1, by gradient descent.

    .. math:: k \leftarrow \frac{k - \alpha(g_k - (k\cdot g_k)k)}{|\cdot|},\qquad
              v \leftarrow \frac{v - \alpha(g_v - (v\cdot g_v)v)}{|\cdot|}

    with the gradients of the mean square error (plus penalties) on the whole data or on random batches.
    :meth:`partial_fit` makes one step on each batch it is given, for training on fresh data.

    Parameters
    ----------
    lam : inverse temperature inside the erf; not trained.
    decay : at step t the temperature is lam / (1 + decay t).
    step : step size; a warning names the stability limit of the single-location law when it is exceeded.
    n_steps : steps of :meth:`fit`.
    batch_size : sequences drawn at random for each step; None uses all.
    penalty_mean : weight of :math:`(v\cdot\bar X)^2`, :math:`\bar X` the mean token: steers v away from k*.
    penalty_overlap : weight of :math:`(k\cdot v)^2`.
    init : None draws (k, v) uniformly; or a pair of vectors.
    n_inits : initialisations tried by :meth:`fit`; the one with the smallest training error is kept.
    random_state : seed of initialisation and batches.

    Attributes
    ----------
    k_, v_ : (d,), the fitted directions.
    lam_ : the temperature at the last step, used by :meth:`predict`.
    loss_ : mean square error of the batch at up to 100 evenly spaced steps, and at the end.
    n_steps_ : steps made.

    Source: arXiv:2410.01537, section 5.
    """

    def __init__(
        self,
        lam: float = 0.1,
        *,
        decay: float = 0.0,
        step: float = 1e-3,
        n_steps: int = 10_000,
        batch_size: int | None = None,
        penalty_mean: float = 0.0,
        penalty_overlap: float = 0.0,
        init: Any = None,
        n_inits: int = 1,
        random_state: Any = None,
    ):
        self.lam = lam
        self.decay = decay
        self.step = step
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.penalty_mean = penalty_mean
        self.penalty_overlap = penalty_overlap
        self.init = init
        self.n_inits = n_inits
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SingleLocationAttention:
        """Train from fresh initialisations and keep the best."""
        n_steps, n_inits = integer("n_steps", self.n_steps, low=1), integer("n_inits", self.n_inits, low=1)
        batch = None if self.batch_size is None else integer("batch_size", self.batch_size, low=1)
        X, y = self._check_fit(X, y)
        self._check_options()
        root = seed_sequence(random_state_seed(self.random_state))
        runs = [self._train(X, y, n_steps, batch, seed) for seed in spawn(root, n_inits)]
        self.k_, self.v_, self.loss_ = min(runs, key=lambda run: float(run[2][-1]))
        self.n_steps_ = n_steps
        self.lam_ = self.lam / (1 + self.decay * n_steps)
        return self

    def partial_fit(self, X: Any, y: Any) -> SingleLocationAttention:
        """One step on this batch; the first call draws the initialisation."""
        X, y = self._check_fit(X, y)
        if not hasattr(self, "k_"):
            self._check_options()
            self.n_steps_, self.loss_ = 0, np.empty(0)
            self.k_, self.v_ = self._start(random_state_seed(self.random_state))
        W, loss = _run(X, y, np.stack([self.k_, self.v_], 1), self._options(), self.n_steps_, 1, None, None)
        self.k_, self.v_ = W.T
        self.loss_ = np.append(self.loss_, loss[-1])[-LOGS:]
        self.n_steps_ += 1
        self.lam_ = self.lam / (1 + self.decay * self.n_steps_)
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """The layer's output at the last temperature."""
        X = self._check_predict(X)
        return np.asarray(np.sum(special.erf(self.lam_ * (X @ self.k_)) * (X @ self.v_), axis=1))

    def _check_options(self) -> None:
        lam, step = positive("lam", self.lam), positive("step", self.step)
        for name in ("decay", "penalty_mean", "penalty_overlap"):
            nonnegative(name, getattr(self, name))
        limit = step_limit(d=self.d_in_, L=max(self.n_tokens_in_, 2), lam=lam, gamma=2**-0.5)
        if step > limit:
            warnings.warn(
                f"step={step:g} is beyond the stability limit {limit:.3g} of the single-location law for "
                f"d={self.d_in_}, L={self.n_tokens_in_}, lam={lam:g}: training will oscillate",
                stacklevel=3,
            )

    def _options(self) -> tuple[float, ...]:
        return (self.lam, self.decay, self.step, self.penalty_mean, self.penalty_overlap)

    def _start(self, seed: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.init is None:
            pair = generator(seed).standard_normal((2, self.d_in_))
        else:
            pair = finite_array("init", self.init, shape=(2, self.d_in_))
        norms = np.linalg.norm(pair, axis=1, keepdims=True)
        if (norms == 0).any():
            raise ValueError("init must be a pair of non-zero vectors")
        k, v = pair / norms
        return k, v

    def _train(
        self, X: np.ndarray, y: np.ndarray, n_steps: int, batch: int | None, seed: np.random.SeedSequence
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        start, batches = spawn(seed, 2)
        W, loss = _run(X, y, np.stack(self._start(start), axis=1), self._options(), 0, n_steps, batch, batches)
        return W[:, 0], W[:, 1], loss


@float64
def _run(
    X: np.ndarray,
    y: np.ndarray,
    W: np.ndarray,
    options: tuple[float, ...],
    first: int,
    n_steps: int,
    batch: int | None,
    seed: np.random.SeedSequence | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient descent on W = (k, v); the loss before each block of steps, and at the end on all the data."""
    blocks = min(LOGS, n_steps)
    every, rest = divmod(n_steps, blocks)
    options = tuple(np.float64(o) for o in options)
    batch = None if batch is None else min(batch, len(X))
    key = jax_key(seed if seed is not None else 0)
    descend, loss = _compiled()
    mean = X.mean(axis=(0, 1))
    if rest:
        W, _ = descend(X, y, mean, W, options, key, np.int64(first), np.int64(rest), 1, batch)
    W, path = descend(X, y, mean, W, options, key, np.int64(first + rest), np.int64(every), blocks, batch)
    lam = options[0] / (1 + options[1] * (first + n_steps))
    return np.asarray(W), np.append(np.asarray(path), float(loss(W, X, y, lam)))


@functools.cache
def _compiled() -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import erf

    def error(W: Any, X: Any, y: Any, lam: Any) -> Any:
        scores, values = jnp.moveaxis(X @ W, -1, 0)
        return jnp.mean((jnp.sum(erf(lam * scores) * values, axis=1) - y) ** 2)

    def objective(W: Any, X: Any, y: Any, mean: Any, lam: Any, penalties: Any) -> Any:
        loss = error(W, X, y, lam)
        return loss + penalties[0] * (W[:, 1] @ mean) ** 2 + penalties[1] * (W[:, 0] @ W[:, 1]) ** 2, loss

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
        lam, decay, step, *penalties = options

        def one(t: Any, W: Any) -> Any:
            rows: Any = slice(None)
            if batch is not None:
                rows = jax.random.randint(jax.random.fold_in(key, t), (batch,), 0, len(X))
            slope, loss = jax.grad(objective, has_aux=True)(W, X[rows], y[rows], mean, lam / (1 + decay * t), penalties)
            W = W - step * (slope - jnp.sum(W * slope, axis=0) * W)
            return W / jnp.linalg.norm(W, axis=0), loss

        def block(carry: Any, _: None) -> Any:
            t, W = carry
            W, loss = one(t, W)
            W = jax.lax.fori_loop(t + 1, t + every, lambda i, W: one(i, W)[0], W)
            return (t + every, W), loss

        (_, W), path = jax.lax.scan(block, (first, W), None, length=blocks)
        return W, path

    return descend, jax.jit(error)
