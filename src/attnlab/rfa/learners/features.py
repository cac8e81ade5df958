"""Linear models on random features: drawing them, and the choice of a solver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.common.compute import Compute
from attnlab.common.validation import one_of
from attnlab.rfa.backend import Features, backend
from attnlab.rfa.features import FeatureMap
from attnlab.rfa.learners.base import KernelMachine, check_ridge, draw_seed
from attnlab.rfa.solvers.cg import preconditioned_cg
from attnlab.rfa.solvers.erm import NormBall
from attnlab.rfa.solvers.gram_fit import GramFit, fit_gram
from attnlab.rfa.solvers.ridge import apply, dual, nested_predictions, primal, pull_back, whole_gram

SOLVERS = ("auto", "primal", "dual", "streamed", "cg")
# Features up to this many bytes are kept between the Gram matrix and the coefficients; beyond, they are computed twice.
KEEP_BYTES = 600 * 2**20


class RidgeOnFeatures(KernelMachine):
    """A linear model on a random feature map, fitted by ridge regression or a penalised convex loss."""

    solver: str
    random_state: Any
    compute: Compute | None

    @abstractmethod
    def _feature_map(self) -> FeatureMap:
        """The map of the fitted learner, from ``seed_``, ``d_``, ``tokens_``."""

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        """Tokens as the feature map sees them."""
        return X

    def _features(self, X: np.ndarray) -> Features:
        device = backend(self._machine)
        return Features(self._feature_map(), device.put(self._inputs(X)), device)

    def _prepare(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Whatever a learner reads off the data before its weights are drawn."""

    def _draw(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check parameters and data, draw the weights; tokens and targets (n, k)."""
        one_of("solver", self.solver, SOLVERS)
        check_ridge(self.ridge)
        tokens = self._tokens(X, reset=True)
        Y = self._targets(y, len(tokens))
        self.seed_ = draw_seed(self.random_state)
        self._prepare(tokens, Y)
        return tokens, Y

    def fit(self, X: Any, y: Any) -> RidgeOnFeatures:
        """Fit the coefficients of the frozen features to ``y`` (n,) or (n, k); all outputs share one factorisation."""
        tokens, Y = self._draw(X, y)
        features, ridge = self._features(tokens), check_ridge(self.ridge)
        if self._is_plain():
            assert isinstance(ridge, np.ndarray)
            self.coef_ = self._solve(features, Y, float(ridge[0]))
        else:
            self.coef_ = self._solve_from_gram(features, Y, ridge)
        return self

    def _solve(self, features: Features, Y: np.ndarray, ridge: float) -> np.ndarray:
        """theta in feature order, of a linear system."""
        (n, width), solver = features.shape, self.solver
        if solver == "auto":
            # The smaller of the two systems.
            solver = "primal" if width <= n else "dual"
        # Phi^T Phi is singular then; the n x n system gives the solution of least norm.
        if solver == "primal" and ridge == 0 and width > n:
            solver = "dual"
        if solver == "cg":
            return self._solve_by_cg(features, Y, ridge)
        # Nothing iterates from here on: only the ridge and "closed form" are recorded.
        self._ended(GramFit(np.empty(0), ridge))
        if solver == "primal":
            return primal(features, Y, ridge)
        return dual(features, Y, ridge, keep=solver == "dual" and self._keeps(features))

    def _solve_by_cg(self, features: Features, Y: np.ndarray, ridge: float) -> np.ndarray:
        n, width = features.shape
        if ridge == 0 and width < n:
            raise ValueError(
                "solver='cg' solves (Phi Phi^T + n ridge I) alpha = y, which is singular at ridge=0 with "
                f"{width} features for {n} examples; set ridge > 0, more features, or solver='primal'"
            )
        # Every step needs all features again: they stay in memory.
        blocks = list(features)
        found = preconditioned_cg(blocks, Y, ridge, features.backend)
        reason = "tolerance reached" if found.converged else "max_iter reached"
        self._ended(GramFit(found.value, ridge, found.converged, found.n_iter, reason))
        return pull_back(blocks, found.value, features.backend)

    def _solve_from_gram(self, features: Features, Y: np.ndarray, ridge: np.ndarray | NormBall) -> np.ndarray:
        alpha = self._ended(fit_gram(np.asarray(whole_gram(features)), Y, ridge, self.loss))
        return pull_back(features.passing(), alpha, features.backend)

    def _keeps(self, features: Features) -> bool:
        limit = KEEP_BYTES if self._machine.memory is None else self._machine.memory
        return features.shape[0] * features.shape[1] * np.dtype(self._dtype).itemsize <= limit

    def _shared_path(self, X: Any, y: Any, X_test: Any, sizes: Sequence[int]) -> np.ndarray | None:
        if self._depends_on_sample() or self.solver == "cg":
            return None
        tokens, Y = self._draw(X[: max(sizes)], y[: max(sizes)])
        features = self._features(np.concatenate([tokens, self._tokens(X_test, reset=False)]))
        # Few features: the primal systems of single fits are smaller than this Gram matrix.
        if features.shape[1] <= min(sizes):
            return None
        f = nested_predictions(features, Y, sizes, self._one_ridge(), self._keeps(features))
        return self._shaped(f.reshape(len(f), len(sizes), -1).swapaxes(0, 1))

    def _depends_on_sample(self) -> bool:
        """Whether the features are not fixed before the examples are seen."""
        return False

    def _shaped(self, f: np.ndarray) -> np.ndarray:
        """(..., n, k) with outputs of the shape of y."""
        return f.reshape(*f.shape[:-1], *self.output_shape_)

    def predict(self, X: Any) -> np.ndarray:
        """f(X), of the shape of y."""
        check_is_fitted(self, "coef_")
        return self._shaped(apply(self._features(self._tokens(X, reset=False)), self.coef_))

    def features(self, X: Any) -> np.ndarray:
        """The features phi(X), ``(n, P)``, with coefficients in ``coef_``."""
        check_is_fitted(self, "coef_")
        return np.concatenate([np.asarray(b) for b in self._features(self._tokens(X, reset=False))], axis=1)

    @property
    def norm_(self) -> float:
        """|theta|, the norm that bounds and penalties act on (largest over outputs)."""
        check_is_fitted(self, "coef_")
        return float(np.max(np.linalg.norm(self.coef_, axis=0)))
