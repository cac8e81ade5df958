"""Quasi-random numbers of the theory. It takes no seed: the scrambles are part of the quadrature rule."""

from __future__ import annotations

import functools

import numpy as np
from scipy import special
from scipy.stats import qmc

from attnlab.common.advice import advise
from attnlab.common.seeds import stream
from attnlab.common.validation import integer

REPLICATES = 8


@functools.lru_cache(maxsize=256)
def sobol_normals(dimension: int, size: int, tags: tuple[str | int, ...]) -> np.ndarray:
    """A scrambled Sobol sequence mapped to standard normal numbers, (size, dimension)."""
    bits = max(int(np.ceil(np.log2(max(size, 1)))), 0)
    points = qmc.Sobol(dimension, scramble=True, rng=stream(0, "theory", "smi", *tags)).random_base2(bits)[:size]
    # A scrambled point can round to 0 or 1.
    normals = np.asarray(special.ndtri(np.clip(points, 1e-15, 1 - 1e-15)))
    # All callers share the array through the cache.
    normals.flags.writeable = False
    return normals


def replicate_normals(dimension: int, draws: int, replicates: int, *tags: str | int) -> np.ndarray:
    """Independent scrambles of one sequence, (replicates, draws, dimension)."""
    return np.stack([sobol_normals(dimension, draws, (*tags, i)) for i in range(replicates)])


def matched_weights(normals: np.ndarray) -> np.ndarray:
    r"""Weights (R, n) under which the points have the moments of N(0, I) up to degree two.

    The intercept of a least-squares fit of f on quadratic polynomials p with E p = 0: sum_i w_i f(x_i) is exact for
    quadratic f, and the noise of any other f is that of its residual. Without enough points the weights are 1/n.
    """
    R, n, D = normals.shape
    # Four points for each polynomial of degree two at least.
    if n < 4 * (D + 1) * (D + 2) // 2:
        return np.full((R, n), 1 / n)
    a, b = np.triu_indices(D)
    found = []
    for x in normals:
        design = np.hstack([np.ones((n, 1)), x, x[:, a] * x[:, b] - (a == b)])
        target = np.zeros(design.shape[1])
        target[0] = 1.0
        found.append(design @ np.linalg.solve(design.T @ design, target))
    return np.stack(found)


def power_of_two(name: str, value: int) -> int:
    """``value``, rounded up to a power of two with a warning: a Sobol sequence is balanced at these sizes only."""
    value = integer(name, value, low=2)
    rounded = 1 << (value - 1).bit_length()
    if rounded != value:
        advise(f"{name} must be a power of two; {value} is rounded up to {rounded}", stacklevel=3)
    return rounded
