"""What the learners of this system share: checking data, predicting with an estimated S, scoring."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.aim.channels import Channel, as_channel
from attnlab.aim.channels.residual import Residual
from attnlab.aim.indices import Layout
from attnlab.aim.spectrum import singular, tied
from attnlab.common.sequences import SequenceRegressor
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import finite_array, one_of

PREDICTIONS = ("plug-in", "bayes")


class IndexedPredictor(SequenceRegressor):
    """A fitted ``S_`` makes predictions: plug-in y(h(S_)), or Bayes E y with the indices' remaining variance averaged
    over.
    """

    channel: str | Channel
    tied: bool
    attention: str
    mask: Any
    prediction: str
    tokens_: int | tuple[int, int]

    @property
    def law(self) -> Channel:
        """The output channel as an object."""
        return as_channel(self.channel)

    @property
    def prior(self) -> ModuleType:
        """The spectrum of the prior."""
        return tied if self.tied else singular

    @property
    def layout_(self) -> Layout:
        """Which queries meet which keys, as the fitted data have them."""
        if not hasattr(self, "_layout"):  # a loaded learner has tokens_ alone
            self._layout = Layout.of(self.tokens_, self.tied, self.attention, self.mask)
        return self._layout

    def remaining_error(self) -> float:
        """The estimated error of S_."""
        raise NotImplementedError

    def _check_data(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Tokens (n, T, d), kept as they are where they live on a device or are regenerated, and y as the channel reads
        it. Sets ``tokens_``.
        """
        X = X if hasattr(X, "draw") or _on_device(X) else check_tokens(X)
        shape = np.shape(y)
        if self.attention == "cross":
            wanted = (X.shape[0], *shape[1:])
            if len(shape) != 3 or shape[1] + shape[2] != X.shape[1]:
                raise ValueError(f"y must have shape (n, queries, keys) with {X.shape[1]} tokens in all, got {shape}")
            tokens: Any = (shape[1], shape[2])
        else:
            wanted, tokens = (X.shape[0], X.shape[1], X.shape[1]), X.shape[1]
        self.tokens_ = tokens
        self._layout = Layout.of(tokens, self.tied, self.attention, self.mask)
        self.law.check(self.layout_)
        y = np.asarray(y)
        if y.shape == wanted and y.dtype.kind == "f":  # the logarithm of a masked weight is minus infinity
            y = np.where(~self.layout_.visible & np.isneginf(y), 0.0, y)
        return X, self.law.summary(finite_array("y", y, shape=wanted), self.layout_)

    def predict(self, X: Any) -> np.ndarray:
        """Outputs (n, queries, keys) for fresh sequences (n, T, d)."""
        check_is_fitted(self, "S_")
        one_of("prediction", self.prediction, PREDICTIONS)
        X = check_tokens(X, n_tokens=self.layout_.tokens, d=len(self.S_))
        h = self.layout_.indices(np.asarray(X, dtype=np.float64), self.S_)
        if self.prediction == "plug-in":
            return self.law.mean_output(h, self.layout_.visible)
        V = self.remaining_error()
        # The prediction draws residuals around h alone: the total variance does not enter.
        return self.law.bayes_output(h, Residual(self.layout_, V, V, V))


def _on_device(X: Any) -> bool:
    import jax

    return isinstance(X, jax.Array) and X.ndim == 3
