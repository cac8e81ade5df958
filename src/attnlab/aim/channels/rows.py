"""Prediction errors of channels that act on each row of the indices by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from attnlab.aim.channels.channel import BATCHES, POINTS, Integral
from attnlab.aim.channels.residual import Residual
from attnlab.aim.quasi_random import normal_points

Row = tuple[tuple[float, float], ...]


def rows_error(
    residual: Residual,
    noise: float,
    predictor: str,
    output: Callable[[np.ndarray], np.ndarray],
    two_entries: Callable[[float, float, str], float],
) -> Integral:
    """E|y - y_hat|_F^2 as a sum over rows, whose logits are independent.

    ``two_entries(q, V, predictor)`` is the error of a row with two visible entries, whose logit difference has variance
    q known and V unknown; longer rows are averaged over quasi-random points.
    """
    value, variance = 0.0, 0.0
    for row, copies in Counter(_rows(residual, noise)).items():
        if len(row) == 2:
            # Variances of the difference of two independent entries.
            q, V = np.sum(row, axis=0)
            value += copies * two_entries(float(q), float(V), predictor)
        # A row with one visible entry has one possible output, and no error.
        elif len(row) > 2:
            found = [_sampled(row, predictor, output, seed) for seed in range(BATCHES)]
            value += copies * float(np.mean(found))
            # Copies share their points: errors add up, not their squares.
            variance += copies**2 * float(np.var(found, ddof=1)) / BATCHES
    return Integral(value, float(np.sqrt(variance)))


def _rows(residual: Residual, noise: float) -> list[Row]:
    """For each row, the variance of the known and of the unknown part of every visible entry of h."""
    layout = residual.layout
    rows = []
    for a, visible in enumerate(layout.visible):
        entries = []
        for b in map(int, np.flatnonzero(visible)):
            scale, V = float(layout.scale[layout.component[a, b]]) ** 2, residual.entry(a, b)
            entries.append((scale * (residual.total - V), scale * (V + noise)))
        # Sorted: the order of the keys does not change the error, and rows alike are integrated once.
        rows.append(tuple(sorted(entries)))
    return rows


def _sampled(row: Row, predictor: str, output: Callable[[np.ndarray], np.ndarray], seed: int) -> float:
    """One row: half the squared difference of two outputs that share omega (Bayes), or from the output at omega."""
    known, unknown = np.sqrt(np.array(row)).T
    omega, first, second = normal_points(3 * len(row), POINTS, seed).reshape(POINTS, 3, len(row)).swapaxes(0, 1)
    omega = known * omega
    y = output(omega + unknown * first)
    if predictor == "plug-in":
        return float(((y - output(omega)) ** 2).sum(axis=1).mean())
    return float(((y - output(omega + unknown * second)) ** 2).sum(axis=1).mean() / 2)
