r"""Adapters between the shapes of the systems, so that one learner meets another system's task.

Tasks of one system in the form of another's are in ``attnlab.lab.contests.readings``.

==================  ============================================================================================
adapter             what it does
==================  ============================================================================================
ScaleTokens         one factor for all tokens: root mean square norm 1 (rfa's tokens) or sqrt(d) (slr's)
PrependQuery        a query before tokens that have none: zeros, the mean token, or a copy of the first
FlattenTokens       (n, tokens, d) to (n, tokens * d)
FlattenOutputs      the same for outputs
Calibrated          standardises y, then fits y = a + b f on the training data
==================  ============================================================================================

Which token is the query of a sequence that has none? With a constant query q the scores of a random head are
:math:`\tilde q^T W \tilde x_i = \langle u, \tilde x_i\rangle` with :math:`u = W^T \tilde q`, a Gaussian vector whose
law depends on q through :math:`|\tilde q|` alone: every constant query gives the same kernel up to a factor that the
ridge absorbs. Zeros are the constant query that a bias of W leaves untouched. The mean token is the simplest query
that carries information: a biased head can then ask which token stands out. Where the output is about one token's
attention, as in row 0 of an attention matrix, that token is the query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import one_of, positive

QUERIES = ("zero", "mean", "first")


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
        # one factor for all tokens: differences of norm between tokens can be the signal and remain
        wanted = np.sqrt(self.d_) if self.norm is None else positive("norm", self.norm)
        have = float(np.sqrt(np.mean(np.sum(tokens**2, axis=2))))
        self.factor_ = float(wanted / have) if have > 0 else 1.0  # tokens of zeros have no scale
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
        spread = float(y.std()) or 1.0  # constant targets are only centred
        self.estimator_ = clone(self.estimator).fit(X, (y - y.mean()) / spread)
        f = np.asarray(self.estimator_.predict(X))
        # bias=True divides by n as f.var() does; the default would make the slope too large by n/(n - 1).
        # A constant f has no slope: the prediction is then the mean of y.
        self.slope_ = float(np.cov(f, y, bias=True)[0, 1] / f.var()) if f.var() > 0 else 0.0
        self.intercept_ = float(y.mean() - self.slope_ * f.mean())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """A + b f(X)."""
        check_is_fitted(self, "estimator_")
        return self.intercept_ + self.slope_ * np.asarray(self.estimator_.predict(X))
