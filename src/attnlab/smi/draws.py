"""Quasi-random numbers of the theory. It takes no seed: the scrambles are part of the quadrature rule."""

from __future__ import annotations

import functools

import numpy as np
from scipy import special
from scipy.stats import qmc

from attnlab.common.seeds import stream

REPLICATES = 8


@functools.lru_cache(maxsize=256)
def sobol_normals(dimension: int, size: int, tags: tuple[str | int, ...]) -> np.ndarray:
    """A scrambled Sobol sequence mapped to standard normal numbers, (size, dimension)."""
    bits = max(int(np.ceil(np.log2(max(size, 1)))), 0)
    points = qmc.Sobol(dimension, scramble=True, rng=stream(0, "theory", "smi", *tags)).random_base2(bits)[:size]
    # A scrambled point can round to 0 or 1.
    return np.asarray(special.ndtri(np.clip(points, 1e-15, 1 - 1e-15)))


def replicate_normals(dimension: int, draws: int, replicates: int, *tags: str | int) -> np.ndarray:
    """Independent scrambles of one sequence, (replicates, draws, dimension)."""
    return np.stack([sobol_normals(dimension, draws, (*tags, i)) for i in range(replicates)])


def power_of_two(name: str, value: int) -> int:
    """``value``, rounded up to a power of two with a warning: a Sobol sequence is balanced at these sizes only."""
    import warnings

    from attnlab.common.validation import integer

    value = integer(name, value, low=2)
    rounded = 1 << (value - 1).bit_length()
    if rounded != value:
        warnings.warn(f"{name} must be a power of two; {value} is rounded up to {rounded}", stacklevel=3)
    return rounded
