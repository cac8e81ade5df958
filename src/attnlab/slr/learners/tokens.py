"""What every learner here shares: token arrays (n, L, d) in, one number per sequence out."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from attnlab.common.tokens import check_targets, check_tokens


class TokenRegressor(RegressorMixin, BaseEstimator):
    """A scikit-learn regressor on sequences of tokens; a token of zeros is padding."""

    def _check_fit(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Validate training data and remember their shape."""
        tokens = check_tokens(X)
        _, self.n_tokens_in_, self.d_in_ = tokens.shape
        return tokens, check_targets(y, len(tokens)).astype(tokens.dtype)

    def _check_predict(self, X: Any) -> np.ndarray:
        """Validate data to predict on; the number of tokens may differ from training, their width may not."""
        check_is_fitted(self)
        return check_tokens(X, d=self.d_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def present(X: Float[np.ndarray, "n L d"]) -> Bool[np.ndarray, "n L"]:
    """Which tokens are there; padding is a token of zeros."""
    return np.asarray(X.any(axis=2))


def random_state_seed(random_state: Any) -> Any:
    """scikit-learn's ``random_state`` (None, int, RandomState) or any seed of NumPy, as a seed for attnlab."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state
