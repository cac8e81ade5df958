"""Where a falling curve, known at a few sample sizes and with noise, crosses a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from attnlab.common.records import CONFIDENCE, Estimate
from attnlab.common.seeds import generator

RESAMPLES = 1000


def next_size(errors: Mapping[int, float], target: float, low: int, high: int, resolution: float) -> int | None:
    """The size to try next: doubled until the target is reached, then the geometric middle of the bracket.

    None when the bracket is narrower than ``resolution`` (a ratio), or when there is nothing left to try.

    >>> next_size({8: 1.0, 16: 0.4}, target=0.5, low=8, high=64, resolution=1.1)
    11
    """
    if not errors:
        return low
    sizes = sorted(errors)
    reached = [n for n in sizes if errors[n] <= target]
    if not reached:
        return min(2 * sizes[-1], high) if sizes[-1] < high else None
    right = reached[0]
    below = [n for n in sizes if n < right]
    # the second bound: between neighbouring integers nothing is left to try
    if not below or right <= max(below[-1] * resolution, below[-1] + 1):
        return None
    return round(math.sqrt(below[-1] * right))


def search(
    error: Callable[[int], float], target: float, low: int, high: int, resolution: float = 1.01
) -> dict[int, float]:
    """Follow :func:`next_size` along a known curve; what was evaluated."""
    errors: dict[int, float] = {}
    while (n := next_size(errors, target, low, high, resolution)) is not None:
        errors[n] = error(n)
    return errors


def first_below(sizes: Sequence[int], errors: np.ndarray, target: float) -> float:
    """The first crossing, interpolated in log n and log error; infinite where there is none.

    >>> round(first_below([10, 100], np.array([1.0, 0.01]), 0.1), 6)
    31.622777
    """
    hit = np.flatnonzero(errors <= target)
    if not len(hit):
        return math.inf
    i = int(hit[0])
    if i == 0 or not np.isfinite(errors[i - 1]):
        return float(sizes[i])
    # an error of zero has no logarithm: two decades below the target are far enough
    above, below = math.log(errors[i - 1] / target), math.log(max(errors[i], 0.01 * target) / target)
    left, right = math.log(sizes[i - 1]), math.log(sizes[i])
    return math.exp(left + (right - left) * above / (above - below))


def bootstrap(sizes: Sequence[int], errors: np.ndarray, target: float) -> Estimate:
    """The crossing of the mean curve over runs, ``errors`` (runs, sizes), with its percentile interval over runs."""
    runs = len(errors)
    value = first_below(sizes, errors.mean(axis=0), target)
    # resampling one run gives that run again: an interval of width zero, and no statement of the noise
    if runs == 1:
        return Estimate(value, value, value, 1)
    draws = generator(0).integers(runs, size=(RESAMPLES, runs))
    found = [first_below(sizes, errors[draw].mean(axis=0), target) for draw in draws]
    tail = 50 * (1 - CONFIDENCE)
    # an infinite crossing has no neighbour to interpolate with: take the order statistics themselves
    low, high = np.percentile(found, [tail, 100 - tail], method="nearest")
    # quantiles of resampled crossings need not contain the crossing of the mean itself
    return Estimate(value, float(min(low, value)), float(max(high, value)), runs)


def power_law(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """(a, b) of ``a n^b`` through the larger half of the sizes, where fixed costs matter least.

    >>> a, b = power_law([10, 20, 40, 80], [9.0, 9.0, 16.0, 64.0])
    >>> round(b, 6)
    2.0
    """
    order = np.argsort(sizes)[-max(2, (len(sizes) + 1) // 2) :]
    n, t = np.asarray(sizes, dtype=float)[order], np.maximum(np.asarray(seconds, dtype=float)[order], 1e-9)
    if len(n) < 2:
        return float(t[0]), 0.0
    slope, intercept = np.polyfit(np.log(n), np.log(t), 1)
    return float(np.exp(intercept)), float(slope)
