"""Convex problems solved from a whole Gram matrix: a ridge, a ridge chosen by leave-one-out, a ball, other losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from attnlab.rfa.backend import Backend
from attnlab.rfa.solvers.erm import Minimum, NormBall, on_ball, penalised
from attnlab.rfa.solvers.path import RidgePath, ridge_path


@dataclass(frozen=True)
class GramFit:
    """Dual coefficients (n, k), the ridge that was used (for each output where they differ), and how it ended."""

    alpha: np.ndarray
    ridge: float | np.ndarray
    converged: bool = True
    n_iter: int = 1
    reason: str = "closed form"
    path: RidgePath | None = None


def fit_gram(
    G: np.ndarray, Y: np.ndarray, ridge: np.ndarray | NormBall, loss: str, device: Backend | None = None
) -> GramFit:
    """Solve from the lower triangle of G; ``device`` solves the linear system of a single ridge."""
    if isinstance(ridge, NormBall):
        K, onto = _resolved(G)
        return _newton([on_ball(K, y, ridge.radius, loss, onto) for y in Y.T], onto)
    if len(ridge) > 1:
        if loss != "squared":
            raise ValueError(f"several ridges are chosen by leave-one-out for loss='squared' only, got {loss!r}")
        path = ridge_path(G, Y, ridge)
        best = path.best()
        return GramFit(path.alpha[best], float(ridge[best]), path=path)
    lam = float(ridge[0])
    if loss == "squared" and device is not None:
        return GramFit(device.solve(G, len(Y) * lam, Y), lam)
    K, onto = _resolved(G)
    # Newton's method needs a positive curvature in every direction that the precision of G resolves.
    lam = max(lam, float(np.finfo(np.float32).eps))
    return _newton([penalised(K, y, lam, loss) for y in Y.T], onto)


def _newton(minima: list[Minimum], onto: Callable[[np.ndarray], np.ndarray]) -> GramFit:
    """One fit from those of the outputs; it ended as the worst of them."""
    worst = next((m for m in minima if not m.converged), minima[-1])
    ridges = np.array([m.ridge for m in minima])
    return GramFit(
        onto(np.stack([m.alpha for m in minima], axis=1)),
        float(ridges[0]) if (ridges == ridges[0]).all() else ridges,
        worst.converged,
        max(m.n_iter for m in minima),
        worst.reason,
    )


def _resolved(G: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The symmetric Gram matrix without eigenvalues that are rounding, and the projection onto what is left.

    With fewer features than examples most eigenvalues are rounding, some of them negative: coefficients along them cost
    nothing in the norm of the matrix and a great deal in that of the features.
    """
    K = np.tril(G.astype(np.float64)) + np.tril(G.astype(np.float64), -1).T
    # An error of relative size eps in every entry, at its worst.
    floor = np.sqrt(len(K)) * np.finfo(G.dtype).eps * float(np.linalg.norm(K))
    try:
        # A Cholesky factor of K - floor I exists only if every eigenvalue is above the floor; a far cheaper test than
        # eigh.
        linalg.cholesky(K - floor * np.eye(len(K)), lower=True, check_finite=False)
        return K, lambda alpha: alpha
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(K)
        U = vectors[:, values > floor]
        return (U * values[values > floor]) @ U.T, lambda alpha: np.asarray(U @ (U.T @ alpha))
