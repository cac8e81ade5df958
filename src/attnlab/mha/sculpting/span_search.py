"""A search of the span by local fits: ours, in the place of the paper's net.

Random starts in the span are fitted inside it by Levenberg-Marquardt (m^2 unknowns), the best then freely.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.engine.race import race
from attnlab.mha.layer import Rows

SPAN_STARTS = 16


def span_starts(basis: np.ndarray, norm: float, m: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Random unit combinations of the basis, on the side of its first element, at 0.5 to 3 times ``norm``."""
    while True:
        coordinates = rng.standard_normal((m, len(basis)))
        coordinates[:, 0] = np.abs(coordinates[:, 0])
        coordinates /= np.linalg.norm(coordinates, axis=1, keepdims=True)
        scale = norm * np.exp(rng.uniform(np.log(0.5), np.log(3.0), (m, 1)))
        yield np.tensordot(scale * coordinates, basis, 1)


def search_span(
    rows: Rows,
    basis: np.ndarray,
    norm: float,
    m: int,
    rng: np.random.Generator,
    budget: Budget | None = None,
    *,
    refine: bool = True,
) -> Fit:
    """The best layer whose heads start in the span; without ``refine`` they stay in it."""
    starts = span_starts(basis, norm, m, rng)
    return race(rows, starts, rng=rng, max_starts=SPAN_STARTS, basis=basis, free=refine, budget=budget)
