"""One layer of linear attention, trained to the minimum of its loss."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from jaxtyping import Float
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from attnlab.common.compute import Compute, jax_device
from attnlab.common.sequences import SequenceRegressor
from attnlab.common.stopping import ended
from attnlab.common.validation import finite_array, integer, nonnegative, one_of, positive
from attnlab_icl.learners.solvers import Fit, Gram, conjugate_gradients, dual
from attnlab_icl.task import features

SOLVERS = ("auto", "dual", "cg", "gram")
# Contexts for each parameter up to which the dual problem is solved. Above, cg converges in less than 500 steps; at
# d = 100 it is seven times faster at 1.15 and thirty times at 1.5.
DUAL_UP_TO = 1.1
# Ridge from which cg converges in about a hundred steps whatever n is: at d = 100, n = 10100 ten times faster.
WELL_CONDITIONED = 0.1
MEMORY = 4e9


class LinearAttention(SequenceRegressor):
    r"""Linear attention on the query and a summary of its context, fitted exactly (arXiv:2405.11751).

    The prediction is :math:`x^T G h` for the query x and the summary h. G, of size d x (d + 1), minimises
    :math:`\sum_i (y_i - x_i^T G h_i)^2 + \frac nd \lambda |G|_F^2` exactly.

    Parameters
    ----------
    ridge : lambda. The factor n/d in front belongs to the model: another scale is another theory.
    solver : ``dual`` (n unknowns), ``cg`` (preconditioned conjugate gradients), ``gram`` (streaming, (d(d+1))^2
        memory), or ``auto``: dual up to n = 1.1 d(d+1), cg above; without gcv cg from ridge 0.1 on.
    tol, max_iter : relative residual and iterations of ``cg``.
    gcv : whether ``dual`` computes ``gcv_``, which doubles its time.
    compute : ``device="gpu"`` runs ``cg`` there, in float64.

    Attributes
    ----------
    gamma_ : G.
    converged_, n_iter_, stop_reason_, residual_ : how the solver ended.
    train_error_ : mean squared residual of the training contexts.
    gcv_ : generalised cross-validation, an estimate of the error on *pretraining* tasks (``gcv``, ``dual``, ridge > 0).

    >>> from attnlab_icl import Task, exact_error
    >>> task = Task(d=8, l=80, k=8)
    >>> layer = LinearAttention().fit_features(*task.features(640))
    >>> bool(exact_error(layer, task, "pretraining") < exact_error(layer, task, "new") < 1 + task.rho)
    True
    """

    _outputs_are_arrays = False

    def __init__(
        self,
        ridge: float = 1e-6,
        solver: str = "auto",
        tol: float = 1e-10,
        max_iter: int = 1000,
        gcv: bool = True,
        compute: Compute | None = None,
    ) -> None:
        self.ridge = ridge
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.gcv = gcv
        self.compute = compute

    def fit(self, X: Float[np.ndarray, "n tokens p"], y: Float[np.ndarray, " n"]) -> Self:
        """Fit to token sequences."""
        return self.fit_features(*features(X), y)

    def fit_features(
        self, query: Float[np.ndarray, "n d"], context: Float[np.ndarray, "n p"], y: Float[np.ndarray, " n"]
    ) -> Self:
        """Fit to queries and context summaries, as ``task.features`` draws them."""
        Q, C, y = self._checked(query, context, y)
        n, d = Q.shape
        solver = one_of("solver", self.solver, SOLVERS)
        if solver == "auto":
            easy = n > DUAL_UP_TO * d * (d + 1) or (self.ridge >= WELL_CONDITIONED and not self.gcv)
            solver = "cg" if easy else "dual"
        fit = self._solve(solver, Q, C, y, n / d * nonnegative("ridge", self.ridge))
        self._store(fit, "closed form" if solver != "cg" else "")
        self.train_error_ = float(np.mean((y - self._predict(Q, C)) ** 2))
        return self

    def partial_fit(self, X: Float[np.ndarray, "n tokens p"], y: Float[np.ndarray, " n"]) -> Self:
        """Add contexts to those seen before; the result is that of one fit to all of them."""
        Q, C, y = self._checked(*features(X), y)
        if not hasattr(self, "gram_"):
            self.gram_ = self._gram(Q.shape[1])
        elif self.gram_.d != Q.shape[1]:
            raise ValueError(f"X has inputs of dimension {Q.shape[1]}; earlier ones had {self.gram_.d}")
        self.gram_.add(Q, C, y)
        penalty = self.gram_.n / self.gram_.d * nonnegative("ridge", self.ridge)
        self._store(self.gram_.solve(penalty), "closed form")
        self.train_error_ = self.gram_.training_error(self.gamma_)
        return self

    def predict(self, X: Float[np.ndarray, "n tokens p"]) -> Float[np.ndarray, " n"]:
        """The answers to the last tokens."""
        check_is_fitted(self, "gamma_")
        query, context = features(X)
        if query.shape[1] != len(self.gamma_):
            raise ValueError(f"X has inputs of dimension {query.shape[1]}; the layer was fitted to {len(self.gamma_)}")
        return self._predict(query, context)

    def _predict(self, Q: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.asarray(np.vecdot(Q @ self.gamma_, C))

    def _checked(self, query: Any, context: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        Q = finite_array("query", query, ndim=2).astype(np.float64, copy=False)
        n, d = Q.shape
        C = finite_array("context", context, shape=(n, d + 1)).astype(np.float64, copy=False)
        return Q, C, finite_array("y", y, shape=(n,)).astype(np.float64, copy=False)

    def _solve(self, solver: str, Q: np.ndarray, C: np.ndarray, y: np.ndarray, penalty: float) -> Fit:
        compute = (self.compute or Compute()).supports(self, "device")
        if compute.device == "gpu" and solver != "cg":
            raise ValueError(f"compute.device='gpu' is supported by solver='cg', got solver={solver!r}")
        if solver == "dual":
            return dual(Q, C, y, penalty, gcv=self.gcv)
        if solver == "gram":
            gram = self._gram(Q.shape[1])
            gram.add(Q, C, y)
            return gram.solve(penalty)
        return self._cg(Q, C, y, penalty, compute.device)

    def _cg(self, Q: np.ndarray, C: np.ndarray, y: np.ndarray, penalty: float, device: str) -> Fit:
        d = Q.shape[1]
        tol, max_iter = positive("tol", self.tol), integer("max_iter", self.max_iter, low=1)
        # With Q^T Q near (n/d) I the operator acts on the right factor alone: this is it.
        right = C.T @ C / d + penalty * np.eye(d + 1)
        options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "inverse": linalg.inv(right)}
        if device != "gpu":
            return conjugate_gradients(Q, C, y, penalty, **options)
        import jax
        import jax.numpy as jnp

        place = jax_device(device)
        # In float64 as on the CPU: float32 cannot resolve the residuals that are asked for.
        with jax.enable_x64(True):
            Q, C, y, options["inverse"] = jax.device_put((Q, C, y, options["inverse"]), place)
            return conjugate_gradients(Q, C, y, penalty, xp=jnp, **options)

    def _gram(self, d: int) -> Gram:
        size = 8 * (d * (d + 1)) ** 2
        if size > MEMORY:
            raise ValueError(f"solver='gram' needs {size / 1e9:.1f} GB at d={d}; use solver='cg' or 'dual'")
        return Gram(d)

    def _store(self, fit: Fit, reason: str) -> None:
        self.gamma_, self.residual_, self.gcv_ = fit.gamma, fit.residual, fit.gcv
        reached = f"relative residual {fit.residual:.1e} " + ("<= tol" if fit.converged else "> tol at max_iter")
        ended(self, converged=fit.converged, reason=reason or reached, n_iter=fit.n_iter)
