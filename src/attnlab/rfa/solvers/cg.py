r"""Conjugate gradients on :math:`(\Phi\Phi^T + n\lambda I)\alpha = y`, preconditioned by a Nyström approximation.

A step costs 4 n P FLOP, so it beats forming the Gram matrix when fewer than n/4 steps suffice. At small ridges that
needs the preconditioner: the Gram matrix of r examples captures the large eigenvalues, the mean of the rest acts
as a ridge.

========  ======================================================================
symbol    meaning
========  ======================================================================
C         Phi Phi_r^T (n, r), columns of the Gram matrix
mu        n lam + mean eigenvalue that the r columns leave unexplained
========  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import linalg

from attnlab.common.solution import Solution
from attnlab.rfa.backend import Backend
from attnlab.rfa.solvers.ridge import product

TOLERANCE = 1e-7
MAX_STEPS = 500


def preconditioned_cg(
    blocks: Sequence[Any],
    Y: np.ndarray,
    ridge: float,
    device: Backend,
    *,
    rank: int = 512,
    tolerance: float = TOLERANCE,
) -> Solution[np.ndarray]:
    """alpha for all columns of Y at once; the residual is relative to |y|, the worst column."""
    n = len(Y)
    precondition = _nystrom(blocks, min(rank, n), n * ridge, device)

    def operator(v: np.ndarray) -> np.ndarray:
        return np.asarray(sum(product(b, product(b.T, v, device), device) for b in blocks)) + n * ridge * v

    alpha = np.zeros_like(Y)
    residual = Y.copy()
    z = precondition(residual)
    direction, inner = z, np.sum(residual * z, axis=0)
    # A column of zeros has the solution zero, not 0/0.
    scale = np.maximum(np.linalg.norm(Y, axis=0), np.finfo(float).tiny)
    size = float(np.max(np.linalg.norm(residual, axis=0) / scale))
    step = 0
    while size > tolerance and step < MAX_STEPS:
        step += 1
        image = operator(direction)
        # A column that is solved already has direction 0: 0/tiny leaves it where it is, 0/0 would not.
        length = inner / np.maximum(np.sum(direction * image, axis=0), np.finfo(float).tiny)
        alpha = alpha + length * direction
        residual = residual - length * image
        size = float(np.max(np.linalg.norm(residual, axis=0) / scale))
        z = precondition(residual)
        inner, before = np.sum(residual * z, axis=0), inner
        direction = z + inner / np.maximum(before, np.finfo(float).tiny) * direction
    return Solution(alpha, size <= tolerance, step, size)


def _nystrom(blocks: Sequence[Any], r: int, shift: float, device: Backend) -> Callable[[np.ndarray], np.ndarray]:
    """v -> (C A^{-1} C^T + mu I)^{-1} v by Woodbury's identity, from the first r examples."""
    C = np.asarray(sum(product(b, b[:r].T, device) for b in blocks))
    n = len(C)
    # In single precision the smallest eigenvalues are noise of either sign; Cholesky needs them positive.
    A = C[:r] + 1e-6 * np.trace(C[:r]) / r * np.eye(r)
    root = linalg.solve_triangular(linalg.cholesky(A, lower=True), C.T, lower=True).T
    trace = float(sum(np.sum(np.asarray(b, dtype=np.float64) ** 2) for b in blocks))
    # The mean that the columns leave unexplained may come out negative by rounding.
    mu = shift + max((trace - np.sum(root**2)) / n, 1e-7 * trace / n)
    inner = linalg.cho_factor(root.T @ root + mu * np.eye(r), lower=True)
    return lambda v: np.asarray((v - root @ linalg.cho_solve(inner, root.T @ v)) / mu)
