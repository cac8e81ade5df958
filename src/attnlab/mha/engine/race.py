r"""Random starts raced by Levenberg-Marquardt: short fits for all, long fits for the best.

Starts are :math:`\Theta = c\,G/d`, G Gaussian and c log-uniform in [0.2, 4]: from nearly uniform to sharp attention.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from attnlab.mha.engine.levenberg_marquardt import Fit, levenberg_marquardt
from attnlab.mha.layer import Rows

SHORT_STEPS = 12
LONG_STEPS = 120
# A short fit this good is on its way to the planted layer: no other start is needed.
PROMISING = 1e-6
EXACT = 1e-16
_FINALISTS = 3
_WITNESSES, _SAME = 4, 1e-3


@dataclass(frozen=True)
class Budget:
    """How long: ``deadline`` on ``time.monotonic()``. Progress goes to the logger ``attnlab.mha``."""

    deadline: float = np.inf

    @classmethod
    def of(cls, seconds: float | None) -> Budget:
        """A budget that starts now."""
        return cls(np.inf if seconds is None else time.monotonic() + seconds)

    def tell(self, message: str) -> None:
        """Report progress."""
        logging.getLogger("attnlab.mha").info(message)

    @property
    def spent(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.deadline


def short_rows(m: int, d: int, k: int) -> int:
    """Rows of a short fit: enough that a start is judged, few enough that many can be."""
    return max(600, 5 * m * d + 40 * k, 2 * d * d // max(k - 1, 1))


def long_rows(m: int, d: int, k: int) -> int:
    """Rows of a long fit; few unsaturated rows carry the information when attention is sharp."""
    return max(2000, 8 * m * d + 100 * k, 3 * d * d // max(k - 1, 1))


def random_starts(m: int, d: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Endless random starts."""
    while True:
        scale = np.exp(rng.uniform(np.log(0.2), np.log(4.0)))
        yield scale * rng.standard_normal((m, d, d)) / d


def race(
    rows: Rows,
    starts: Iterable[np.ndarray],
    *,
    rng: np.random.Generator,
    max_starts: int = 12,
    basis: np.ndarray | None = None,
    free: bool = True,
    budget: Budget | None = None,
    solver: Callable[..., Fit] = levenberg_marquardt,
) -> Fit:
    """The best long fit over the starts; its ``n_iter`` counts the steps of all.

    Every start gets a short fit on a subset of rows. The first that falls below ``PROMISING`` is fitted at length; when
    that ends exact the race is over. It is over, too, when four short fits end at the same error and a long one
    cannot halve it: that is the floor of the noise, or of too few heads. Otherwise the best three are fitted at length.

    Parameters
    ----------
    starts : asked for one by one, so that costly ones at the end are made only when the first did not settle the race.
    basis : with it the short fits move in this span only.
    free : whether the long fits leave the span.
    solver : fits in all entries of Theta; fits in a span are always those of this machine's BLAS.
    """
    budget = budget or Budget()
    k = rows.K.shape[1]
    made: list[Fit] = []

    def fit_at(part: Rows, start: np.ndarray, span: np.ndarray | None, **limits: Any) -> Fit:
        if span is None:
            made.append(solver(part, start, deadline=budget.deadline, **limits))
        else:
            made.append(levenberg_marquardt(part, start, basis=span, deadline=budget.deadline, **limits))
        return made[-1]

    def long_fit(fit: Fit) -> Fit:
        final = fit_at(long, fit.theta, basis if not free else None, max_iter=LONG_STEPS, progress=1e-4)
        budget.tell(f"  long fit: error {final.nmse:.1e} after {final.n_iter} steps")
        return final

    def winner(finals: list[Fit]) -> Fit:
        return replace(min(finals, key=lambda f: f.nmse), n_iter=sum(fit.n_iter for fit in made))

    fits: list[Fit] = []
    finals: list[Fit] = []
    for number, start in enumerate(islice(starts, max_starts)):
        if number == 0:
            m, d, _ = start.shape
            short, long = _subset(rows, short_rows(m, d, k), rng), _subset(rows, long_rows(m, d, k), rng)
        elif budget.spent:
            break
        fit = fit_at(short, start, basis, max_iter=SHORT_STEPS)
        budget.tell(f"  start {number + 1}: error {fit.nmse:.1e} after {fit.n_iter} steps")
        if fit.nmse < PROMISING:
            finals.append(long_fit(fit))
            if finals[-1].nmse < EXACT:
                return winner(finals)
        else:
            fits.append(fit)
        if not finals and (best := _agreed(fits)) is not None:
            finals.append(long_fit(best))
            if finals[-1].nmse < EXACT or finals[-1].nmse > best.nmse / 2:
                return winner(finals)
    for fit in sorted(fits, key=lambda f: f.nmse)[:_FINALISTS]:
        if finals and budget.spent:
            break
        finals.append(long_fit(fit))
        if finals[-1].nmse < EXACT:
            break
    return winner(finals)


def _agreed(fits: list[Fit]) -> Fit | None:
    """The best fit, if enough others ended at the same error."""
    ranked = sorted(fits, key=lambda f: f.nmse)
    if len(ranked) < _WITNESSES or ranked[_WITNESSES - 1].nmse > (1 + _SAME) * ranked[0].nmse:
        return None
    return ranked[0]


def _subset(rows: Rows, size: int, rng: np.random.Generator) -> Rows:
    if size >= len(rows):
        return rows
    return rows.take(np.sort(rng.choice(len(rows), size, replace=False)))
