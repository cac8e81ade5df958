"""Estimators that are given the law and see one context at a time: nothing is learned from other contexts."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from attnlab.common.seeds import Seed
from attnlab.common.sequences import SequenceRegressor
from attnlab.common.stopping import ended
from attnlab.common.validation import finite_array, nonnegative
from attnlab_icl.task import Task, Tasks, split

# Contexts treated at once, so that memory stays at BLOCK d^2 numbers.
BLOCK = 512


class InContext(SequenceRegressor):
    """Predicts x.w with an estimate of the task w from the examples of the same context."""

    _outputs_are_arrays = False

    def fit(self, X: Float[np.ndarray, "n tokens p"], y: Float[np.ndarray, " n"]) -> Self:
        """Check the input; there is nothing to learn."""
        x, _, _ = split(X)
        finite_array("y", y, shape=(len(x),))
        self.n_inputs_ = x.shape[2]
        self._check()
        ended(self, converged=True, reason="closed form")
        return self

    def predict(self, X: Float[np.ndarray, "n tokens p"]) -> Float[np.ndarray, " n"]:
        """The answers to the last tokens."""
        return np.asarray(np.vecdot(self.task_estimate(X), split(X)[2]))

    def task_estimate(self, X: Float[np.ndarray, "n tokens p"]) -> Float[np.ndarray, "n d"]:
        """The estimate of w in each context."""
        check_is_fitted(self, "n_inputs_")
        x, y, _ = split(X)
        if x.shape[2] != self.n_inputs_:
            raise ValueError(f"X has inputs of dimension {x.shape[2]}; the estimator was fitted to {self.n_inputs_}")
        parts = [slice(first, first + BLOCK) for first in range(0, len(x), BLOCK)]
        return np.concatenate([self._estimate(x[part], y[part]) for part in parts])

    def excess(self, task: Task, n: int, seed: Seed = 0, tasks: Tasks = "new") -> float:
        r"""Test error above rho, :math:`\mathbb{E}|\hat w - w|^2/d` over n contexts.

        The query and the noise of its label are averaged exactly; contexts are drawn in O(d^2) each, whatever l is.
        """
        X, w = task.reduced(n, seed, tasks)
        # A query has covariance I/d: the mean over coordinates is E (x.(w_hat - w))^2. The fit checks shapes alone.
        return float(np.mean((self.fit(X, np.zeros(n)).task_estimate(X) - w) ** 2))

    def _check(self) -> None:
        """Refuse wrong parameters."""

    def _estimate(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class RidgeInContext(InContext):
    r"""Ridge regression on each context; Bayes-optimal for isotropic tasks.

    .. math:: \hat w = (X^TX + m I)^{-1}X^Ty

    Parameters
    ----------
    ridge : m; None takes the variance of the noise, which is optimal.
    noise_std : standard deviation of the noise; given by the task.

    >>> from attnlab_icl import Task
    >>> task = Task(d=4, l=40, noise_std=0.1)
    >>> learner = RidgeInContext(noise_std=task.noise_std).fit(*task.sample(1))
    >>> bool(learner.score(*task.sample(200, seed=1)) > 0.97)
    True
    """

    needs: ClassVar[tuple[str, ...]] = ("noise_std",)

    def __init__(self, ridge: float | None = None, noise_std: float | None = None) -> None:
        self.ridge = ridge
        self.noise_std = noise_std

    def _check(self) -> None:
        if self.ridge is None and self.noise_std is None:
            raise ValueError("ridge=None means the variance of the noise: give noise_std, or a ridge")
        self.ridge_ = nonnegative("noise_std", self.noise_std) ** 2 if self.ridge is None else self.ridge
        nonnegative("ridge", self.ridge_)

    def _estimate(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        l, d = x.shape[1:]
        if self.ridge_ == 0:
            # Least norm where the examples are fewer than the dimensions.
            return np.asarray(np.linalg.pinv(x) @ y[..., None])[..., 0]
        if l < d:  # the smaller of two equivalent systems
            inner = np.linalg.solve(x @ x.mT + self.ridge_ * np.eye(l), y[..., None])
            return np.asarray(x.mT @ inner)[..., 0]
        return np.asarray(np.linalg.solve(x.mT @ x + self.ridge_ * np.eye(d), x.mT @ y[..., None]))[..., 0]


class DiscreteMMSE(InContext):
    r"""Posterior mean over the k pretraining tasks (dMMSE).

    .. math:: \hat w = \sum_j p_j w_j,\qquad
              p_j \propto \exp\{(w_j \cdot b - w_j^T C w_j/2)/\rho\}, \qquad C = X^TX,\ b = X^Ty.

    Optimal on the pretraining tasks; it memorises them (arXiv:2306.15063). Without noise the weights are equal on the
    tasks of least residual and 0 elsewhere.

    Parameters
    ----------
    W : the pretraining tasks (k, d); given by the task.
    noise_std : standard deviation of the noise; given by the task.
    """

    needs: ClassVar[tuple[str, ...]] = ("W", "noise_std")

    def __init__(self, W: Any = None, noise_std: float | None = None) -> None:
        self.W = W
        self.noise_std = noise_std

    def _check(self) -> None:
        if self.W is None or self.noise_std is None:
            raise ValueError("DiscreteMMSE needs W, the pretraining tasks, and noise_std")
        finite_array("W", self.W, shape=(None, self.n_inputs_))
        nonnegative("noise_std", self.noise_std)

    def weights(self, x: Float[np.ndarray, "n l d"], y: Float[np.ndarray, "n l"]) -> Float[np.ndarray, "n k"]:
        """Posterior probabilities of the tasks, given the examples of each context."""
        W = np.asarray(self.W, dtype=float)
        d = W.shape[1]
        # w^T C w for all tasks at once: a product of the flattened C with the flattened w w^T.
        outer = (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)
        fit = (x.mT @ y[..., None])[..., 0] @ W.T - (x.mT @ x).reshape(len(x), d * d) @ outer.T / 2
        # The factor cancels in the weights, and the largest exponential is 1: none overflows.
        fit -= fit.max(axis=1, keepdims=True)
        if self.noise_std == 0:
            # Residuals are compared through ``fit``, which is rounded relative to |y|^2.
            p = (fit >= -1e-12 * np.abs(np.vecdot(y, y))[:, None]).astype(float)
        else:
            p = np.exp(np.maximum(fit / nonnegative("noise_std", self.noise_std) ** 2, -745.0))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _estimate(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(self.weights(x, y) @ np.asarray(self.W, dtype=float))


class NullPredictor(InContext):
    """Predicts 0, with error 1 + rho."""

    def _estimate(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.zeros((len(x), x.shape[2]))
