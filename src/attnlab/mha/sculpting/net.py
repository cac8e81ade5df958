r"""Phase 6 of arXiv:2402.04084: a net of candidate heads, and regression for every tuple of them.

The heads lie near the affine hull of the point of smallest norm and the m - 1 long axes of the body. For every m-tuple
of candidates W is a ridge regression on their mean keys; the tuples with the smallest error are judged on fresh rows
and the best is kept. No gradient, no descent, no restart: what is left is the spacing of the net and the error of the
span.

=========  ==============================================================================================
kind       candidates
=========  ==============================================================================================
net        a grid of the affine hull, within ``radius`` times the norm of the point
plane      a grid of the ball of the linear span, of that radius (the paper's m-dimensional ball)
zoom       two heads: a coarse grid of the plane, then finer ones around the best pair (a search of ours)
=========  ==============================================================================================

Whether the paper's net covers the affine hull or the whole linear span was not checked against its full text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product

import numpy as np

from attnlab.mha.engine.damped import SEARCHED
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.engine.variable_projection import RIDGE, mean_keys, regress, residual
from attnlab.mha.layer import Rows

# How each is called among the steps of a fit.
KINDS = {"net": "net of the hull", "plane": "net of the plane", "zoom": "zoomed net of the plane"}
MOST_HEADS = 3
_JUDGED = 20
_BATCH = 20_000
_MEMORY = 1e9  # bytes of the products of all pairs of candidates
_ZOOM_LEVELS = 8


@dataclass(frozen=True)
class Found:
    """The best tuple: its fit on the rows it was chosen by, its error on fresh rows, and the size of the search."""

    fit: Fit
    fresh: float
    points: int
    tuples: int
    spacing: float


def search_net(
    rows: Rows, fresh: Rows, point: np.ndarray, axes: np.ndarray, *, kind: str, points: int, radius: float
) -> Found:
    """The best tuple of ``1 + len(axes)`` heads.

    Parameters
    ----------
    rows, fresh : rows to choose by, and to judge the best tuples on.
    point : the point of smallest norm, ``(d, d)``.
    axes : raw long axes ``(m - 1, d, d)``. Orthogonalised ones span the same plane but tilt the line.
    points, radius : number of candidates, and extent in units of the norm of the point.
    """
    m, extent = 1 + len(axes), radius * float(np.linalg.norm(point))
    if m == 1:
        return _chosen(rows, fresh, point[None], np.array([[0]]), 0.0)
    if kind == "zoom":
        return _zoomed(rows, fresh, point, axes[0], extent)
    if kind == "net":
        grid, spacing = _ball(m - 1, extent, points)
        candidates = point + np.tensordot(grid, axes, 1)
    else:
        grid, spacing = _ball(m, extent, points)
        candidates = np.tensordot(grid, _plane(point, axes), 1)
    return _chosen(rows, fresh, candidates, None, spacing, m)


def _plane(point: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the linear span."""
    flat = np.concatenate([point[None], axes]).reshape(1 + len(axes), -1)
    return np.linalg.qr(flat.T)[0].T.reshape(-1, *point.shape)


def _ball(dimension: int, extent: float, points: int) -> tuple[np.ndarray, float]:
    """About so many grid points of a ball, and their spacing."""
    if dimension == 1:
        grid = np.linspace(-extent, extent, points)[:, None]
        return grid, float(grid[1, 0] - grid[0, 0])
    volume = {2: np.pi, 3: 4 * np.pi / 3}[dimension]
    # A ball of radius r has about volume r^dimension points of the integer grid.
    steps = max(1, int((points / volume) ** (1 / dimension)))
    axis = np.arange(-steps, steps + 1) / steps
    cube = np.array(list(product(axis, repeat=dimension)))
    return extent * cube[np.linalg.norm(cube, axis=1) <= 1 + 1e-12], extent / steps


