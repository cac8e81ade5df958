r"""Gradient descent on the layer's own parametrisation, one or many initialisations at once.

==========  =====================================================================================
symbol      meaning
==========  =====================================================================================
W           student weights (d, r) of one initialisation; S = W W^T / sqrt(r d)
P           X W / sqrt(d), projected tokens; h = P P^T / sqrt(r) - |W|^2 / (sqrt(r) d) on the diagonal
loss        sum over sequences of |y - y_hat|_F^2 / d, full batch
==========  =====================================================================================
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.exceptions import ConvergenceWarning

from attnlab.aim.channels import Channel, Linear, Softmax
from attnlab.aim.indices import indices, pair_of, pairs
from attnlab.aim.learners.prediction import IndexedPredictor, check_data
from attnlab.aim.sensing import PRECISIONS
from attnlab.common.seeds import Seed, generator
from attnlab.common.validation import integer, one_of, positive


class GradientDescent(IndexedPredictor):
    """Full-batch Adam on W; the estimate is W W^T / sqrt(r d), averaged over independent initialisations.

    Interpolating solutions behave roughly like posterior samples, so that one has about twice the Bayes error and
    their mean comes close to it (arXiv:2506.01582).

    Parameters
    ----------
    width : number r of columns of W, the teacher's round(rho d).
    n_inits : initialisations, iid N(0, 1), trained side by side on the same data.
    channel, beta : ``softmax`` or ``linear``; hardmax has no gradient.
    learning_rate, steps : of Adam.
    tol : training loss per sequence below which an initialisation counts as having fitted the data.
    prediction : ``"plug-in"`` (output at the averaged S) or ``"bayes"`` (outputs of the initialisations, averaged).
    precision : of the matrix products, as in JAX.
    memory_budget : bytes; more initialisations than fit are trained one group after another.

    Attributes
    ----------
    S_ : mean of S over the initialisations.
    weights_ : W of each, (n_inits, d, r).
    loss_, loss_curve_ : final training loss per sequence of each, and its course (steps, n_inits).
    predicted_mse_ : spread of the initialisations around their mean, an estimate of the error if they were posterior
        samples.
    converged_ : whether every initialisation fits the data.
    """

    needs = ("width", "channel", "beta", "noise")

    def __init__(
        self,
        width: int,
        n_inits: int = 1,
        *,
        channel: str | Channel = "softmax",
        beta: float = 1.0,
        noise: float = 0.0,
        learning_rate: float = 0.1,
        steps: int = 1000,
        tol: float = 1e-3,
        prediction: str = "plug-in",
        precision: str = "highest",
        memory_budget: float = 2e9,
        random_state: Seed = None,
    ) -> None:
        self.width = width
        self.n_inits = n_inits
        self.channel = channel
        self.beta = beta
        self.noise = noise
        self.learning_rate = learning_rate
        self.steps = steps
        self.tol = tol
        self.prediction = prediction
        self.precision = precision
        self.memory_budget = memory_budget
        self.random_state = random_state

    def fit(self, X: np.ndarray | Any, y: np.ndarray | Any) -> GradientDescent:
        """Train all initialisations on the whole batch."""
        width, n_inits = integer("width", self.width, low=1), integer("n_inits", self.n_inits, low=1)
        one_of("precision", self.precision, PRECISIONS)
        if not isinstance(self.law, Softmax | Linear):
            raise ValueError(f"channel must be one of 'softmax', 'linear' for gradient descent, got {self.law.name!r}")
        X, y = check_data(X, y)
        self.law.summary(y)
        n, self.tokens_, d = X.shape
        W = generator(self.random_state).standard_normal((n_inits, d, width), dtype=np.float32)
        data = _padded(X, y)
        trained, curves = [], []
        for group in np.array_split(W, -(-n_inits // self._group(len(data[0])))):
            final, curve = _train(
                jnp.asarray(group.swapaxes(0, 1)),
                *map(jnp.asarray, data),
                jnp.float32(positive("learning_rate", self.learning_rate)),
                steps=integer("steps", self.steps, low=1),
                beta=float(self.beta) if isinstance(self.law, Softmax) else None,
                precision=self.precision,
            )
            trained.append(np.asarray(final).swapaxes(0, 1))
            curves.append(np.asarray(curve) * d / n)
        self._finish(np.concatenate(trained), np.concatenate(curves, axis=1))
        return self

    def _group(self, n: int) -> int:
        """Initialisations whose projected tokens and their gradients fit in the memory budget."""
        per_init = 4 * 6 * n * self.tokens_ * max(self.width, self.tokens_)
        return max(1, int(positive("memory_budget", self.memory_budget) // per_init))

    def _finish(self, W: np.ndarray, curve: np.ndarray) -> None:
        self.weights_, self.loss_curve_, self.loss_ = W, curve, curve[-1]
        S = np.stack([matrix(w) for w in W])
        self.S_ = S.mean(axis=0)
        spread = ((S - self.S_) ** 2).sum(axis=(1, 2)).sum() / len(self.S_)
        self.predicted_mse_ = float(spread / (len(W) - 1)) if len(W) > 1 else float("nan")
        self.converged_ = bool(np.isfinite(W).all() and (self.loss_ < self.tol).all())
        if not np.isfinite(W).all():
            warnings.warn("gradient descent diverged; a smaller learning_rate helps", ConvergenceWarning, stacklevel=3)

    def predict(self, X: Any) -> np.ndarray:
        """Outputs (n, T, T) for fresh sequences (n, T, d)."""
        if getattr(self, "prediction", None) != "bayes" or not hasattr(self, "weights_"):
            return super().predict(X)
        X = np.asarray(X, dtype=np.float64)
        return np.asarray(np.mean([self.law.output(indices(X, matrix(w))) for w in self.weights_], axis=0))


def matrix(W: np.ndarray) -> np.ndarray:
    """S = W W^T / sqrt(r d), float64."""
    W = np.asarray(W, dtype=np.float64)
    return np.asarray(W @ W.T / np.sqrt(W.size))


def _padded(X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples padded to the next of a geometric series of sizes, so that a sweep over alpha compiles few programs."""
    n = len(X)
    floor = 1 if jax.default_backend() == "cpu" else 1024  # smaller batches do not fill an accelerator
    size = max(floor, int(np.ceil(2 ** (np.ceil(8 * np.log2(n)) / 8))))
    pad = [(0, size - n), (0, 0), (0, 0)]
    weight = np.pad(np.ones(n, dtype=np.float32), (0, size - n))
    return np.pad(np.asarray(X, np.float32), pad), np.pad(np.asarray(y, np.float32), pad), weight


