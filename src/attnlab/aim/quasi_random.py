"""Quasi-random points for expectations that have no closed form."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from attnlab.common.seeds import stream


def normal_points(dimension: int, n: int, seed: int = 0) -> np.ndarray:
    """n quasi-random points of N(0, I), (n, dimension)."""
    return np.asarray(ndtri(uniform_points(dimension, n, seed)))


def uniform_points(dimension: int, n: int, seed: int = 0) -> np.ndarray:
    """n points of the unit cube, (n, dimension): Sobol's sequence, shifted at random as a whole; n a power of two is
    best.
    """
    from scipy.stats import qmc  # slow to import

    bits = max(int(np.ceil(np.log2(n))), 1)
    # The random shift makes the average over seeds unbiased, and moves the first point off 0, where ndtri is infinite.
    grid = qmc.Sobol(dimension, scramble=False).random_base2(bits)[:n]
    return np.asarray((grid + stream(seed, "theory", "aim", "points").random(dimension)) % 1.0)
