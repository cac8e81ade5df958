"""Gradient descent on the layer's own parametrisation, one or many starting points at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.aim.channels import Channel
from attnlab.aim.learners.descent import Objective, stationarity, train
from attnlab.aim.learners.prediction import IndexedPredictor
from attnlab.common.advice import advise
from attnlab.common.compute import Compute
from attnlab.common.seeds import Seed, stream
from attnlab.common.stopping import ended
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import integer, nonnegative, positive

MEMORY = 2e9  # bytes of projected tokens and their gradients; more starting points are trained one group after another
Data = tuple[jax.Array, jax.Array, jax.Array]  # tokens, targets and weights
STATIONARY = 0.05  # gradient of the objective over that of its decay, at a penalised minimum


@dataclass(frozen=True)
class Adam:
    """How gradient descent runs.

    Parameters
    ----------
    step, n_steps : of Adam; with weight decay the step falls to zero along a cosine.
    tol : training loss per sequence below which a starting point counts as having fitted the data.
    init_scale : of the starting points, iid N(0, 1).
    compute : ``precision`` of the matrix products and ``memory``.
    """

    step: float = 0.1
    n_steps: int = 1000
    tol: float = 1e-3
    init_scale: float = 1.0
    compute: Compute | None = None

    def __post_init__(self) -> None:
        for name in ("step", "tol", "init_scale"):
            positive(name, getattr(self, name))
        integer("n_steps", self.n_steps, low=1)
        if self.compute is not None:
            self.compute.supports(self, "precision", "memory")


class GradientDescent(IndexedPredictor):
    r"""Full-batch Adam on W (or on Q and K); the estimate is averaged over independent starting points.

    .. math:: \min_W \tfrac1d\sum_\mu \ell(y^\mu, \hat y^\mu) + \lambda\|W\|^2/\sqrt{rd}, \qquad S = WW^T/\sqrt{rd}

    Without decay, interpolating solutions behave roughly like posterior samples, so that one has about twice the Bayes
    error and their mean comes close to it (arXiv:2506.01582). With decay the minimum is that of the trace of S
    (:class:`attnlab.aim.NuclearNorm`), whose error :func:`attnlab.aim.theory.erm` predicts (arXiv:2509.24914).

    Parameters
    ----------
    width : number r of columns of W, the teacher's round(rho d).
    n_starts : starting points, trained side by side on the same data.
    channel : ``softmax`` or ``linear``, by name or as an object; hardmax has no gradient.
    tied, attention, mask : as in :class:`attnlab.aim.Task`.
    loss : ``squared_output``, ``cross_entropy`` (softmax) or ``logits``.
    weight_decay : lambda, in the loss (coupled).
    optimizer : :class:`Adam` with its steps, tolerance, scale of the start and options of the machine, or a mapping of
        those that differ from its defaults.

    Attributes
    ----------
    S_ : mean of S over the starting points.
    weights_ : W of each, (n_starts, d, r); untied: Q and K, (n_starts, 2, d, r).
    loss_, loss_curve_ : final training loss per sequence of each (without decay), and its course (n_steps, n_starts).
    predicted_mse_ : spread of the solutions around their mean, an estimate of the error if they were posterior samples.
    converged_, n_iter_, stop_reason_ : whether every starting point fits the data; with decay, whether it is
    stationary.
    """

    needs = ("width", "channel", "tied", "attention", "mask")
    prediction = "plug-in"

    def __init__(
        self,
        width: int,
        n_starts: int = 1,
        *,
        channel: str | Channel = "softmax",
        tied: bool = True,
        attention: str = "self",
        mask: Any = "full",
        loss: str = "squared_output",
        weight_decay: float = 0.0,
        optimizer: Adam | Mapping[str, Any] = Adam(),
        random_state: Seed = None,
    ) -> None:
        self.width = width
        self.n_starts = n_starts
        self.channel = channel
        self.tied = tied
        self.attention = attention
        self.mask = mask
        self.loss = loss
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.random_state = random_state

    def fit(self, X: np.ndarray | Any, y: np.ndarray | Any) -> GradientDescent:
        """Train all starting points on the whole batch."""
        width, n_starts = integer("width", self.width, low=1), integer("n_starts", self.n_starts, low=1)
        adam = self._adam
        compute = Compute() if adam.compute is None else adam.compute
        self.law.check_loss(self.loss)
        decay = nonnegative("weight_decay", self.weight_decay)
        X, summary = self._check_data(X, y)
        objective = Objective(self.law, self.layout_, self.loss, decay)
        n, _, d = X.shape
        shape = (n_starts, 1 if self.layout_.tied else 2, d, width)
        start = stream(self.random_state, "learner", "aim").standard_normal(shape, dtype=np.float32)
        start *= np.float32(adam.init_scale)
        target = summary if self.loss == "logits" else np.asarray(y)
        data: Data = tuple(jnp.asarray(values) for values in _padded(X, target))  # type: ignore[assignment]
        options = {"n_steps": adam.n_steps, "precision": compute.precision, "anneal": decay > 0}
        trained, curves, slopes = [], [], []
        size = self._group(len(data[0]), MEMORY if compute.memory is None else compute.memory)
        for group in np.split(start, range(size, n_starts, size)):
            # Starts beside r: all of them meet the tokens in one wide product.
            factors = jnp.asarray(group.transpose(1, 2, 0, 3))
            final, curve = train(factors, *data, jnp.float32(adam.step), objective=objective, **options)
            slopes.append(stationarity(final, *data, objective, compute.precision) if decay else np.zeros(len(group)))
            trained.append(np.asarray(final).transpose(2, 0, 1, 3))
            # The objective is the sum over sequences divided by d.
            curves.append(np.asarray(curve) * d / n)
        self._finish(np.concatenate(trained), np.concatenate(curves, axis=1), np.concatenate(slopes))
        return self

    @property
    def _adam(self) -> Adam:
        return Adam(**self.optimizer) if isinstance(self.optimizer, Mapping) else self.optimizer

    def _group(self, n: int, memory: float) -> int:
        """Starting points whose projected tokens and their gradients fit in memory."""
        per_start = 4 * 6 * n * self.layout_.tokens * max(self.width, self.layout_.keys)
        return max(1, int(memory // per_start))

    def _finish(self, factors: np.ndarray, curve: np.ndarray, slopes: np.ndarray) -> None:
        self.weights_ = factors[:, 0] if self.layout_.tied else factors
        self.loss_curve_, self.loss_ = curve, curve[-1]
        S = np.stack([matrix(w) for w in self.weights_])
        self.S_ = S.mean(axis=0)
        # Posterior samples scatter around their mean by the Bayes error; n - 1, since the mean is made of them.
        spread = ((S - self.S_) ** 2).sum(axis=(1, 2)).sum() / len(self.S_)
        self.predicted_mse_ = float(spread / (len(S) - 1)) if len(S) > 1 else float("nan")
        if not np.isfinite(factors).all():
            converged, reason = False, "diverged; a smaller step helps"
        elif self.weight_decay > 0:
            converged = bool((slopes < STATIONARY).all())
            reason = "stationary" if converged else f"gradient {slopes.max():.2g} of the decay's; more n_steps help"
            self._warn_if_narrow(S)
        else:
            converged = bool((self.loss_ < self._adam.tol).all())
            reason = "data fitted" if converged else f"data not fitted, loss {self.loss_.max():.2g} a sequence"
        ended(self, converged=converged, reason=reason, n_iter=len(curve))

    def _warn_if_narrow(self, S: np.ndarray) -> None:
        values = np.linalg.svd(S, compute_uv=False)[:, : self.width]
        if (values[:, -1] > 1e-3 * values[:, 0]).any() and self.width < S.shape[1]:
            advise(
                f"all width={self.width} directions are in use: the minimum may need more, and the theory is for those",
                UserWarning,
                stacklevel=4,
            )

    def predict_mean(self, X: Any) -> np.ndarray:
        """Mean over the starting points of their outputs, beside ``predict``, the output at their mean."""
        check_is_fitted(self, "weights_")
        X, layout = np.asarray(check_tokens(X, n_tokens=self.layout_.tokens, d=len(self.S_)), np.float64), self.layout_
        found = [self.law.output(layout.indices(X, matrix(w)), visible=layout.visible) for w in self.weights_]
        return np.asarray(np.mean(found, axis=0))


def matrix(W: np.ndarray) -> np.ndarray:
    """S = W W^T / sqrt(r d) of a factor (d, r), or Q K^T / sqrt(r d) of a pair (2, d, r), float64."""
    W = np.asarray(W, dtype=np.float64)
    left, right = (W, W) if W.ndim == 2 else W
    return np.asarray(left @ right.T / np.sqrt(left.size))


def _padded(X: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples padded to the next of a geometric series of sizes, so that a sweep over alpha compiles few programs."""
    n = len(X)
    floor = 1 if jax.default_backend() == "cpu" else 1024  # smaller batches do not fill an accelerator
    # Steps of 2^(1/8): at most 9 % are padding.
    size = max(floor, int(np.ceil(2 ** (np.ceil(8 * np.log2(n)) / 8))))
    weight = np.pad(np.ones(n, dtype=np.float32), (0, size - n))
    return _with_zeros(X, size), _with_zeros(target, size), weight


def _with_zeros(values: np.ndarray, size: int) -> np.ndarray:
    return np.pad(np.asarray(values, np.float32), [(0, size - len(values)), *[(0, 0)] * (values.ndim - 1)])
