"""What all learners of a layer share: checked examples, prediction and score."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from attnlab.common.arrays import ArrayLike
from attnlab.common.sequences import SequenceRegressor
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.mha.layer import attention
from attnlab.mha.theory.counts import fewest_examples


class LayerRegressor(SequenceRegressor):
    """A learner whose fitted state is a layer: ``theta_ (m, d, d)`` and ``w_ (m, d, d_out)``.

    Learners of layers with biases also have ``key_bias_ (m, d)`` and ``constant_ (d_out,)``.
    """

    # The parameters that the lab takes from the law of the data.
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

    def _mean_output(self, y: np.ndarray, weight: np.ndarray) -> Any:
        """Of each output, the mean over the rows: the tokens of a sequence have the same law."""
        return np.sum(weight * y, axis=(0, 1)) / (np.sum(weight) * y.shape[1])


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
