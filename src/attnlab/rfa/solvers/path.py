r"""The whole ridge path from one eigendecomposition, with leave-one-out and generalised cross-validation.

========  ====================================================================
symbol    meaning
========  ====================================================================
K         Gram or kernel matrix, K = U diag(s) U^T
H         smoother K (K + n lam I)^{-1};  fitted values H y
e_i       leave-one-out residual (y_i - f_i) / (1 - H_ii)
========  ====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import finite_array, one_of


@dataclass(frozen=True)
class RidgePath:
    """Errors along a grid of ridges.

    Attributes
    ----------
    ridges : the grid.
    loo : mean squared leave-one-out residual at each ridge, averaged over outputs.
    gcv : generalised cross-validation score at each ridge.
    alpha : dual coefficients (ridges, n, k).
    """

    ridges: np.ndarray
    loo: np.ndarray
    gcv: np.ndarray
    alpha: np.ndarray

    def best(self, criterion: str = "loo") -> int:
        """Index of the ridge with the smallest score."""
        scores = {"loo": self.loo, "gcv": self.gcv}
        return int(np.argmin(scores[one_of("criterion", criterion, scores)]))


def ridge_path(K: np.ndarray, y: np.ndarray, ridges: ArrayLike) -> RidgePath:
    r"""Solve :math:`(K + n\lambda I)\alpha = y` for many :math:`\lambda` at once.

    .. math:: e_i = \frac{\alpha_i}{[(K + n\lambda I)^{-1}]_{ii}}, \qquad
              \mathrm{GCV} = \frac{\tfrac1n \|y - Hy\|^2}{(1 - \tfrac1n \operatorname{tr} H)^2}

    The lower triangle of K is read.  Status: exact.
    """
    lam = finite_array("ridges", np.atleast_1d(np.asarray(ridges, dtype=np.float64)), ndim=1)
    if (lam < 0).any():
        raise ValueError(f"ridges must be >= 0, got {lam.min()}")
    n = len(y)
    s, U = linalg.eigh(np.asarray(K, dtype=np.float64), lower=True)
    projected = U.T @ y.reshape(n, -1)
    # Eigenvalues below the rounding of the largest, in the precision in which K was made, are noise.
    floor = n * np.finfo(K.dtype).eps * max(float(s[-1]), np.finfo(np.float64).tiny)
    loo, gcv, alphas = [], [], []
    for shift in n * lam:
        inverse = 1 / np.maximum(np.maximum(s, 0) + shift, floor)
        alpha = U @ (inverse[:, None] * projected)
        # The diagonal of the inverse: n^2 operations a ridge, and no inverse.
        diagonal = (U**2) @ inverse
        loo.append(np.mean((alpha / diagonal[:, None]) ** 2))
        # y - H y = n lam alpha and n - tr H = n lam tr(inverse): n lam cancels, so a ridge of zero needs no limit.
        gcv.append(np.mean(alpha**2) / np.mean(inverse) ** 2)
        alphas.append(alpha)
    return RidgePath(lam, np.array(loo), np.array(gcv), np.stack(alphas))