def project(W: jax.Array, X: jax.Array, precision: str) -> jax.Array:
    """P of all initialisations side by side, (n, T, inits, r): one product of the tokens with W of shape (d, inits,
    r).
    """
    n, tokens, d = X.shape
    flat = jnp.matmul(X.reshape(n * tokens, d), W.reshape(d, -1), precision=PRECISIONS[precision])
    P: jax.Array = (flat / np.sqrt(d)).reshape(n, tokens, *W.shape[1:])
    return P


def student_outputs(P: jax.Array, W: jax.Array, beta: float | None) -> jax.Array:
    """Outputs of all initialisations, (n, inits, T, T); ``beta`` None is the linear channel."""
    tokens, (d, _, r) = P.shape[1], W.shape
    first, second = pairs(tokens)
    dots = [(P[:, a] * P[:, b]).sum(axis=-1) for a, b in zip(first, second, strict=True)]
    gram = jnp.stack(dots, axis=-1)[..., pair_of(tokens)]
    norm = (W**2).sum(axis=(0, 2))[:, None, None] / d
    h = (gram - norm * jnp.eye(tokens)) / np.sqrt(r)
    return h if beta is None else jax.nn.softmax(beta * h, axis=-1)


def losses_and_slope(
    W: jax.Array, X: jax.Array, y: jax.Array, weight: jax.Array, beta: float | None, precision: str
) -> tuple[jax.Array, jax.Array]:
    r"""Loss of every initialisation, and the gradient of their sum in W (d, inits, r): two products in all.

    With H = dL/dh,  dL/dP_a = \sum_b (H_ab + H_ba) P_b / sqrt(r)  and
    dL/dW = X^T dL/dP / sqrt(d) - 2 W \sum_n Tr H / (sqrt(r) d).
    """
    n, tokens, d = X.shape
    r = W.shape[2]
    P = project(W, X, precision)
    outputs = student_outputs(P, W, beta)
    gap = (outputs - y[:, None]) * weight[:, None, None, None]
    losses = (gap**2).sum(axis=(0, 2, 3)) / d
    H = 2 * gap / d
    if beta is not None:
        H = beta * outputs * (H - (outputs * H).sum(axis=-1, keepdims=True))
    both = (H + H.swapaxes(-1, -2)) / np.sqrt(r)
    rows = [sum(both[:, :, a, b, None] * P[:, b] for b in range(tokens)) for a in range(tokens)]
    dP = jnp.stack(rows, axis=1).reshape(n * tokens, -1)
    slope = jnp.matmul(X.reshape(n * tokens, d).T, dP, precision=PRECISIONS[precision]).reshape(W.shape) / np.sqrt(d)
    trace = jnp.trace(H.sum(axis=0), axis1=-2, axis2=-1)
    return losses, slope - 2 * trace[:, None] * W / (np.sqrt(r) * d)


@functools.partial(jax.jit, static_argnames=("steps", "beta", "precision"), donate_argnames=("W",))
def _train(
    W: jax.Array,
    X: jax.Array,
    y: jax.Array,
    weight: jax.Array,
    rate: jax.Array,
    *,
    steps: int,
    beta: float | None,
    precision: str,
) -> tuple[jax.Array, jax.Array]:
    """Adam on every initialisation, W of shape (d, inits, r)."""
    optimiser = optax.adam(rate)

    def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
        W, state = carry
        losses, slope = losses_and_slope(W, X, y, weight, beta, precision)
        update, state = optimiser.update(slope, state)
        return (optax.apply_updates(W, update), state), losses

    (W, _), curve = jax.lax.scan(step, (W, optimiser.init(W)), None, length=steps)
    return W, curve
