"""What the learners share: token checking, the choice of solver, losses, scoring."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import seed_sequence
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import finite_array, nonnegative, one_of, positive
from attnlab.rfa.backend import Features, backend
from attnlab.rfa.features import FeatureMap
from attnlab.rfa.solvers.cg import preconditioned_cg
from attnlab.rfa.solvers.erm import LOSSES, on_ball, penalised
from attnlab.rfa.solvers.path import RidgePath, ridge_path
from attnlab.rfa.solvers.ridge import apply, dual, primal, pull_back, whole_gram

SOLVERS = ("auto", "primal", "dual", "streamed", "cg")
# Features up to this many bytes are kept between the Gram matrix and the coefficients; beyond, they are computed twice.
KEEP_BYTES = 600 * 2**20


def draw_seed(random_state: Any) -> int:
    """One integer seed of the frozen weights, stored by the fitted learner, from anything that seeds."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(seed_sequence(random_state).generate_state(1, np.uint64)[0] >> np.uint64(1))


def check_ridge(ridge: Any) -> np.ndarray:
    """One ridge or several candidates, as an array."""
    values = np.atleast_1d(np.asarray(ridge, dtype=object)).ravel()
    if values.size == 0:
        raise ValueError("ridge must be a number or a sequence of candidates, got an empty sequence")
    return np.array([nonnegative("ridge", value) for value in values])


