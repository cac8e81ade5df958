"""Softmax, linear and softplus attention by regularised empirical risk minimisation, as in arXiv:2509.21936."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from attnlab.common.precision import float64
from attnlab.common.seeds import generator, seed_sequence, spawn
from attnlab.common.validation import finite_array, integer, nonnegative, one_of, positive
from attnlab.slr.activations import weights
from attnlab.slr.learners.tokens import TokenRegressor, present, random_state_seed

EPS = float(np.finfo(np.float64).eps)
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


class _Attention(TokenRegressor):
    """Minimises the regularised empirical risk over k and v; subclasses name the weights."""

    _kind: ClassVar[str]

    def __init__(
        self,
        ridge_k: float = 1.0,
        ridge_v: float = 1.0,
        *,
        solver: str = "lbfgs",
        init: Any = None,
        n_restarts: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-6,
        learning_rate: float = 0.05,
        random_state: Any = None,
    ):
        self.ridge_k = ridge_k
        self.ridge_v = ridge_v
        self.solver = solver
        self.init = init
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> _Attention:
        """Minimise from ``init``, or from ``n_restarts`` random starts of which the best is kept."""
        solve = {"lbfgs": self._lbfgs, "adam": self._adam}[one_of("solver", self.solver, ("lbfgs", "adam"))]
        nonnegative("ridge_k", self.ridge_k), nonnegative("ridge_v", self.ridge_v)
        (
            integer("max_iter", self.max_iter, low=1),
            positive("tol", self.tol),
            positive("learning_rate", self.learning_rate),
        )
        X, y = self._check_fit(X, y)
        objective = self._objective(X, y)
        runs = [solve(objective, start) for start in self._starts()]
        best, self.objective_, self.converged_, self.n_iter_ = min(runs, key=lambda run: run[1])
        self.k_, self.v_ = np.split(best, 2)
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations without reaching tol={self.tol:g}; "
                "raise max_iter or the ridges",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """Weights times values."""
        X = self._check_predict(X)
        chi, z = np.moveaxis(X @ np.stack([self.k_, self.v_], axis=1) / np.sqrt(self.d_in_), 2, 0)
        return _output(self._kind, chi, z, present(X))

    def _starts(self) -> list[np.ndarray]:
        if self.init is not None:
            return [finite_array("init", self.init, shape=(2, self.d_in_)).ravel().astype(np.float64)]
        root = seed_sequence(random_state_seed(self.random_state))
        seeds = spawn(root, integer("n_restarts", self.n_restarts, low=1))
        # entries of a tenth: small against the planted ones, large enough to leave the saddle at zero at once
        return [0.1 * generator(seed).standard_normal(2 * self.d_in_) for seed in seeds]

    def _objective(self, X: np.ndarray, y: np.ndarray) -> Objective:
        r"""Value and gradient of :math:`\tfrac12\sum(y - f)^2 + \tfrac12 r_k|k|^2 + \tfrac12 r_v|v|^2`."""
        n, L, d = X.shape
        flat, mask = X.reshape(n * L, d), present(X)
        ridges = np.repeat([float(self.ridge_k), float(self.ridge_v)], d)

        def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
            fields = (flat @ w.reshape(2, d).T / np.sqrt(d)).reshape(n, L, 2)
            loss, slope = _loss(self._kind, fields, y, mask)
            gradient = (slope.reshape(n * L, 2).T @ flat / np.sqrt(d)).ravel() + ridges * w
            return loss + 0.5 * float(ridges @ w**2), gradient

        return objective

    def _lbfgs(self, objective: Objective, start: np.ndarray) -> tuple[np.ndarray, float, bool, int]:
        x, value, report = optimize.fmin_l_bfgs_b(
            objective,
            start,
            maxiter=self.max_iter,
            maxfun=2 * self.max_iter,
            factr=1e-3 * self.tol / EPS,
            pgtol=self.tol,
        )
        return x, float(value), report["warnflag"] == 0, int(report["nit"])

    def _adam(self, objective: Objective, start: np.ndarray) -> tuple[np.ndarray, float, bool, int]:
        """Adam with a cosine schedule; converged when the gradient, relative to the first, is below tol."""
        w, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
        first = size = np.inf
        for t in range(1, self.max_iter + 1):
            _, slope = objective(w)
            size = float(np.abs(slope).max())
            first = size if t == 1 else first
            if size <= self.tol * max(first, 1.0):
                break
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            rate = self.learning_rate * 0.5 * (1 + np.cos(np.pi * t / (self.max_iter + 1)))
            w = w - rate * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        # Adam's last steps are as small as the schedule makes them: a thousandth of the first gradient is its best
        return w, objective(w)[0], size <= max(self.tol, 1e-3) * max(first, 1.0), t


_DOC = r"""Attention with {weights}, trained on the empirical risk.

    .. math:: \min_{{k, v}}\ \tfrac12\sum_i\big(y_i - \sigma(X_ik/\sqrt d)\cdot X_iv/\sqrt d\big)^2
              + \tfrac{{r_k}}{{2}}|k|^2 + \tfrac{{r_v}}{{2}}|v|^2

    Parameters
    ----------
    ridge_k, ridge_v : the penalties r_k, r_v.
    solver : ``"lbfgs"``, or ``"adam"`` on the whole data with a cosine schedule from ``learning_rate``.
    init : None draws small random starts; or a pair (k, v).
    n_restarts : random starts, the lowest objective is kept.
    max_iter, tol : iterations allowed, and the tolerance of the solver.
    random_state : seed of the starts.

    Attributes
    ----------
    k_, v_ : (d,), fitted query and value; entries of order one match planted vectors of norm sqrt(d).
    objective_ : the objective reached.
    converged_, n_iter_ : whether the solver met its tolerance, and its iterations.

    Source: arXiv:2509.21936, section 5.
    """


class SoftmaxAttention(_Attention):  # noqa: D101
    __doc__ = _DOC.format(weights=r"weights :math:`e^{\chi_l}/\sum_j e^{\chi_j}`")
    _kind = "softmax"


class LinearAttention(_Attention):  # noqa: D101
    __doc__ = _DOC.format(weights=r"weights :math:`1 + \chi_l`")
    _kind = "linear"


class SoftplusAttention(_Attention):  # noqa: D101
    __doc__ = _DOC.format(weights=r"weights :math:`\ln(1 + e^{\chi_l})/\sum_j\ln(1 + e^{\chi_j})`")
    _kind = "softplus"


@float64
def _loss(kind: str, fields: np.ndarray, y: np.ndarray, mask: np.ndarray) -> tuple[float, np.ndarray]:
    value, slope = _compiled()[0](kind, fields, y, mask)
    return float(value), np.asarray(slope)


@float64
def _output(kind: str, chi: np.ndarray, z: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.asarray(_compiled()[1](kind, chi, z, mask))


@functools.cache
def _compiled() -> tuple[Any, Any]:
    """Half the squared error with its gradient in the fields, and the output; the products with X stay in BLAS."""
    import jax
    import jax.numpy as jnp

    def output(kind: str, chi: Any, z: Any, mask: Any) -> Any:
        return jnp.sum(weights(kind, chi, mask) * z, axis=1)

    def loss(kind: str, fields: Any, y: Any, mask: Any) -> Any:
        return 0.5 * jnp.sum((output(kind, fields[..., 0], fields[..., 1], mask) - y) ** 2)

    return jax.jit(jax.value_and_grad(loss, 1), static_argnums=0), jax.jit(output, static_argnums=0)
