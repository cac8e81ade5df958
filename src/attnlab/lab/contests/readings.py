r"""Tasks of one system read as another's, and what theory says of them.

==================  ============================================================================================
reading             what it does
==================  ============================================================================================
ReadOut             a task whose output is one entry of another task's output matrix
Layer               an aim task as a multi-head layer with one tied head and identity values
IndexedLayer        an aim learner on such a layer's outputs: recovers the attention matrices first
==================  ============================================================================================
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from attnlab.common.arena import STARTS, Declined, Entry, Forms
from attnlab.common.compute import Compute
from attnlab.common.reference import Reference
from attnlab.common.seeds import Seed
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import integer, nonnegative, positive
from attnlab.lab import registry

# Attention weights below rounding cannot be told from zero: their logarithm stops here.
SMALLEST = 1e-15


@dataclass(frozen=True)
class _Reading:
    """A task around another, with the same tokens."""

    task: Any

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.task.d)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.task.tokens)


@dataclass(frozen=True)
class ReadOut(_Reading):
    """A scalar task: one entry of another task's output matrix, y[:, row, column]."""

    query: ClassVar[str] = "first"

    row: int = 0
    column: int = 1

    def __post_init__(self) -> None:
        integer("row", self.row, low=0)
        integer("column", self.column, low=0)

    def sample(self, n: int, seed: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
        """The task's tokens and the entry."""
        X, y = self.task.sample(n, seed)
        return X, y[:, self.row, self.column]


@dataclass(frozen=True)
class Layer(_Reading):
    r"""An attention-indexed task as a multi-head task: F(X) = softmax(beta X S_0 X^T / sqrt d) X.

    An index is :math:`h_{ab} = (x_a^T S x_b - \delta_{ab} \mathrm{Tr} S)/\sqrt d`. A layer has logits
    :math:`x_a \Theta x_b^T` and cannot subtract the trace from its diagonal. But h is linear in S, and where the trace
    is zero nothing is subtracted: for :math:`S_0 = S - (\mathrm{Tr} S/d) I` the layer with
    :math:`\Theta = \beta S_0/\sqrt d` and W = I has exactly the attention matrices softmax(beta h(S_0)). (Left in, the
    trace would add sqrt(rho d) to the diagonal logits of a positive S: every token would attend to itself.)
    """

    n_heads: ClassVar[int] = 1

    @functools.cached_property
    def layer(self) -> Any:
        """The multi-head task."""
        S = self.task.S - np.trace(self.task.S) / self.d * np.eye(self.d)
        # one head: the leading axis
        theta, w = self.task.beta * S[None] / np.sqrt(self.d), np.eye(self.d)[None]
        options = {"tokens_law": "gaussian", "planted": (theta, w)}
        # systems do not import each other: the lab reaches the other one by the registry
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
        # the indices of the identity, times sqrt(d)
        gram = tokens @ tokens.swapaxes(1, 2) - d * np.eye(k)
        # log A is the logits up to a constant in each row, which the softmax removes
        outputs = softmax(log_A + beta * np.sqrt(rho) * gram / np.sqrt(d), axis=-1)
        self.estimator_ = clone(self.estimator).fit(tokens, outputs)
        # the shift by sqrt(rho) has only moved the trace, which is taken out below
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
    # rounding may leave entries that are not positive
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


def _weight(**law: Any) -> ReadOut:
    """One attention weight. The weight and not its logit: it is bounded, the logit is a form with heavy tails."""
    return ReadOut(registry.tasks()["aim.Task"](**law))


def _layer(**law: Any) -> Layer:
    return Layer(registry.tasks()["aim.Task"](**law))


def _amp(task: Any, n: int) -> Any:
    double = Compute(dtype="float64")
    return _indexed(task, "aim.AMP", "rho", tol=1e-12, max_iter=400, compute=double)


def _tied(task: Any, n: int) -> Any:
    return _indexed(task, "aim.GradientDescent", "width", n_starts=STARTS)


def _indexed(task: Any, name: str, size: str, **options: Any) -> Any:
    """A learner of aim that knows the law behind a layer."""
    if not isinstance(task, Layer):
        raise Declined("not a tied head")
    law = task.task
    learner: Any = registry.learners()[name]
    return IndexedLayer(learner(channel=law.channel, **{size: getattr(law, size)}, **options), law.rho, law.beta)


_LAYER_SIZES = {"quick": (60, 120, 240, 480, 960), "paper": (240, 480, 960, 1920, 3840)}
TASKS = {
    "aim.weight": Entry(_weight, {"d": 16, "rho": 0.5}, {"d": 32}),
    "aim.layer": Entry(_layer, {"d": 24, "rho": 0.5}, {"d": 48}, _LAYER_SIZES),
}
LEARNERS = {"AMP": Forms(None, _amp), "tied": Forms(None, _tied)}
