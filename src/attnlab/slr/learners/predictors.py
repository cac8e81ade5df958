"""Reference predictors: zero, linear, attention at the planted pair, and the Bayes rule."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy import linalg, special

from attnlab.common.stopping import ended
from attnlab.common.validation import nonnegative, positive
from attnlab.slr.learners.tokens import TokenRegressor
from attnlab.slr.task import Task


class NullPredictor(TokenRegressor):
    """Predicts zero, the mean of the output: what has learned nothing.

    Attributes
    ----------
    n_tokens_in_, d_in_ : shape of the training sequences.
    """

    def __init__(self, n_tokens: Any = None):
        self.n_tokens = n_tokens

    def fit(self, X: Any, y: Any) -> NullPredictor:
        """Remember the shape of the data."""
        self._check_fit(X, y)
        ended(self, converged=True, reason="nothing to learn")
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """Zeros."""
        return np.zeros(len(self._check_predict(X)))


class LinearPredictor(TokenRegressor):
    r"""Least squares on all entries of all tokens.

    .. math:: \hat y = \sum_l \beta_l \cdot X_l

    Parameters
    ----------
    ridge : penalty :math:`n\,\text{ridge}\,|\beta|^2`; 0 is least squares (of minimum norm when underdetermined).
    n_tokens : tokens of the flat form ``X (n, n_tokens * d)``.

    Attributes
    ----------
    coef_ : (L, d), the fitted :math:`\beta`.
    """

    _special = False

    def __init__(self, ridge: Any = 0.0, *, n_tokens: Any = None):
        self.ridge = ridge
        self.n_tokens = n_tokens

    def fit(self, X: Any, y: Any) -> LinearPredictor:
        """Solve the normal equations, or the least-squares problem where they are singular."""
        ridge = nonnegative("ridge", self.ridge)
        X, y = self._check_fit(X, y)
        flat = X.reshape(len(X), -1)
        gram = flat.T @ flat + len(X) * ridge * np.eye(flat.shape[1])
        try:
            # Rounding may let the factorisation of a singular matrix pass.
            if len(X) < flat.shape[1] and ridge == 0:
                raise linalg.LinAlgError("underdetermined")
            # Normal equations take a fraction of the time of lstsq, which follows where they are singular: the smallest
            # solution.
            coef = linalg.cho_solve(linalg.cho_factor(gram), flat.T @ y)
        except linalg.LinAlgError:
            coef = linalg.lstsq(flat, y)[0]
        self.coef_ = coef.reshape(X.shape[1:])
        ended(self, converged=True, reason="closed form")
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """:math:`\\sum_l \\beta_l \\cdot X_l`."""
        X = self._check_predict(X)
        if X.shape[1] != self.n_tokens_in_:
            raise ValueError(f"X must have {self.n_tokens_in_} tokens, got shape {X.shape}")
        return np.asarray(np.tensordot(X, self.coef_, axes=2))


class OraclePredictor(TokenRegressor):
    r"""Erf attention at the planted pair.

    .. math:: \hat y = \sum_l \mathrm{erf}(\lambda X_l\cdot k^*)\,X_l\cdot v^*

    Parameters
    ----------
    task : the :class:`~attnlab.slr.Task` whose truth is used.
    lam : inverse temperature; None is :math:`(dL)^{-1/4}`, at which the risk tends to the Bayes risk.

    Attributes
    ----------
    k_, v_ : the planted directions.
    lam_ : the temperature used.
    """

    needs: ClassVar[dict[str, str]] = {"task": "self"}
    n_tokens = None

    def __init__(self, task: Any = None, lam: Any = None):
        self.task = task
        self.lam = lam

    def fit(self, X: Any, y: Any) -> OraclePredictor:
        """Nothing is learned; the data must have the task's dimension."""
        task = _task(self.task)
        self._check_fit(X, y)
        _same_width(task, self.d_in_)
        self.lam_ = (task.d * task.L) ** -0.25 if self.lam is None else positive("lam", self.lam)
        self.k_, self.v_ = task.k_star, task.v_star
        ended(self, converged=True, reason="nothing to learn")
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """The attention layer."""
        X = self._check_predict(X)
        return np.asarray(np.sum(special.erf(self.lam_ * (X @ self.k_)) * (X @ self.v_), axis=1))


class BayesPredictor(TokenRegressor):
    r"""The predictor of smallest risk, given the planted pair.

    .. math:: \hat y = K^{-1/2}\sum_l \Pr(l \in J \mid X)\, X_l\cdot v^*

    Parameters
    ----------
    task : the :class:`~attnlab.slr.Task` that generates the data, of any law and length.

    Attributes
    ----------
    task_ : the same.
    """

    needs: ClassVar[dict[str, str]] = {"task": "self"}
    n_tokens = None

    def __init__(self, task: Any = None):
        self.task = task

    def fit(self, X: Any, y: Any) -> BayesPredictor:
        """Nothing is learned; the data must have the task's dimension."""
        self.task_ = _task(self.task)
        self._check_fit(X, y)
        _same_width(self.task_, self.d_in_)
        ended(self, converged=True, reason="nothing to learn")
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """Average of the tokens' outputs over the posterior of the location."""
        X = self._check_predict(X)
        values = X @ self.task_.v_star / np.sqrt(self.task_.locations)
        return np.asarray(np.sum(self.task_.posterior(X) * values, axis=1))


def _task(task: Task | None) -> Task:
    if not isinstance(task, Task):
        raise ValueError(f"task must be the slr.Task that generates the data, got {task!r}")
    return task


def _same_width(task: Task, d: int) -> None:
    if task.d != d:
        raise ValueError(f"X must have tokens of width d={task.d} (that of the task), got {d}")
