r"""Phase 5: the span of the heads, read off the body's long axes.

The point of smallest norm and the m - 1 longest axes span the same m-dimensional space as
:math:`\Theta_1..\Theta_m`. The gap in the body's axes after the (m - 1)-th counts the heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import finite_array
from attnlab.mha.sculpting.body import MinimumNorm
from attnlab.mha.sculpting.program import Chords

# An axis with less than this left after removing the point of smallest norm adds no direction.
_NEW = 0.3
# Curvatures of the short axes differ from one to the next by less than this factor.
_JUMP = 3.0


@dataclass(frozen=True)
class Span:
    """Orthonormal basis ``(m, d, d)``, the Hessian's eigenvalues in rising order, and the ratio at the gap.

    ``axes (m - 1, d, d)`` are the raw directions: made orthogonal to the point they would tilt the affine hull.
    """

    basis: np.ndarray
    curvatures: np.ndarray
    gap: float
    axes: np.ndarray


def long_axes(point: MinimumNorm, m: int) -> Span:
    """Point of smallest norm and m - 1 flattest directions of the body, orthonormalised."""
    d = len(point.theta)
    curvatures, vectors = np.linalg.eigh(point.hessian)
    basis, axes = [point.theta.reshape(-1) / np.linalg.norm(point.theta)], []
    for vector in vectors.T:
        if len(basis) == m:
            break
        left = vector - sum(b * (b @ vector) for b in basis)
        if np.linalg.norm(left) > _NEW:
            basis.append(left / np.linalg.norm(left))
            axes.append(vector)
    # A flat direction has curvature 0 or, by rounding, less; the ratio is then huge, as it should be.
    lowest = np.maximum(curvatures[: m + 1], np.finfo(float).tiny)
    gap = float(lowest[m - 1] / lowest[m - 2]) if m > 1 else np.inf
    return Span(np.array(basis).reshape(-1, d, d), curvatures, gap, np.array(axes).reshape(-1, d, d))


def span_of_chords(chords: Chords, m: int) -> Span:
    """The span from linear programs: the centre and the m - 1 longest chords; the m-th shows the gap."""
    # Chords first, so that of the centre only what lies across them is left; reversed, it leads as in long_axes.
    directions = np.concatenate([chords.directions[: m - 1], chords.centre[None]])
    basis = _orthonormal(directions).T.reshape(m, *chords.centre.shape)
    lengths = np.maximum(chords.lengths, np.finfo(float).tiny)
    gap = float(lengths[m - 2] / lengths[m - 1]) if 1 < m <= len(lengths) else np.inf
    # The axis of an ellipsoid has the length curvature^(-1/2).
    return Span(basis[::-1], lengths**-2.0, gap, chords.directions[: m - 1])


def heads_by_gap(curvatures: np.ndarray, max_heads: int) -> int:
    """The number of heads that the largest jump among the smallest curvatures suggests; one where none stands out."""
    lowest = np.maximum(curvatures[: max_heads + 1], np.finfo(float).tiny)
    jumps = lowest[1:] / lowest[:-1]
    # m heads have m - 1 small curvatures: the jump numbered j, from 0, lies after j + 1 of them.
    return int(np.argmax(jumps)) + 2 if len(jumps) and jumps.max() > _JUMP else 1


def span_error(basis: ArrayLike, Theta: ArrayLike) -> float:
    """Largest sine between the span of the true heads and a found span of the same dimension.

    >>> E = np.eye(4).reshape(4, 2, 2)
    >>> span_error(E[:2], E[:2]), span_error(E[:2], E[2:])
    (0.0, 1.0)
    """
    found = _orthonormal(finite_array("basis", basis, ndim=3))
    true = _orthonormal(finite_array("Theta", Theta, ndim=3))
    cosines = np.linalg.svd(found.T @ true, compute_uv=False)
    smallest = cosines[-1] if len(cosines) == true.shape[1] and found.shape[1] >= true.shape[1] else 0.0
    return float(np.sqrt(max(0.0, 1.0 - min(1.0, smallest) ** 2)))


def _orthonormal(matrices: Float[np.ndarray, "m d d"]) -> np.ndarray:
    return np.linalg.qr(matrices.reshape(len(matrices), -1).T)[0]
