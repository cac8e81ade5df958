r"""Adapters between the shapes of the systems, so that one learner meets another system's task.

==================  ============================================================================================
adapter             what it does
==================  ============================================================================================
ScaleTokens         one factor for all tokens: root mean square norm 1 (rfa's tokens) or sqrt(d) (slr's)
PrependQuery        a query before tokens that have none: zeros, the mean token, or a copy of the first
FlattenTokens       (n, tokens, d) to (n, tokens * d)
FlattenOutputs      the same for outputs
Calibrated          standardises y, then fits y = a + b f on the training data
IndexedLayer        an aim learner on an attention layer's outputs: recovers the attention matrices first
ReadOut             a task whose output is one entry of another task's output matrix
Layer               an aim task as a multi-head layer with one tied head and identity values
==================  ============================================================================================

Which token is the query of a sequence that has none? With a constant query q the scores of a random head are
:math:`\tilde q^T W \tilde x_i = \langle u, \tilde x_i\rangle` with :math:`u = W^T \tilde q`, a Gaussian vector whose
law depends on q through :math:`|\tilde q|` alone: every constant query gives the same kernel up to a factor that the
ridge absorbs. Zeros are the constant query that a bias of W leaves untouched. The mean token is the simplest query
that carries information: a biased head can then ask which token stands out. Where the output is about one token's
attention, as in row 0 of an attention matrix, that token is the query.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from attnlab.common.reference import Reference
from attnlab.common.seeds import Seed
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import integer, nonnegative, one_of, positive
from attnlab.lab import registry

QUERIES = ("zero", "mean", "first")
# Attention weights below rounding cannot be told from zero: their logarithm stops here.
SMALLEST = 1e-15


class _TokenTransformer(TransformerMixin, BaseEstimator):
    """A transformer of token arrays that learns nothing but their shape."""

    def fit(self, X: Any, y: Any = None) -> _TokenTransformer:
        """Remember the shape."""
        self.tokens_, self.d_ = check_tokens(X).shape[1:]
        return self

    def _check(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "d_")
        return check_tokens(X, n_tokens=self.tokens_, d=self.d_)


class PrependQuery(_TokenTransformer):
    """Puts a query before the tokens: ``zero`` (a token of zeros), ``mean`` (the mean of the sequence's tokens) or
    ``first`` (a copy of token 0, which stays a key: token 0 attends to all tokens, itself included).
    """

    def __init__(self, query: str = "zero") -> None:
        self.query = query

    def transform(self, X: Any) -> np.ndarray:
        """(n, tokens + 1, d), the query first."""
        tokens = self._check(X)
        kind = one_of("query", self.query, QUERIES)
        if kind == "first":
            query = tokens[:, :1]
        else:
            query = tokens.mean(axis=1, keepdims=True) if kind == "mean" else np.zeros_like(tokens[:, :1])
        return np.concatenate([query, tokens], axis=1)


class FlattenTokens(_TokenTransformer):
    """All entries of all tokens in one row, for learners of plain vectors."""

    def transform(self, X: Any) -> np.ndarray:
        """(n, tokens * d)."""
        tokens = self._check(X)
        return tokens.reshape(len(tokens), -1)


class FlattenOutputs(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A regressor of several outputs on targets (n, tokens, k), which it sees as (n, tokens * k)."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> FlattenOutputs:
        """Flatten and fit."""
        y = check_targets(y, len(X), shape=(None, None))
        self.shape_ = y.shape[1:]
        self.estimator_ = clone(self.estimator).fit(X, y.reshape(len(y), -1))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(n, tokens, k)."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X)).reshape(-1, *self.shape_)


class ScaleTokens(_TokenTransformer):
    """Divides all tokens by one number, so that their root mean square norm on the training data is ``norm``.

    Parameters
    ----------
    norm : the norm wanted; None is sqrt(d), entries of order one.

    Attributes
    ----------
    factor_ : what tokens are multiplied by.
    """

    def __init__(self, norm: float | None = 1.0) -> None:
        self.norm = norm

    def fit(self, X: Any, y: Any = None) -> ScaleTokens:
        """Measure the norm."""
        super().fit(X)
        tokens = check_tokens(X)
        wanted = np.sqrt(self.d_) if self.norm is None else positive("norm", self.norm)
        have = float(np.sqrt(np.mean(np.sum(tokens**2, axis=2))))
        self.factor_ = float(wanted / have) if have > 0 else 1.0
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The scaled tokens."""
        return self._check(X) * self.factor_


class Calibrated(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A regressor whose outputs have a scale of their own, put on the scale of y.

    It is fitted to (y - mean) / std; its predictions f then enter y = a + b f, with a and b by least squares on the
    training data. Erf attention has |v| = 1 and neither learner of slr has an intercept: without this they could not
    fit the size of another system's outputs.

    Attributes
    ----------
    estimator_ : the fitted regressor; ``intercept_``, ``slope_`` : a and b.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Calibrated:
        """Standardise, fit, calibrate."""
        y = check_targets(y, len(X))
        spread = float(y.std()) or 1.0
        self.estimator_ = clone(self.estimator).fit(X, (y - y.mean()) / spread)
        f = np.asarray(self.estimator_.predict(X))
        self.slope_ = float(np.cov(f, y, bias=True)[0, 1] / f.var()) if f.var() > 0 else 0.0
        self.intercept_ = float(y.mean() - self.slope_ * f.mean())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """A + b f(X)."""
        check_is_fitted(self, "estimator_")
        return self.intercept_ + self.slope_ * np.asarray(self.estimator_.predict(X))


@dataclass(frozen=True)
class ReadOut:
    """A scalar task: one entry of another task's output matrix, y[:, row, column]."""

    task: Any
    row: int = 0
    column: int = 1

    def __post_init__(self) -> None:
        integer("row", self.row, low=0)
        integer("column", self.column, low=0)

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.task.d)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.task.tokens)

    def sample(self, n: int, seed: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
        """The task's tokens and the entry."""
        X, y = self.task.sample(n, seed)
        return X, y[:, self.row, self.column]


@dataclass(frozen=True)
class Layer:
    r"""An attention-indexed task as a multi-head task: F(X) = softmax(beta X S_0 X^T / sqrt d) X.

    An index is :math:`h_{ab} = (x_a^T S x_b - \delta_{ab} \mathrm{Tr} S)/\sqrt d`. A layer has logits
    :math:`x_a \Theta x_b^T` and cannot subtract the trace from its diagonal. But h is linear in S, and where the trace
    is zero nothing is subtracted: for :math:`S_0 = S - (\mathrm{Tr} S/d) I` the layer with
    :math:`\Theta = \beta S_0/\sqrt d` and W = I has exactly the attention matrices softmax(beta h(S_0)). (Left in, the
    trace would add sqrt(rho d) to the diagonal logits of a positive S: every token would attend to itself.)
    """

    task: Any
    n_heads: ClassVar[int] = 1

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.task.d)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.task.tokens)

    @functools.cached_property
    def layer(self) -> Any:
        """The multi-head task."""
        S = self.task.S - np.trace(self.task.S) / self.d * np.eye(self.d)
        theta, w = self.task.beta * S[None] / np.sqrt(self.d), np.eye(self.d)[None]
        options = {"tokens_law": "gaussian", "planted": (theta, w)}
        return registry.tasks()["mha.Task"](self.d, self.tokens, 1, **options)

    def sample(self, n: int, seed: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and outputs of the layer."""
        X, y = self.layer.sample(n, seed)
        return X, y


class IndexedLayer(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    r"""A learner of attention-indexed models on the outputs of a layer with identity values.

    1. F = A X with T <= d tokens in general position: the attention matrices are :math:`A = F X^+`, exactly.
    2. The layer's S_0 has no trace, a matrix from aim's prior has mean eigenvalue sqrt(rho). Indices are linear in S,
       so that :math:`h(S_0 + \sqrt\rho I) = h(S_0) + \sqrt\rho\,(XX^T - dI)/\sqrt d`: the known part is added to
       log A, and the learner sees softmax outputs of :math:`S_0 + \sqrt\rho I`, a draw from its prior whose trace
       is exactly the prior's mean (draws spread by sqrt(2) around it, 2/d^2 in the error of S).
    3. The estimate without its trace is the layer: ``theta_`` :math:`= \beta(\hat S - \mathrm{Tr}\hat S\, I/d)/\sqrt
       d`, ``w_`` = I.

    Parameters
    ----------
    estimator : :class:`attnlab.aim.AMP`, :class:`attnlab.aim.GradientDescent` or alike, with ``S_`` once fitted.
    rho, beta : of the model.

    Attributes
    ----------
    estimator_ : the fitted learner.
    theta_, w_ : (1, d, d), the layer.
    """

    def __init__(self, estimator: Any, rho: float = 0.5, beta: float = 1.0) -> None:
        self.estimator = estimator
        self.rho = rho
        self.beta = beta

    def fit(self, X: Any, y: Any) -> IndexedLayer:
        """Recover the attention matrices and fit the learner to them."""
        rho, beta = nonnegative("rho", self.rho), positive("beta", self.beta)
        tokens = check_tokens(X)
        _, k, d = tokens.shape
        log_A = np.log(attention_from_output(tokens, check_targets(y, len(tokens), shape=(k, d))))
        gram = tokens @ tokens.swapaxes(1, 2) - d * np.eye(k)
        outputs = softmax(log_A + beta * np.sqrt(rho) * gram / np.sqrt(d), axis=-1)
        self.estimator_ = clone(self.estimator).fit(tokens, outputs)
        S = self.estimator_.S_
        self.theta_ = beta * (S - np.trace(S) / d * np.eye(d))[None] / np.sqrt(d)
        self.w_ = np.eye(d)[None]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The layer's outputs."""
        check_is_fitted(self, "theta_")
        tokens = check_tokens(X, d=self.theta_.shape[1])
        return np.asarray(softmax(tokens @ self.theta_[0] @ tokens.swapaxes(1, 2), axis=-1) @ tokens)


def attention_from_output(X: np.ndarray, F: np.ndarray) -> np.ndarray:
    r"""The attention matrices behind F = A X: :math:`A = F X^+`, rows made positive and summing to one.

    Exact when the T <= d tokens of a sequence are linearly independent; more tokens than dimensions are refused.
    """
    _, k, d = X.shape
    if k > d:
        raise ValueError(f"attention can be read off the outputs of at most d={d} tokens, got {k}")
    A = np.maximum(F @ np.linalg.pinv(X), SMALLEST)
    return np.asarray(A / A.sum(axis=-1, keepdims=True))


def _known(task: Any, name: str, n: int) -> float | None:
    """A reference of the task inside an adapter that holds for every learner."""
    found = [r for r in registry.references() if r.name == name and r.learner is None and r.applies_to(task, None)]
    value = found[0].error(task, None, n) if found else None
    return None if value is None else float(value)


def weight_null(task: ReadOut, learner: Any, n: int) -> float | None:
    """The mean of one weight of a two-token softmax task: by symmetry all four weights vary equally."""
    return _known(task.task, "null", n) if _is_two_token_softmax(task.task) else None


def weight_bayes(task: ReadOut, learner: Any, n: int) -> float | None:
    r"""The Bayes error of one weight of a two-token softmax task.

    A weight is the logistic function of one index difference, so that a sequence holds one linear measurement of z
    instead of two: with :math:`\hat q = 2 \alpha k / V` the error of S is that of the whole output at half the
    examples. Derived here.  Status: asymptotic.
    """
    return _known(task.task, "Bayes", max(1, n // 2)) if _is_two_token_softmax(task.task) else None


def _is_two_token_softmax(task: Any) -> bool:
    return isinstance(task, registry.tasks()["aim.Task"]) and bool(task.tokens == 2)  # type: ignore[attr-defined]


def layer_bayes(task: Layer, learner: Any, n: int) -> float | None:
    """Identity values make an output the sum of the tokens, of unit variance, weighted by the attention errors."""
    value = _known(task.task, "Bayes", n)
    return None if value is None else task.tokens * value


REFERENCES: tuple[Reference, ...] = (
    Reference("null", ReadOut, "asymptotic", weight_null),
    Reference("Bayes", ReadOut, "asymptotic", weight_bayes),
    Reference("Bayes", Layer, "asymptotic", layer_bayes),
)
