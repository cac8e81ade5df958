"""Attention with any activation by regularised empirical risk minimisation, as in arXiv:2509.21936."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import optimize

from attnlab.common.precision import float64
from attnlab.common.seeds import branch, seed_sequence, spawn, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import finite_array, integer, nonnegative, one_of, positive
from attnlab.slr.activations import Activation, Linear, Softmax, Softplus, activation_of
from attnlab.slr.learners.tokens import TokenRegressor, present

EPS = float(np.finfo(np.float64).eps)
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Run(NamedTuple):
    """One start followed to its end."""

    w: np.ndarray
    objective: float
    converged: bool
    n_iter: int


class _Attention(TokenRegressor):
    """Minimises the regularised empirical risk over k and v; subclasses say which activation."""

    activation: Any
    _special = False

    def __init__(
        self,
        ridge_k: Any = 1.0,
        ridge_v: Any = 1.0,
        *,
        solver: Any = "lbfgs",
        step: Any = 0.05,
        n_starts: Any = 1,
        max_iter: Any = 1000,
        tol: Any = 1e-6,
        n_tokens: Any = None,
        random_state: Any = None,
    ):
        self.ridge_k = ridge_k
        self.ridge_v = ridge_v
        self.solver = solver
        self.step = step
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.n_tokens = n_tokens
        self.random_state = random_state

    def fit(self, X: Any, y: Any, init: Any = None) -> _Attention:
        """Minimise from the pair ``init`` = (k, v), or from ``n_starts`` random starts of which the best is kept."""
        solve = {"lbfgs": self._lbfgs, "adam": self._adam}[one_of("solver", self.solver, ("lbfgs", "adam"))]
        nonnegative("ridge_k", self.ridge_k), nonnegative("ridge_v", self.ridge_v)
        positive("tol", self.tol), positive("step", self.step)
        max_iter = integer("max_iter", self.max_iter, low=1)
        X, y = self._check_fit(X, y)
        objective = self._objective(X, y)
        best = min((solve(objective, start) for start in self._starts(init)), key=lambda run: run.objective)
        self.k_, self.v_ = np.split(best.w, 2)
        self.objective_ = best.objective
        # From the objective, since a prediction would compile once more for this number of sequences.
        penalty = float(self.ridge_k) * self.k_ @ self.k_ + float(self.ridge_v) * self.v_ @ self.v_
        # A fit without residual: the difference may be negative by rounding.
        self.loss_ = max(0.0, float(2 * best.objective - penalty) / len(y))
        cut = "max_iter reached" if best.n_iter >= max_iter else "line search failed"
        reason = "tolerance reached" if best.converged else cut
        ended(self, converged=best.converged, reason=reason, n_iter=best.n_iter)
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        """Weights times values."""
        X = self._check_predict(X)
        chi, z = np.moveaxis(X @ np.stack([self.k_, self.v_], axis=1) / np.sqrt(self.d_in_), 2, 0)
        return _output(activation_of(self.activation), chi, z, present(X))

    def _starts(self, init: Any) -> list[np.ndarray]:
        n_starts = integer("n_starts", self.n_starts, low=1)
        if init is not None:
            return [finite_array("init", init, shape=(2, self.d_in_)).ravel().astype(np.float64)]
        seeds = spawn(branch(seed_sequence(self.random_state), "learner", "slr"), n_starts)
        # entries of a tenth: small against the planted ones, large enough to leave the saddle at zero at once
        return [0.1 * stream(seed, "start").standard_normal(2 * self.d_in_) for seed in seeds]

    def _objective(self, X: np.ndarray, y: np.ndarray) -> Objective:
        r"""Value and gradient of :math:`\tfrac12\sum(y - f)^2 + \tfrac12 r_k|k|^2 + \tfrac12 r_v|v|^2`."""
        n, L, d = X.shape
        flat, mask = X.reshape(n * L, d), present(X)
        ridges = np.repeat([float(self.ridge_k), float(self.ridge_v)], d)
        activation = activation_of(self.activation)

        def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
            fields = (flat @ w.reshape(2, d).T / np.sqrt(d)).reshape(n, L, 2)
            loss, slope = _loss(activation, fields, y, mask)
            gradient = (slope.reshape(n * L, 2).T @ flat / np.sqrt(d)).ravel() + ridges * w
            return loss + 0.5 * float(ridges @ w**2), gradient

        return objective

    def _lbfgs(self, objective: Objective, start: np.ndarray) -> Run:
        x, value, report = optimize.fmin_l_bfgs_b(
            objective,
            start,
            maxiter=self.max_iter,
            maxfun=2 * self.max_iter,
            # SciPy stops at a relative decrease of factr * EPS. A thousandth of tol: the objective is flat where the
            # gradient still is not.
            factr=1e-3 * self.tol / EPS,
            pgtol=self.tol,
        )
        return Run(x, float(value), report["warnflag"] == 0, int(report["nit"]))

    def _adam(self, objective: Objective, start: np.ndarray) -> Run:
        """Adam with a cosine schedule; converged when the largest gradient entry is ``tol`` times the first one's."""
        w, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
        first = size = np.inf
        for t in range(1, self.max_iter + 1):
            _, slope = objective(w)
            # Looked at before the step: a w that has converged is returned as it is.
            size = float(np.abs(slope).max())
            first = size if t == 1 else first
            if size <= self.tol * max(first, 1.0):
                break
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            # max_iter + 1: the cosine is zero one step after the last, so that every step moves.
            rate = self.step * 0.5 * (1 + np.cos(np.pi * t / (self.max_iter + 1)))
            # Both averages start at zero; the divisors take that out.
            w = w - rate * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        return Run(w, objective(w)[0], size <= self.tol * max(first, 1.0), t)


