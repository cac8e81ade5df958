"""What every learner here shares: token arrays (n, L, d) in, one number per sequence out."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from attnlab.common.tokens import check_targets, check_tokens


class TokenRegressor(RegressorMixin, BaseEstimator):
    """A scikit-learn regressor on sequences of tokens; a token of zeros is padding.

    With ``n_tokens`` set, sequences may also come in the flat form (n, n_tokens * d) of scikit-learn's tools.
    """

    needs: ClassVar[Any] = ()
    _special: ClassVar[bool] = True
    n_tokens: int | None

    def _check_fit(self, X: Any, y: Any, *, reset: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Validate training data and remember their shape; with ``reset=False`` their width must be the same."""
        tokens = self._tokens(X, reset=reset)
        _, self.n_tokens_in_, self.d_in_ = tokens.shape
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if self.n_tokens is not None:
            # scikit-learn's tools may give a column, or numbers as objects
            y = column_or_1d(y, warn=True, dtype=np.float64)
        return tokens, check_targets(y, len(tokens)).astype(tokens.dtype)

    def _check_predict(self, X: Any) -> np.ndarray:
        """Validate data to predict on; the number of tokens may differ from training, their width may not."""
        check_is_fitted(self)
        return self._tokens(X, reset=False)

    def _tokens(self, X: Any, *, reset: bool) -> np.ndarray:
        flat = getattr(self, "n_tokens", None)
        if flat is not None and getattr(X, "ndim", 2) != 3:
            X = validate_data(self, X, dtype="numeric", reset=reset)
        elif reset and hasattr(self, "n_features_in_"):
            # Left by an earlier fit to the flat form, whose width it holds.
            del self.n_features_in_
        return check_tokens(X, d=None if reset else self.d_in_, flat_tokens=flat)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        flat = getattr(self, "n_tokens", None) is not None
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = flat, not flat
        # fixed norms or an assumed law: regressors of this problem, not of any
        tags.regressor_tags.poor_score = self._special
        return tags


def present(X: Float[np.ndarray, "n L d"]) -> Bool[np.ndarray, "n L"]:
    """Which tokens are there; padding is a token of zeros."""
    return np.asarray(X.any(axis=2))
