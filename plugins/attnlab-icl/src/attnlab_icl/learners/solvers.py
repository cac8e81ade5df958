r"""Ridge regression on products of a query and a context coordinate, features q_a c_b, in three exact ways.

==========  ===========================================================================================
symbol      meaning
==========  ===========================================================================================
Q, C        queries (n, d) and context summaries (n, p), p = d + 1
penalty     (n/d) lambda, the weight of |G|^2
K           (Q Q^T) o (C C^T), the kernel of the features: the products never have to be formed
==========  ===========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import blas

# Contexts whose features are formed at once by ``Gram``.
BLOCK = 256
# Contexts of one product of conjugate gradients on a CPU: what is computed from them stays in the cache.
CACHED = 1024
# Iterations between two exact computations of the residual, which the recursion of conjugate gradients loses slowly.
REFRESH = 50


class Fit(NamedTuple):
    """G, whether the solver met its tolerance, its iterations, its relative residual and the GCV error."""

    gamma: np.ndarray
    converged: bool
    n_iter: int
    residual: float
    gcv: float | None = None


def dual(Q: np.ndarray, C: np.ndarray, y: np.ndarray, penalty: float, *, gcv: bool = True) -> Fit:
    r"""n unknowns: :math:`c = (K + \text{penalty})^{-1} y`, :math:`G = Q^T \mathrm{diag}(c) C`. Ridge 0 is least norm.

    Generalised cross-validation, :math:`n|c|^2/\mathrm{Tr}[(K + \text{penalty})^{-1}]^2`, takes as long again.
    """
    n = len(y)
    K = Q @ Q.T
    K *= C @ C.T
    K = K.T  # symmetric, and in LAPACK's order by columns: no copy
    trace = None
    if penalty > 0:
        K[np.diag_indices(n)] += penalty
        factor = linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        c = linalg.cho_solve((factor, True), y, check_finite=False)
        if gcv:
            # K^{-1} = L^{-T} L^{-1}: its trace is the squared norm of L^{-1}, and no inverse of K is formed.
            inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
            trace = float(np.vdot(inverse.T, inverse.T))  # LAPACK's order is by columns: without .T it is copied first
    else:
        values, vectors = linalg.eigh(K, overwrite_a=True)
        kept = values > n * np.finfo(float).eps * values[-1]
        c = vectors[:, kept] @ (vectors[:, kept].T @ y / values[kept])
    score = None if trace is None else n * float(c @ c) / trace**2
    return Fit((Q.T * c) @ C, True, 1, 0.0, score)


def conjugate_gradients(
    Q: Any, C: Any, y: Any, penalty: float, *, tol: float, max_iter: int, inverse: Any, xp: Any = np
) -> Fit:
    r"""d p unknowns, in the data's memory: :math:`G \mapsto Q^T \mathrm{diag}((QG \circ C)1) C + \text{penalty}\,G`.

    ``inverse`` is the preconditioner :math:`[\frac nd(C^TC/n + \lambda)]^{-1}`, applied on the right. It takes
    out the unequal variances of the coordinates of h: the spectrum becomes :math:`(1 \pm \tau^{-1/2})^2`, whatever d
    and kappa are.
    """

    size = CACHED if xp is np else len(y)
    blocks = [(Q[first : first + size], C[first : first + size]) for first in range(0, len(y), size)]

    def apply(G: Any) -> Any:
        image = penalty * G
        for q, c in blocks:
            image = image + q.T @ (xp.vecdot(q @ G, c)[:, None] * c)
        return image

    target = Q.T @ (y[:, None] * C)
    scale = float(xp.linalg.norm(target))
    G = xp.zeros_like(target)
    r = target
    z = r @ inverse
    direction, power = z, float(xp.vdot(r, z))
    # With y = 0 the start is the solution; a relative residual would be 0/0.
    residual = 1.0 if scale else 0.0
    for step in range(1, max_iter + 1):
        if residual <= tol:
            return Fit(np.asarray(G), True, step - 1, residual)
        image = apply(direction)
        length = power / float(xp.vdot(direction, image))
        G = G + length * direction
        r = target - apply(G) if step % REFRESH == 0 else r - length * image
        z = r @ inverse
        last, power = power, float(xp.vdot(r, z))
        direction = z + (power / last) * direction
        residual = float(xp.linalg.norm(r)) / scale
    return Fit(np.asarray(G), residual <= tol, max_iter, residual)


@dataclass
class Gram:
    """Sums over contexts of the features' products, (d p)^2 numbers: contexts come in any blocks and are not kept."""

    d: int
    products: np.ndarray = field(init=False)
    targets: np.ndarray = field(init=False)
    square: float = 0.0
    n: int = 0

    def __post_init__(self) -> None:
        size = self.d * (self.d + 1)
        self.products = np.zeros((size, size), order="F")
        self.targets = np.zeros(size)

    def add(self, Q: np.ndarray, C: np.ndarray, y: np.ndarray) -> None:
        """Add contexts."""
        for first in range(0, len(y), BLOCK):
            rows = slice(first, first + BLOCK)
            H = (Q[rows, :, None] * C[rows, None, :]).reshape(len(y[rows]), -1)
            # A symmetric update: half the work of a general product.
            self.products = blas.dsyrk(1.0, H, beta=1.0, c=self.products, trans=1, lower=1, overwrite_c=1)
            self.targets += H.T @ y[rows]
        self.square += float(y @ y)
        self.n += len(y)

    def solve(self, penalty: float) -> Fit:
        """G from the sums; least norm where they are singular."""
        K = np.asfortranarray(self.products)
        full = K + np.tril(K, -1).T
        full.flat[:: len(full) + 1] += penalty
        try:
            # Rounding may let the factorisation of singular sums pass.
            if penalty == 0:
                raise linalg.LinAlgError
            solution = linalg.solve(full, self.targets, assume_a="pos")
        except linalg.LinAlgError:
            solution = linalg.lstsq(full, self.targets, cond=len(full) * np.finfo(float).eps)[0]
        return Fit(solution.reshape(self.d, self.d + 1), True, 1, 0.0)

    def training_error(self, gamma: np.ndarray) -> float:
        """Mean squared residual of the contexts added so far."""
        g = gamma.ravel()
        lower = np.tril(self.products)
        # Twice the lower triangle, less the diagonal: the upper one is not stored.
        quadratic = 2 * g @ (lower @ g) - g @ (np.diagonal(lower) * g)
        return float(self.square - 2 * self.targets @ g + quadratic) / self.n
