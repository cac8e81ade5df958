"""What all learners of a layer share: checked examples, prediction and score."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from attnlab.common.arrays import ArrayLike
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import finite_array
from attnlab.mha.layer import attention
from attnlab.mha.theory.counts import fewest_examples


class LayerRegressor(RegressorMixin, BaseEstimator):
    """A learner whose fitted state is a layer: ``theta_ (m, d, d)`` and ``w_ (m, d, d_out)``.

    Learners of layers with biases also have ``key_bias_ (m, d)`` and ``constant_ (d_out,)``.
    """

    # What a learner is told of the law it meets, as the lab reads it.
    needs: tuple[str, ...] | dict[str, str] = ()

    theta_: np.ndarray
    w_: np.ndarray
    n_tokens_: int
    converged_: bool
    n_iter_: int
    stop_reason_: str

    def predict(self, X: ArrayLike) -> Float[np.ndarray, "n k o"]:
        """Outputs of the fitted layer on token sequences of the width it was fitted on, of any number of tokens."""
        check_is_fitted(self, "theta_")
        biases = getattr(self, "key_bias_", None), getattr(self, "constant_", None)
        return attention(check_tokens(X, d=self.theta_.shape[1]), self.theta_, self.w_, *biases)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the outputs' variance explained, over all rows and outputs together; weights are of examples."""
        predicted = self.predict(X)
        truth = check_targets(y, len(predicted), shape=predicted.shape[1:])
        weights = np.ones(len(truth))
        if sample_weight is not None:
            weights = finite_array("sample_weight", sample_weight, shape=(len(truth),)).astype(float)
        weight = weights[:, None, None]
        mean = np.sum(weight * truth, axis=(0, 1)) / (weights.sum() * truth.shape[1])
        return float(1 - np.sum(weight * (truth - predicted) ** 2) / np.sum(weight * (truth - mean) ** 2))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        return tags


def check_examples(X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and outputs in float64, of matching shapes."""
    tokens = check_tokens(X, min_samples=2).astype(np.float64)
    outputs = check_targets(y, len(tokens), shape=(tokens.shape[1], None)).astype(np.float64)
    if tokens.shape[1] < 2:
        raise ValueError("X must hold at least 2 tokens an example: with one token attention is constant")
    return tokens, outputs


def are_signs(X: np.ndarray) -> bool:
    """Whether all tokens lie on the cube."""
    return bool(np.isin(X, (-1.0, 1.0)).all())


def check_enough(n: int, m: int, d: int, k: int, d_out: int) -> None:
    """Refuse to fit fewer equations than unknowns, and say how many examples it takes."""
    needed = fewest_examples(m, d, k, d_out)
    if n < needed:
        raise ValueError(
            f"{n} examples to fit are too few for n_heads={m}: {m} heads of width {d} need at least {needed} examples "
            f"of {k} tokens (and about twice as many to be recovered)"
        )


def relative_error(y: np.ndarray, predicted: np.ndarray) -> float:
    """Squared error relative to the labels' second moment."""
    return float(np.sum((y - predicted) ** 2) / max(np.sum(y**2), np.finfo(float).tiny))
