r"""Pattern regression: the point of the simplex whose mixture of values is nearest to an output, row by row.

.. math:: \min_{p \ge 0,\; \sum_b p_b = 1} \big\|y - \textstyle\sum_b p_b\, x_b \bar W\big\|^2

Few tokens: exact, by trying every support. Many: accelerated projected gradient.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from attnlab.mha.layer import Rows

_ENUMERATED_TOKENS = 6  # 2^6 - 1 supports; beyond, the gradient method is faster
_GRADIENT_STEPS = 25
_CHUNK = 4096  # rows whose arrays stay in the cache


def regress_patterns(rows: Rows, w_sum: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Best common pattern of each row, and its residual relative to the spread of the row's values.

    ``start`` warms up the gradient method; the exact methods do not need it.
    """
    (r, k, d), (_, outputs) = rows.K.shape, w_sum.shape
    patterns, residuals = np.empty((r, k)), np.empty(r)
    for begin in range(0, r, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        warm = None if start is None else start[part]
        values = (rows.K[part].reshape(-1, d) @ w_sum).reshape(-1, k, outputs)
        patterns[part], residuals[part] = _regress(values, rows.Y[part], warm)
    return patterns, residuals


def _regress(values: np.ndarray, outputs: np.ndarray, start: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    k = values.shape[1]
    centre = values.mean(axis=1)
    values, target = values - centre[:, None], outputs - centre
    if k == 2:
        patterns = _two_tokens(values, target)
    elif k <= _ENUMERATED_TOKENS:
        patterns = _every_support(values, target)
    else:
        patterns = _projected_gradient(values, target, start)
    left = target - np.einsum("rb,rbo->ro", patterns, values)
    spread = _norms(values.reshape(len(values), -1)) / np.sqrt(k)
    shown = spread > 1e-12 * _norms(centre)  # equal keys show nothing of the pattern
    return patterns, np.where(shown, _norms(left) / np.where(shown, spread, 1.0), np.inf)


def _norms(vectors: np.ndarray) -> np.ndarray:
    norms: np.ndarray = np.sqrt(np.einsum("rd,rd->r", vectors, vectors))
    return norms


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
    size = np.maximum(np.einsum("rd,rd->r", along, along), np.finfo(float).tiny)
    first = np.clip(np.einsum("rd,rd->r", target - values[:, 1], along) / size, 0.0, 1.0)
    return np.column_stack([first, 1 - first])


def _every_support(values: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Stationary point on each face of the simplex; the best feasible one is the minimum.

    A row whose stationary point on the whole simplex is feasible is done at once; the others try all smaller faces.
    Arrays have rows last: every operation is one pass over them, where a small system each would cost a call each.
    """
    k = values.shape[1]
    gram = np.ascontiguousarray((values @ values.transpose(0, 2, 1)).transpose(1, 2, 0))
    linear = np.ascontiguousarray((values @ target[:, :, None])[..., 0].T)
    # On the simplex the all-ones block adds a constant; it makes the centred Gram matrix invertible.
    size_of_row = np.trace(gram) + np.finfo(float).tiny
    gram += size_of_row / k
    gram[range(k), range(k)] += 1e-12 * size_of_row
    best, _ = _on_face(gram, linear)
    open_rows = np.flatnonzero(~(best.min(axis=0) >= 0))
    gram, linear = gram[..., open_rows], linear[:, open_rows]
    chosen, lowest = np.full(linear.shape, 1.0 / k), np.full(len(open_rows), np.inf)
    for size in range(k - 1, 0, -1):
        for support in map(np.array, combinations(range(k), size)):
            trial, objective = _on_face(gram[support][:, support], linear[support])
            better = np.flatnonzero((trial.min(axis=0) >= 0) & (objective < lowest))
            lowest[better] = objective[better]
            chosen[:, better] = 0.0
            for token, weights in zip(support, trial, strict=True):
                chosen[token, better] = weights[better]
    best[:, open_rows] = chosen
    return best.T


def _on_face(gram: np.ndarray, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minimiser of p G p - 2 l p subject to sum p = 1 on the affine hull of a face, and the value there.

    G p = l + c 1 for a number c, so p = u + c v with G u = l and G v = 1, and the value is c - l p.
    """
    s, G = len(gram), gram.copy()
    uv = np.stack([linear, np.ones_like(linear)], axis=1)
    for i in range(s):  # elimination; G is positive definite, so that no pivot is needed
        for j in range(i + 1, s):
            factor = G[j, i] / G[i, i]
            G[j, i + 1 :] -= factor * G[i, i + 1 :]
            uv[j] -= factor * uv[i]
    for i in reversed(range(s)):
        for j in range(i + 1, s):
            uv[i] -= G[i, j] * uv[j]
        uv[i] /= G[i, i]
    u, v = uv[:, 0], uv[:, 1]
    c = (1 - u.sum(axis=0)) / v.sum(axis=0)
    point: np.ndarray = u + c * v
    return point, c - np.sum(linear * point, axis=0)


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
