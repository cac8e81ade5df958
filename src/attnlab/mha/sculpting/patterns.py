r"""Pattern regression: the point of the simplex whose mixture of values is nearest to an output, row by row.

.. math:: \min_{p \ge 0,\; \sum_b p_b = 1} \big\|y - \textstyle\sum_b p_b\, x_b \bar W\big\|^2

Few tokens: exact, by trying every support. Many: accelerated projected gradient.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from attnlab.mha.layer import Rows

_ENUMERATED_TOKENS = 4  # 2^4 - 1 supports; beyond, the gradient method is faster
_GRADIENT_STEPS = 25


def regress_patterns(rows: Rows, w_sum: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Best common pattern of each row, and its residual relative to the spread of the row's values.

    ``start`` warms up the gradient method; the exact methods do not need it.
    """
    values = rows.K @ w_sum
    centre = values.mean(axis=1, keepdims=True)
    values = values - centre
    target = rows.Y - centre[:, 0]
    if values.shape[1] == 2:
        patterns = _two_tokens(values, target)
    elif values.shape[1] <= _ENUMERATED_TOKENS:
        patterns = _every_support(values, target)
    else:
        patterns = _projected_gradient(values, target, start)
    left = target - (patterns[:, None, :] @ values)[:, 0]
    spread = np.sqrt(np.mean(np.sum(values**2, axis=2), axis=1))
    shown = spread > 1e-12 * np.linalg.norm(centre[:, 0], axis=1)  # equal keys show nothing of the pattern
    return patterns, np.where(shown, np.linalg.norm(left, axis=1) / np.where(shown, spread, 1.0), np.inf)


def project_to_simplex(points: np.ndarray) -> np.ndarray:
    """Euclidean projection of each column of ``points (k, r)`` on {p >= 0, sum p = 1}.

    The threshold to subtract is the largest over j of (sum of the j largest entries - 1) / j.
    """
    sums = np.cumsum(_descending(points), axis=0)
    threshold = ((sums - 1.0) / np.arange(1, len(points) + 1)[:, None]).max(axis=0)
    projected: np.ndarray = np.maximum(points - threshold, 0.0)
    return projected


def _descending(points: np.ndarray) -> np.ndarray:
    """Each column sorted, by exchanges of neighbouring rows: for few rows faster than a sort of every column."""
    ordered = points.copy()
    for turn in range(len(ordered)):
        for i in range(turn % 2, len(ordered) - 1, 2):
            larger = np.maximum(ordered[i], ordered[i + 1])
            np.minimum(ordered[i], ordered[i + 1], out=ordered[i + 1])
            ordered[i] = larger
    return ordered


def _two_tokens(values: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Closed form for two tokens: the weight of the first, clipped to [0, 1]."""
    along = values[:, 0] - values[:, 1]
    size = np.maximum(np.sum(along**2, axis=1), np.finfo(float).tiny)
    first = np.clip(np.sum((target - values[:, 1]) * along, axis=1) / size, 0.0, 1.0)
    return np.column_stack([first, 1 - first])


def _every_support(values: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Stationary point on each face of the simplex; the best feasible one is the minimum.

    A row whose stationary point on the whole simplex is feasible is done at once; the others try all smaller faces.
    """
    r, k, _ = values.shape
    gram = values @ values.transpose(0, 2, 1)
    # On the simplex the all-ones block adds a constant; it makes the centred Gram matrix invertible.
    size_of_row = np.trace(gram, axis1=1, axis2=2)[:, None, None] + np.finfo(float).tiny
    gram += size_of_row * (1.0 / k + 1e-12 * np.eye(k))
    linear = (values @ target[:, :, None])[..., 0]
    best, lowest = np.full((r, k), 1.0 / k), np.full(r, np.inf)
    open_rows = np.arange(r)
    for size in range(k, 0, -1):
        for support in combinations(range(k), size):
            trial = np.zeros((len(open_rows), k))
            trial[:, support] = _on_face(gram[open_rows], linear[open_rows], list(support))
            objective = np.einsum("rb,rbc,rc->r", trial, gram[open_rows], trial) - 2 * np.sum(
                linear[open_rows] * trial, axis=1
            )
            better = (trial.min(axis=1) >= 0) & (objective < lowest[open_rows])
            best[open_rows[better]], lowest[open_rows[better]] = trial[better], objective[better]
        if size == k:
            open_rows = open_rows[np.isinf(lowest)]
    return best


def _on_face(gram: np.ndarray, linear: np.ndarray, support: list[int]) -> np.ndarray:
    """Minimiser of p G p - 2 l p subject to sum p = 1 on the affine hull of a face."""
    if len(support) == 1:
        return np.ones((len(gram), 1))
    face = gram[:, support][:, :, support]
    sides = np.stack([linear[:, support], np.ones((len(gram), len(support)))], axis=2)
    solved = np.linalg.solve(face, sides)
    totals = solved.sum(axis=1)
    minimiser: np.ndarray = solved[..., 0] + ((1 - totals[:, 0]) / totals[:, 1])[:, None] * solved[..., 1]
    return minimiser


def _projected_gradient(values: np.ndarray, target: np.ndarray, start: np.ndarray | None) -> np.ndarray:
    """Accelerated projected gradient on the simplex for all rows at once.

    Arrays have tokens first and rows last: with few tokens every operation is one pass over the rows, where products
    of small matrices would cost a call for each row.
    """
    r, k, _ = values.shape
    gram = values @ values.transpose(0, 2, 1)
    # The Frobenius norm bounds the largest eigenvalue and, with few tokens, is close to it.
    step = 1.0 / np.maximum(np.linalg.norm(gram, axis=(1, 2)), np.finfo(float).tiny)
    linear = (values @ target[:, :, None])[..., 0].T * step
    gram = np.ascontiguousarray(gram.transpose(1, 2, 0)) * step
    patterns = np.full((k, r), 1.0 / k) if start is None else np.ascontiguousarray(start.T)
    ahead, momentum = patterns, 1.0
    for _ in range(_GRADIENT_STEPS):
        slope = -linear
        for token in range(k):
            slope += gram[token] * ahead[token]
        moved = project_to_simplex(ahead - slope)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - patterns)
        patterns, momentum = moved, following
    return np.ascontiguousarray(patterns.T)