def _chosen(
    rows: Rows, fresh: Rows, candidates: np.ndarray, tuples: np.ndarray | None, spacing: float, m: int = 1
) -> Found:
    """All tuples by their error on the rows, the best of them by the error on fresh rows."""
    number = len(candidates)
    d = candidates.shape[1]
    if 8.0 * (number * d) ** 2 > _MEMORY:
        raise ValueError(f"net_points={number} at d={d} needs {8e-9 * (number * d) ** 2:.1f} GB; use fewer points")
    # Products of all pairs of candidates, once: the equations of a tuple are blocks of them.
    Z = mean_keys(rows, candidates)
    gram, sides = (Z.T @ Z).reshape(number, d, number, d), (Z.T @ rows.Y).reshape(number, d, -1)
    batches = [tuples] if tuples is not None else _tuples(number, m)
    best: list[tuple[float, tuple[int, ...]]] = []
    count = 0
    for batch in batches:
        explained = _explained(gram, sides, batch)
        count += len(batch)
        leaders = np.argsort(-explained)[:_JUDGED]
        best += [(-float(explained[i]), tuple(int(j) for j in batch[i])) for i in leaders]
        best = sorted(best)[:_JUDGED]
    judged = [_judge(rows, fresh, candidates[list(chosen)]) for _, chosen in best]
    fit, error = min(judged, key=lambda pair: pair[1])
    return Found(fit, error, number, count, spacing)


def _tuples(number: int, m: int) -> Iterator[np.ndarray]:
    """All m-tuples of points, batch by batch."""
    every = combinations(range(number), m)
    while batch := list(islice(every, _BATCH)):
        yield np.array(batch)


def _explained(gram: np.ndarray, sides: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """What the regression on each tuple explains of |Y|^2, <W, Z^T Y>."""
    count, m = chosen.shape
    d = gram.shape[1]
    # Rows and columns: head of the tuple, coordinate.
    G = gram[chosen[:, :, None], :, chosen[:, None, :]].transpose(0, 1, 3, 2, 4).reshape(count, m * d, m * d)
    size = np.trace(G, axis1=1, axis2=2) / (m * d)
    G = G + (RIDGE * size + np.finfo(float).tiny)[:, None, None] * np.eye(m * d)
    right = sides[chosen].reshape(count, m * d, -1)
    return np.sum(np.linalg.solve(G, right) * right, axis=(1, 2))


def _judge(rows: Rows, fresh: Rows, theta: np.ndarray) -> tuple[Fit, float]:
    found = regress(rows, theta)
    error = float(np.sum(residual(fresh, theta, found.W) ** 2) / np.sum(fresh.Y**2))
    return Fit(theta, found.W, found.nmse(rows.Y), 1, SEARCHED, ()), error


def _zoomed(rows: Rows, fresh: Rows, point: np.ndarray, axis: np.ndarray, extent: float) -> Found:
    """A coarse grid of half the disc (its first coordinate positive), then 5 x 5 points around each of the two."""
    basis = _plane(point, axis[None])
    # QR may turn the point round; the heads lie on its own side.
    basis[0] *= np.sign(np.sum(basis[0] * point))
    grid, spacing = _ball(2, extent, 13)
    grid = grid[grid[:, 0] >= 0]
    found = _chosen(rows, fresh, np.tensordot(grid, basis, 1), None, spacing, 2)
    points, tuples = found.points, found.tuples
    for _ in range(_ZOOM_LEVELS):
        spacing /= 2
        around = np.array(list(product(spacing * np.arange(-2, 3), repeat=2)))
        centres = np.tensordot(found.fit.theta, basis, axes=([1, 2], [1, 2]))
        candidates = np.tensordot(np.concatenate([c + around for c in centres]), basis, 1)
        # One head from the points around each centre.
        pairs = np.array(list(product(range(25), range(25, 50))))
        finer = _chosen(rows, fresh, candidates, pairs, spacing, 2)
        points, tuples = points + finer.points, tuples + finer.tuples
        # On fresh rows a finer grid can be worse.
        found = finer if finer.fresh < found.fresh else found
    return Found(found.fit, found.fresh, points, tuples, spacing)