class Attention(_Attention):
    r"""Attention with weights of any activation, trained on the empirical risk.

    .. math:: \min_{k, v}\ \tfrac12\sum_i\big(y_i - \sigma(X_ik/\sqrt d)\cdot X_iv/\sqrt d\big)^2
              + \tfrac{r_k}{2}|k|^2 + \tfrac{r_v}{2}|v|^2

    Parameters
    ----------
    activation : ``"softmax"``, ``"linear"``, ``"softplus"``, ``"erf"``, ``"raised_erf"``, ``"offset_erf"``, or an
        object of :mod:`attnlab.slr.activations`, also of your own.
    ridge_k, ridge_v : the penalties r_k, r_v.
    solver : ``"lbfgs"``, or ``"adam"`` on the whole data with a cosine schedule from ``step``.
    step : the first step of Adam.
    n_starts : random starts, the lowest objective is kept; ``fit`` takes a pair (k, v) as ``init`` instead.
    max_iter, tol : iterations allowed, and the tolerance of the solver.
    n_tokens : tokens of the flat form ``X (n, n_tokens * d)``.
    random_state : seed of the starts.

    Attributes
    ----------
    k_, v_ : (d,), fitted query and value; entries of order one match planted vectors of norm sqrt(d).
    objective_, loss_ : the objective reached, and the mean square error on the training data.
    converged_, n_iter_, stop_reason_ : whether the solver met its tolerance, its iterations, and why it stopped.

    Source: arXiv:2509.21936, section 5.
    """

    def __init__(
        self,
        activation: Any = "softmax",
        ridge_k: Any = 1.0,
        ridge_v: Any = 1.0,
        *,
        solver: Any = "lbfgs",
        step: Any = 0.05,
        n_starts: Any = 1,
        max_iter: Any = 1000,
        tol: Any = 1e-6,
        n_tokens: Any = None,
        random_state: Any = None,
    ):
        super().__init__(
            ridge_k,
            ridge_v,
            solver=solver,
            step=step,
            n_starts=n_starts,
            max_iter=max_iter,
            tol=tol,
            n_tokens=n_tokens,
            random_state=random_state,
        )
        self.activation = activation


class SoftmaxAttention(_Attention):
    r"""Attention with the softmax of the scores as weights, trained on the empirical risk.

    .. math:: e^{\chi_l}\big/\sum_j e^{\chi_j}

    Parameters and attributes as in :class:`Attention`.
    """

    activation = Softmax()


class LinearAttention(_Attention):
    r"""Attention with weights that are linear in the scores, :math:`1 + \chi`.

    Parameters and attributes as in :class:`Attention`.
    """

    activation = Linear()


class SoftplusAttention(_Attention):
    r"""Attention with the normalised softplus of the scores as weights, trained on the empirical risk.

    .. math:: \ln(1 + e^{\chi_l})\big/\sum_j\ln(1 + e^{\chi_j})

    Parameters and attributes as in :class:`Attention`.
    """

    activation = Softplus()


@float64
def _loss(activation: Activation, fields: np.ndarray, y: np.ndarray, mask: np.ndarray) -> tuple[float, np.ndarray]:
    value, slope = _compiled()[0](activation, fields, y, mask)
    return float(value), np.asarray(slope)


@float64
def _output(activation: Activation, chi: np.ndarray, z: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.asarray(_compiled()[1](activation, chi, z, mask))


@functools.cache
def _compiled() -> tuple[Any, Any]:
    """Half the squared error with its gradient in the fields, and the output; the products with X stay in BLAS."""
    import jax
    import jax.numpy as jnp

    def output(activation: Activation, chi: Any, z: Any, mask: Any) -> Any:
        return jnp.sum(activation.weights(chi, mask) * z, axis=1)

    def loss(activation: Activation, fields: Any, y: Any, mask: Any) -> Any:
        return 0.5 * jnp.sum((output(activation, fields[..., 0], fields[..., 1], mask) - y) ** 2)

    # The activation is code, not data: it is hashed, and another one compiles again.
    return jax.jit(jax.value_and_grad(loss, 1), static_argnums=0), jax.jit(output, static_argnums=0)
