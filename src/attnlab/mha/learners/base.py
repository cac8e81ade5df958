"""What all learners of a layer share: checked examples, prediction, score and the split of the data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, generator
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import one_of, real
from attnlab.mha.certificate import Certificate, certify, output_bound
from attnlab.mha.counting import examples_needed
from attnlab.mha.layer import attention

LAWS = ("auto", "boolean", "gaussian")


class Split(NamedTuple):
    """Example numbers for fitting, for choosing, and for the certificate."""

    train: np.ndarray
    validation: np.ndarray
    certificate: np.ndarray


class LayerRegressor(RegressorMixin, BaseEstimator):
    """A learner whose fitted state is a layer: ``theta_ (m, d, d)`` and ``w_ (m, d, d_out)``."""

    theta_: np.ndarray
    w_: np.ndarray
    n_tokens_: int

    def predict(self, X: ArrayLike) -> Float[np.ndarray, "n k o"]:
        """Outputs of the fitted layer on token sequences of the width it was fitted on, of any number of tokens."""
        check_is_fitted(self, "theta_")
        return attention(check_tokens(X, d=self.theta_.shape[1]), self.theta_, self.w_)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: None = None) -> float:
        """Share of the outputs' variance explained, over all rows and outputs together."""
        predicted = self.predict(X)
        truth = check_targets(y, len(predicted), shape=predicted.shape[1:])
        left = np.sum((truth - predicted) ** 2)
        return float(1 - left / np.sum((truth - truth.mean(axis=(0, 1))) ** 2))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        return tags


def check_examples(X: ArrayLike, y: ArrayLike, law: str = "auto") -> tuple[np.ndarray, np.ndarray, str]:
    """Tokens, outputs and their law; entries other than -1 and +1 are refused where signs were declared."""
    one_of("tokens_law", law, LAWS)
    tokens = check_tokens(X, min_samples=2).astype(np.float64)
    outputs = check_targets(y, len(tokens), shape=(tokens.shape[1], None)).astype(np.float64)
    if tokens.shape[1] < 2:
        raise ValueError("X must hold at least 2 tokens an example: with one token attention is constant")
    signs = bool(np.isin(tokens, (-1.0, 1.0)).all())
    if law == "boolean" and not signs:
        odd = tokens[~np.isin(tokens, (-1.0, 1.0))][0]
        raise ValueError(f"X must hold only -1 and +1 when tokens_law='boolean', got {odd:g}")
    return tokens, outputs, ("boolean" if signs else "gaussian") if law == "auto" else law


def check_enough(n: int, m: int, d: int, k: int, d_out: int) -> None:
    """Refuse to fit fewer equations than unknowns, and say how many examples it takes."""
    needed = examples_needed(m, d, k, d_out)
    if n < needed:
        raise ValueError(
            f"{n} examples to fit are too few for n_heads={m}: {m} heads of width {d} need at least {needed} examples "
            f"of {k} tokens (and about twice as many to be recovered)"
        )


def split_examples(n: int, validation: float, certificate: float, seed: Seed) -> Split:
    """A random split; a share of zero gives an empty part."""
    real("validation_fraction", validation, low=0, high=0.9)
    real("certificate_fraction", certificate, low=0, high=0.9)
    if validation + certificate > 0.9:
        raise ValueError(
            f"validation_fraction + certificate_fraction must be at most 0.9, got {validation + certificate:g}"
        )
    order = generator(seed).permutation(n)
    v, c = round(validation * n), round(certificate * n)
    return Split(order[v + c :], order[:v], order[v : v + c])


def certify_layer(
    theta: np.ndarray,
    w: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    *,
    law: str,
    delta: float,
    label_bound: float | None,
) -> Certificate | None:
    """Certificate on untouched examples; None without examples.

    The labels' bound defaults to that of the fitted layer: an assumption, exact when the fit is.
    """
    if len(X) == 0:
        return None
    own = output_bound(w)
    bound = own + (own if label_bound is None else label_bound)
    return certify(attention(X, theta, w), y, bound=bound if law == "boolean" else None, delta=delta)


def relative_error(y: np.ndarray, predicted: np.ndarray) -> float:
    """Squared error relative to the labels' second moment."""
    return float(np.sum((y - predicted) ** 2) / max(np.sum(y**2), np.finfo(float).tiny))
