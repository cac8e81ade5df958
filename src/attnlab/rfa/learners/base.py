"""What the learners share: token checking, options of the machine, scoring, and predictions along nested samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import validate_data

from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute
from attnlab.common.seeds import Seed, branch
from attnlab.common.stopping import ended
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import finite_array, integer, nonnegative, one_of
from attnlab.rfa.solvers.erm import LOSSES, NormBall
from attnlab.rfa.solvers.gram_fit import GramFit


def draw_seed(seed: Seed, *tags: str | int) -> int:
    """One integer seed of frozen weights, stored by the fitted learner, from anything that seeds."""
    # 63 bits fit a signed integer.
    return int(branch(seed, "learner", "rfa", *tags).generate_state(1, np.uint64)[0] >> np.uint64(1))


def check_ridge(ridge: Any) -> np.ndarray | NormBall:
    """One ridge or several candidates, as an array; or the ball that stands in its place."""
    if isinstance(ridge, NormBall):
        return ridge
    # As objects, so that the error of the check names the value that was given.
    values = np.atleast_1d(np.asarray(ridge, dtype=object)).ravel()
    if values.size == 0:
        raise ValueError("ridge must be a number or a sequence of candidates, got an empty sequence")
    return np.array([nonnegative("ridge", value) for value in values])


class KernelMachine(RegressorMixin, BaseEstimator, ABC):
    """Token checking, machine options and scoring of all learners of this system."""

    # Nothing of the law is told to these learners.
    needs: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ("device", "dtype", "precision", "devices", "memory")
    n_tokens: int | None
    loss: str
    ridge: Any
    compute: Compute | None
    tokens_: int
    d_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @abstractmethod
    def fit(self, X: Any, y: Any) -> KernelMachine:
        """Fit to examples."""

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predictions."""

    @property
    def _machine(self) -> Compute:
        if self.compute is not None and not isinstance(self.compute, Compute):
            raise TypeError(f"compute must be a Compute or None, got {self.compute!r}")
        return (self.compute or Compute()).supports(self, *self.options)

    @property
    def _dtype(self) -> str:
        """float32 is accurate enough for features and kernels (the solve is in float64)."""
        return "float32" if self._machine.dtype == "auto" else self._machine.dtype

    def _tokens(self, X: Any, *, reset: bool) -> np.ndarray:
        """X as (n, tokens, d); with ``n_tokens`` set also from the flat form (n, tokens * d)."""
        if self.n_tokens is not None and getattr(X, "ndim", 2) != 3:
            X = validate_data(self, X, dtype="numeric", reset=reset)
        elif reset and hasattr(self, "n_features_in_"):
            # Left by an earlier fit to the flat form, whose width it holds.
            del self.n_features_in_
        # A kernel fitted to sets of different sizes has no fixed number of tokens; it is stored as zero.
        expected, d = (None, None) if reset else (self.tokens_ or None, self.d_)
        tokens = check_tokens(X, flat_tokens=self.n_tokens, n_tokens=expected, d=d)
        if reset:
            self.tokens_, self.d_ = tokens.shape[1], tokens.shape[2]
        return tokens

    def _targets(self, y: Any, n: int) -> np.ndarray:
        """y as (n, k)."""
        y = self._numbers(y)
        if y.ndim not in (1, 2) or len(y) != n:
            raise ValueError(f"y must have shape ({n},) or ({n}, k), got {y.shape}")
        self.output_shape_ = list(y.shape[1:])
        return np.asarray(y.reshape(n, -1), dtype=np.float64)

    def _numbers(self, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = np.asarray(y)
        numbers = finite_array("y", y.astype(np.float64) if y.dtype == object else y)
        if one_of("loss", self.loss, LOSSES) == "logistic" and not np.isin(numbers, (-1.0, 1.0)).all():
            raise ValueError("loss='logistic' needs y in {-1, +1}")
        return numbers

    def _is_plain(self) -> bool:
        """Squared loss with one ridge: a linear system."""
        ridges = check_ridge(self.ridge)
        return self.loss == "squared" and isinstance(ridges, np.ndarray) and len(ridges) == 1

    def _one_ridge(self) -> float:
        """The ridge of a linear system: a number, or the only one of a sequence."""
        return float(np.ravel(self.ridge)[0])

    def _ended(self, fitted: GramFit) -> np.ndarray:
        """Store what the solver did; the dual coefficients."""
        self.ridge_, self.path_ = fitted.ridge, fitted.path
        ended(self, converged=fitted.converged, reason=fitted.reason, n_iter=fitted.n_iter)
        return fitted.alpha

    def predict_path(self, X: Any, y: Any, X_test: Any, sizes: Sequence[int]) -> np.ndarray:
        """Predictions at ``X_test`` of this learner fitted to the first n examples, for each n of ``sizes``.

        The same as ``clone(self).fit(X[:n], y[:n]).predict(X_test)``, stacked along a first axis; where the fits can
        share a Gram matrix it is formed once, for the largest n. The learner itself is not fitted.
        """
        for n in sizes:
            integer("sizes", n, low=1, high=len(X))
        if len(sizes) == 0:
            raise ValueError("sizes must hold at least one sample size")
        shared: np.ndarray | None = clone(self)._shared_path(X, y, X_test, sizes) if self._is_plain() else None
        if shared is not None:
            return shared
        return np.stack([clone(self).fit(X[:n], y[:n]).predict(X_test) for n in sizes])

    def _shared_path(self, X: Any, y: Any, X_test: Any, sizes: Sequence[int]) -> np.ndarray | None:
        """The path from one Gram matrix; None where the features depend on the sample."""
        return None

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictions; with the logistic loss the share of right signs."""
        f = np.asarray(self.predict(X))
        if self.loss != "logistic":
            flat = (len(f), -1)
            return float(r2_score(np.reshape(y, flat), f.reshape(flat), sample_weight=sample_weight))
        weights = None if sample_weight is None else np.asarray(sample_weight)
        right = np.sign(f) == np.asarray(y)
        return float(np.average(right.reshape(len(right), -1).mean(axis=1), weights=weights))
