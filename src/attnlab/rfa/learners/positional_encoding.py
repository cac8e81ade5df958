"""Positional encodings as a step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from attnlab.common.tokens import check_tokens
from attnlab.common.validation import one_of
from attnlab.rfa.position import ENCODINGS, encode


class PositionalEncoding(TransformerMixin, BaseEstimator):
    """Appends the codes of the keys' places to the tokens, (n, tokens, d) -> (n, tokens, d + width).

    Put it before a learner: ``make_pipeline(PositionalEncoding("onehot"), RandomFeatureAttention())``.

    Parameters
    ----------
    encoding : ``onehot`` or ``sinusoidal``.
    n_tokens : tokens of the flat form; flat tokens stay flat.
    """

    def __init__(self, encoding: Any = "onehot", *, n_tokens: Any = None) -> None:
        self.encoding = encoding
        self.n_tokens = n_tokens

    def fit(self, X: Any, y: Any = None) -> PositionalEncoding:
        """Remember the shape."""
        one_of("encoding", self.encoding, ENCODINGS)
        self.tokens_, self.d_ = self._check(X, reset=True).shape[1:]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Tokens with their places, in the form of X."""
        check_is_fitted(self, "d_")
        tokens = self._check(X, reset=False)
        coded = encode(tokens, self.encoding)
        return coded if getattr(X, "ndim", 2) == 3 else coded.reshape(len(coded), -1)

    def _check(self, X: Any, *, reset: bool) -> np.ndarray:
        if self.n_tokens is not None and getattr(X, "ndim", 2) != 3:
            X = validate_data(self, X, dtype="numeric", reset=reset)
        known = {} if reset else {"n_tokens": self.tokens_, "d": self.d_}
        return check_tokens(X, flat_tokens=self.n_tokens, **known)
