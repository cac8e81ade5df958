r"""Phase 2b-c: the convex body that contains every attention matrix.

On an agreeing row every head has the same pattern p, so every Theta_i satisfies
:math:`\langle \Theta, q_a (x_b - x_c)^\top\rangle = \log(p_b / p_c)`, and where p_c vanishes an inequality. One convex
function says all of it,

.. math::
    f(\Theta) = \frac{1}{|A|} \sum_{a \in A} \mathrm{KL}\big(p_a \,\|\, \mathrm{softmax}(q_a \Theta K_a^\top)\big),

and the body is :math:`K_\varepsilon = \{\Theta : f(\Theta) \le \varepsilon\}`. It contains the affine hull of the
heads where equalities dominate and their convex cone where only inequalities are left. It is thin across the hull
and long along it, so the long axes are the eigenvectors of the smallest eigenvalues of the Hessian of f.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from attnlab.mha.engine.normal_equations import coordinate_pairs
from attnlab.mha.engine.variable_projection import chunks, row_patterns
from attnlab.mha.layer import Rows

# Along the hull f is flat: this picks the point of smallest norm there.
SHRINKAGE = 1e-4


@dataclass(frozen=True)
class Body:
    """Accepted rows with their patterns, and a weight for each (mean one)."""

    rows: Rows
    patterns: np.ndarray
    weights: np.ndarray

    @property
    def d(self) -> int:
        """Width of a token."""
        return int(self.rows.Q.shape[1])


@dataclass(frozen=True)
class MinimumNorm:
    """The point of smallest norm of the body: value of f there, its Hessian (d^2 x d^2), and how Newton ended."""

    theta: np.ndarray
    divergence: float
    hessian: np.ndarray
    converged: bool
    n_iter: int


def divergence(body: Body, theta: np.ndarray) -> float:
    """Mean KL divergence of the heads' common patterns from the patterns of Theta."""
    predicted = row_patterns(body.rows, theta[None])[:, 0]
    # A pattern that underflows to 0 would make the divergence infinite, and the line search blind.
    terms = special.rel_entr(body.patterns, np.maximum(predicted, 1e-300)).sum(axis=1)
    return float(np.mean(body.weights * terms))


def derivatives(body: Body, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient ``(d, d)`` and Hessian ``(d^2, d^2)`` of the divergence: q q^T (x) Cov_p(keys), averaged over rows."""
    d, r, pairs = body.d, len(body.rows), coordinate_pairs(body.d)
    # Both factors of the product are symmetric: pairs of coordinates are kept once.
    gradient, packed = np.zeros((d, d)), np.zeros((len(pairs.first), len(pairs.first)))
    for part in chunks(r, d * d * body.rows.K.shape[1]):
        Q, K = body.rows.Q[part], body.rows.K[part]
        p = row_patterns(body.rows.take(part), theta[None])[:, 0]
        weights = body.weights[part, None]
        gradient += (Q * weights).T @ np.einsum("rb,rbd->rd", p - body.patterns[part], K)
        roots = np.sqrt(weights * p)[:, :, None] * (K - np.einsum("rb,rbd->rd", p, K)[:, None])
        covariances = np.take((roots.transpose(0, 2, 1) @ roots).reshape(len(Q), -1), pairs.flat, axis=1)
        packed += (np.take(Q, pairs.first, axis=1) * np.take(Q, pairs.second, axis=1)).T @ covariances
    hessian = packed[pairs.number][:, :, pairs.number].transpose(0, 2, 1, 3).reshape(d * d, d * d)
    return gradient / r, hessian / r


def minimum_norm_point(body: Body, *, shrinkage: float = SHRINKAGE, max_iter: int = 60) -> MinimumNorm:
    """Newton's method on f(Theta) + shrinkage/2 ||Theta||^2, a soft-label logistic regression."""
    d = body.d
    theta, n_iter, converged = np.zeros((d, d)), 0, False
    value = divergence(body, theta)
    while n_iter < max_iter and not converged:
        gradient, hessian = derivatives(body, theta)
        slope = gradient.reshape(-1) + shrinkage * theta.reshape(-1)
        hessian[np.diag_indices_from(hessian)] += shrinkage
        move = -linalg.solve(hessian, slope, assume_a="pos").reshape(d, d)
        decrease = -float(slope @ move.reshape(-1))
        length = 1.0
        while length > 1e-6:
            trial = theta + length * move
            trial_value = divergence(body, trial) + shrinkage / 2 * float(np.sum(trial**2))
            # Armijo's rule; a promised decrease below 1e-14 is lost in the rounding of f.
            if trial_value <= value - 1e-4 * length * decrease or decrease < 1e-14:
                break
            length /= 2
        theta, value, n_iter = trial, trial_value, n_iter + 1
        converged = decrease < 1e-12
    # The Hessian of f alone: the shrinkage would cover the curvatures of the flat directions.
    return MinimumNorm(theta, divergence(body, theta), derivatives(body, theta)[1], converged, n_iter)