class KernelMachine(RegressorMixin, BaseEstimator, ABC):
    """Token checking and scoring of all learners of this system."""

    n_tokens: int | None
    loss: str
    tokens_: int
    d_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _tokens(self, X: Any, *, reset: bool) -> np.ndarray:
        """X as (n, tokens, d); with ``n_tokens`` set also from the flat form (n, tokens * d)."""
        if self.n_tokens is not None and getattr(X, "ndim", 2) != 3:
            X = validate_data(self, X, dtype="numeric", reset=reset)
        elif reset and hasattr(self, "n_features_in_"):
            del self.n_features_in_
        # A kernel fitted to sets of different sizes has no fixed number of tokens; it is stored as zero.
        expected, d = (None, None) if reset else (self.tokens_ or None, self.d_)
        tokens = check_tokens(X, flat_tokens=self.n_tokens, n_tokens=expected, d=d)
        if reset:
            self.tokens_, self.d_ = tokens.shape[1], tokens.shape[2]
        return tokens

    def _targets(self, y: Any, n: int, *, per_token: int | None = None) -> np.ndarray:
        """y as (n, k), or (n * tokens, k) when every token has an output."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = np.asarray(y)
        y = finite_array("y", y.astype(np.float64) if y.dtype == object else y)
        if per_token is None:
            if y.ndim not in (1, 2) or len(y) != n:
                raise ValueError(f"y must have shape ({n},) or ({n}, k), got {y.shape}")
            self.output_shape_ = list(y.shape[1:])
            Y = y.reshape(n, -1)
        else:
            if y.ndim not in (2, 3) or y.shape[:2] != (n, per_token):
                raise ValueError(
                    f"self-attention needs y of shape ({n}, {per_token}) or ({n}, {per_token}, k), got {y.shape}"
                )
            self.output_shape_ = list(y.shape[2:])
            Y = y.reshape(n * per_token, -1)
        if self.loss == "logistic" and not np.isin(Y, (-1.0, 1.0)).all():
            raise ValueError("loss='logistic' needs y in {-1, +1}")
        return np.asarray(Y, dtype=np.float64)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictions; with the logistic loss the share of right signs."""
        f = np.asarray(self.predict(X))
        if self.loss != "logistic":
            flat = (len(f), -1)
            return float(r2_score(np.reshape(y, flat), f.reshape(flat), sample_weight=sample_weight))
        weights = None if sample_weight is None else np.asarray(sample_weight)
        right = np.sign(f) == np.asarray(y)
        return float(np.average(right.reshape(len(right), -1).mean(axis=1), weights=weights))

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predictions."""


class RidgeOnFeatures(KernelMachine):
    """A linear model on a random feature map, fitted by ridge regression or a penalised convex loss."""

    ridge: Any
    solver: str
    norm_bound: float | None
    dtype: str
    device: str
    random_state: Any

    @abstractmethod
    def _feature_map(self) -> FeatureMap:
        """The map of the fitted learner, from ``seed_``, ``d_``, ``tokens_``."""

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        """Tokens as the feature map sees them."""
        return X

    def _features(self, X: np.ndarray) -> Features:
        device = backend(self.device, self.dtype)
        return Features(self._feature_map(), device.put(self._inputs(X)), device)

    def _prepare(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Whatever a learner reads off the data before its weights are drawn."""

    def _per_token(self) -> int | None:
        return None

    def fit(self, X: Any, y: Any) -> RidgeOnFeatures:
        """Fit the coefficients of the frozen features to ``y`` (n,) or (n, k); all outputs share one factorisation."""
        one_of("solver", self.solver, SOLVERS)
        one_of("loss", self.loss, LOSSES)
        ridges = check_ridge(self.ridge)
        tokens = self._tokens(X, reset=True)
        Y = self._targets(y, len(tokens), per_token=self._per_token())
        self.seed_ = draw_seed(self.random_state)
        self._prepare(tokens, Y)
        self.coef_ = self._solve(self._features(tokens), Y, ridges)
        return self

    def _solve(self, features: Features, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
        """theta in feature order."""
        self.converged_, self.n_iter_ = True, 1
        self.path_: RidgePath | None = None
        if self.loss != "squared" or self.norm_bound is not None or len(ridges) > 1:
            return self._solve_from_gram(features, Y, ridges)
        self.ridge_ = float(ridges[0])
        n, width = features.shape
        solver = self.solver
        if solver == "auto":
            solver = "primal" if width <= n else "dual"
        if solver == "primal":
            if self.ridge_ > 0 or width <= n:
                return primal(features, Y, self.ridge_)
            solver = "dual"
        if solver == "cg":
            blocks = list(features)
            solution = preconditioned_cg(blocks, Y, self.ridge_, features.backend)
            self.converged_, self.n_iter_ = solution.converged, solution.n_iter
            return pull_back(blocks, solution.value, features.backend)
        keep = solver == "dual" and n * width * np.dtype(self.dtype).itemsize <= KEEP_BYTES
        return dual(features, Y, self.ridge_, keep=keep)

    def _solve_from_gram(self, features: Features, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
        G = np.asarray(whole_gram(features))
        fitted = fit_gram(G, Y, ridges, self.loss, self.norm_bound)
        self.ridge_, self.converged_, self.n_iter_, self.path_ = fitted[1:]
        return pull_back(features.passing(), fitted[0], features.backend)

    def predict(self, X: Any) -> np.ndarray:
        """f(X), of the shape of y."""
        check_is_fitted(self, "coef_")
        tokens = self._tokens(X, reset=False)
        f = apply(self._features(tokens), self.coef_)
        per_token = self._per_token()
        return f.reshape(len(tokens), *([] if per_token is None else [per_token]), *self.output_shape_)

    def features(self, X: Any) -> np.ndarray:
        """The features phi(X), ``(n, P)``, with coefficients in ``coef_``."""
        check_is_fitted(self, "coef_")
        return np.concatenate([np.asarray(b) for b in self._features(self._tokens(X, reset=False))], axis=1)

    @property
    def norm_(self) -> float:
        """|theta|, the norm that bounds and penalties act on (largest over outputs)."""
        check_is_fitted(self, "coef_")
        return float(np.max(np.linalg.norm(self.coef_, axis=0)))


def fit_gram(
    G: np.ndarray, Y: np.ndarray, ridges: np.ndarray, loss: str, norm_bound: float | None
) -> tuple[np.ndarray, float, bool, int, RidgePath | None]:
    """alpha, ridge, converged, iterations and path of the problems that need the whole Gram matrix (lower triangle)."""
    if len(ridges) > 1:
        if loss != "squared" or norm_bound is not None:
            raise ValueError("several ridges are chosen by leave-one-out for loss='squared' without norm_bound only")
        path = ridge_path(G, Y, ridges)
        best = path.best()
        return path.alpha[best], float(ridges[best]), True, 1, path
    K, onto = _resolved(G)
    ridge = float(ridges[0])
    if norm_bound is not None:
        radius = positive("norm_bound", norm_bound)
        solutions = [on_ball(K, y, radius, loss, onto) for y in Y.T]
    else:
        solutions = [penalised(K, y, max(ridge, float(np.finfo(np.float32).eps)), loss) for y in Y.T]
    alpha = onto(np.stack([s.value for s in solutions], axis=1))
    return alpha, ridge, all(s.converged for s in solutions), max(s.n_iter for s in solutions), None


def _resolved(G: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The symmetric Gram matrix without eigenvalues that are rounding, and the projection onto what is left.

    With fewer features than examples most eigenvalues are rounding, some of them negative: coefficients along them cost
    nothing in the norm of the matrix and a great deal in that of the features.
    """
    K = np.tril(G.astype(np.float64)) + np.tril(G.astype(np.float64), -1).T
    # An error of relative size eps in every entry, at its worst.
    floor = np.sqrt(len(K)) * np.finfo(G.dtype).eps * float(np.linalg.norm(K))
    try:
        linalg.cholesky(K - floor * np.eye(len(K)), lower=True, check_finite=False)
        return K, lambda alpha: alpha
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(K)
        U = vectors[:, values > floor]
        return (U * values[values > floor]) @ U.T, lambda alpha: np.asarray(U @ (U.T @ alpha))
