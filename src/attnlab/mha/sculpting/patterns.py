r"""Pattern regression: the point of the simplex whose mixture of values is nearest to an output, row by row.

.. math:: \min_{p \ge 0,\; \sum_b p_b = 1} \big\|y - \textstyle\sum_b p_b\, x_b \bar W\big\|^2

Exact: a closed form for two tokens, an active-set method for more.
"""

from __future__ import annotations

import numpy as np

from attnlab.mha.layer import Rows

_CHUNK = 4096  # rows whose arrays stay in the cache
# A weight outside the support enters it when the error falls by more than this share of the values' size.
_SLOPE = 1e-12
# Values closer together than this share of what is subtracted are equal up to rounding.
_EQUAL = 1e-12
# Twelve digits below the square of this size there are still normal numbers.
_SMALLEST = 1e-140


def regress_patterns(
    rows: Rows, w_sum: np.ndarray, start: np.ndarray | None = None, *, beyond: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Best common pattern of each row, and its residual relative to the spread of the row's values.

    ``start`` are patterns that may be near, such as those of another sum; they save steps. A row whose residual is seen
    to be larger than ``beyond`` is not finished: it has some pattern, and a residual above ``beyond``.
    """
    (r, k, d), (_, outputs) = rows.K.shape, w_sum.shape
    patterns, residuals = np.empty((r, k)), np.empty(r)
    for begin in range(0, r, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        warm = None if start is None else start[part]
        values = (rows.K[part].reshape(-1, d) @ w_sum).reshape(-1, k, outputs)
        patterns[part], residuals[part] = _regress(values, rows.Y[part], warm, beyond)
    return patterns, residuals


def _regress(
    values: np.ndarray, outputs: np.ndarray, start: np.ndarray | None, beyond: float
) -> tuple[np.ndarray, np.ndarray]:
    """Patterns and residuals; a row of equal values shows nothing of its pattern: even weights, residual infinity."""
    r, k, _ = values.shape
    centre = values.mean(axis=1)
    values, target = values - centre[:, None], outputs - centre
    spread = _norms(values.reshape(r, -1)) / np.sqrt(k)
    shown = spread > np.maximum(_EQUAL * (_norms(centre) + _norms(outputs)), _SMALLEST)
    values, target, start = values[shown], target[shown], None if start is None else start[shown]
    patterns, residuals = np.full((r, k), 1.0 / k), np.full(r, np.inf)
    if k == 2:
        patterns[shown] = _two_tokens(values, target)
    else:
        patterns[shown] = _active_sets(values, target, start, (beyond * spread[shown]) ** 2)
    left = target - np.einsum("rb,rbo->ro", patterns[shown], values)
    residuals[shown] = _norms(left) / spread[shown]
    return patterns, residuals


def _norms(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("rd,rd->r", vectors, vectors))


def _two_tokens(values: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Closed form for two tokens: the weight of the first, clipped to [0, 1]."""
    along = values[:, 0] - values[:, 1]
    size = np.einsum("rd,rd->r", along, along)
    first = np.clip(np.einsum("rd,rd->r", target - values[:, 1], along) / size, 0.0, 1.0)
    return np.column_stack([first, 1 - first])


def _active_sets(values: np.ndarray, target: np.ndarray, start: np.ndarray | None, limit: np.ndarray) -> np.ndarray:
    """Primal active-set steps for all rows at once, until none changes its support.

    A row's weights move towards the minimiser on the face of their support. The first that reaches zero leaves the
    support; when none does, the token whose weight would lower the error most enters it; when there is none, the
    row is done. The error falls with each step, so no support comes twice; the number of steps is bounded against
    rounding. Where all tokens are in the support the minimiser is that of the affine hull: no weights come closer, and
    a row is left when this squared distance is above its ``limit``.

    Arrays have rows last: every operation is one pass over them, where a small system each would cost a call.
    """
    r, k, _ = values.shape
    gram = np.ascontiguousarray((values @ values.transpose(0, 2, 1)).transpose(1, 2, 0))
    linear = np.ascontiguousarray((values @ target[:, :, None])[..., 0].T)
    # On the simplex the all-ones block adds a constant; it makes the centred Gram matrix invertible.
    size, square = np.trace(gram), np.einsum("ro,ro->r", target, target)
    gram += size / k
    gram[range(k), range(k)] += 1e-12 * size
    patterns = np.full((k, r), 1.0 / k) if start is None else np.ascontiguousarray(start.T)
    support, moving = patterns > 0, np.arange(r)
    for _ in range(4 * k):
        p, inside = patterns[:, moving], support[:, moving]
        best, level = _on_face(gram, linear, inside)
        room = np.full(p.shape, np.inf)
        np.divide(p, p - best, out=room, where=inside & (best < 0))
        length = np.minimum(room.min(axis=0), 1.0)
        patterns[:, moving] = np.where(inside, p + length * (best - p), 0.0)
        blocked = length < 1
        token = room.argmin(axis=0)
        stopped = np.flatnonzero(~blocked & ~inside.all(axis=0))
        slope = np.einsum("ijr,jr->ir", gram[..., stopped], best[:, stopped]) - linear[:, stopped] - level[stopped]
        slope[inside[:, stopped]] = 0.0
        token[stopped] = slope.argmin(axis=0)
        blocked[stopped] = slope.min(axis=0) < -_SLOPE * size[stopped]
        far = inside.all(axis=0) & (square - (linear * best).sum(axis=0) + level - size / k > limit)
        changed = np.flatnonzero(blocked & ~far)
        if not len(changed):
            break
        support[token[changed], moving[changed]] ^= True
        patterns[:, moving] *= support[:, moving]
        moving, gram, linear, size = moving[changed], gram[..., changed], linear[:, changed], size[changed]
        square, limit = square[changed], limit[changed]
    patterns /= patterns.sum(axis=0)  # one but for rounding of the slopes, which are large when the target is far
    return patterns.T


def _on_face(gram: np.ndarray, linear: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minimiser of p G p - 2 l p over weights of the tokens inside that sum to one, and the slope G p - l there.

    The slope is the same number c for all of them, so p = u + c v with G u = l and G v = 1. Tokens outside are
    replaced by independent ones with u = v = 0.
    """
    k, on = len(gram), inside.astype(float)
    G = gram * on
    G[range(k), range(k)] += ~inside
    uv = np.stack([linear * on, on], axis=1)
    for i in range(k):  # elimination; G is positive definite by 1e-12 of its size, so that no row is exchanged
        G[i, i:] *= on[i]
        G[i, i] += ~inside[i]
        for j in range(i + 1, k):
            factor = G[i, j] / G[i, i]
            G[j, j:] -= factor * G[i, j:]
            uv[j] -= factor * uv[i]
    for i in reversed(range(k)):
        for j in range(i + 1, k):
            uv[i] -= G[i, j] * uv[j]
        uv[i] /= G[i, i]
    u, v = uv[:, 0], uv[:, 1]
    c = (1 - u.sum(axis=0)) / v.sum(axis=0)
    return u + c * v, c
