r"""Random starts raced by Levenberg-Marquardt: short fits for all, long fits for the best.

Starts are :math:`\Theta = c\,G/d`, G Gaussian and c log-uniform in [0.2, 4]: from nearly uniform to sharp attention.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from attnlab.mha.layer import Rows
from attnlab.mha.levenberg_marquardt import Fit, levenberg_marquardt

SHORT_STEPS = 12
LONG_STEPS = 120
# A short fit this good is on its way to the planted layer: no other start is needed.
PROMISING = 1e-6
EXACT = 1e-16
_FINALISTS = 3
_WITNESSES, _SAME = 4, 1e-3


@dataclass(frozen=True)
class Budget:
    """How long and on how much: ``deadline`` on ``time.monotonic()``, and who is told about progress."""

    deadline: float = np.inf
    tell: Callable[[str], None] = lambda message: None

    @classmethod
    def of(cls, seconds: float | None, verbose: bool | int = False) -> Budget:
        """A budget that starts now."""
        deadline = np.inf if seconds is None else time.monotonic() + seconds
        return cls(deadline, print if verbose else cls.tell)

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
) -> Fit:
    """The best long fit over the starts.

    Every start gets a short fit on a subset of rows. The first that falls below ``PROMISING`` is fitted at length; when
    that ends exact the race is over. It is over, too, when four short fits end at the same error and a long one
    cannot halve it: that is the floor of the noise, or of too few heads. Otherwise the best three are fitted at length.

    Parameters
    ----------
    starts : asked for one by one, so that costly ones at the end are made only when the first did not settle the race.
    basis : with it the short fits move in this span only.
    free : whether the long fits leave the span.
    """
    budget = budget or Budget()
    k = rows.K.shape[1]
    long_basis = None if free else basis
    fits: list[Fit] = []
    finals: list[Fit] = []
    for number, start in enumerate(islice(starts, max_starts)):
        if number == 0:
            m, d, _ = start.shape
            short, long = _subset(rows, short_rows(m, d, k), rng), _subset(rows, long_rows(m, d, k), rng)
        elif budget.spent:
            break
        fit = levenberg_marquardt(short, start, max_steps=SHORT_STEPS, basis=basis, deadline=budget.deadline)
        budget.tell(f"  start {number + 1}: error {fit.nmse:.1e} after {fit.n_steps} steps")
        if fit.nmse < PROMISING:
            finals.append(_long_fit(long, fit, long_basis, budget))
            if finals[-1].nmse < EXACT:
                return finals[-1]
        else:
            fits.append(fit)
        if not finals and (best := _agreed(fits)) is not None:
            finals.append(_long_fit(long, best, long_basis, budget))
            if finals[-1].nmse < EXACT or finals[-1].nmse > best.nmse / 2:
                return finals[-1]
    for fit in sorted(fits, key=lambda f: f.nmse)[:_FINALISTS]:
        if finals and budget.spent:
            break
        finals.append(_long_fit(long, fit, long_basis, budget))
        if finals[-1].nmse < EXACT:
            break
    return min(finals, key=lambda f: f.nmse)


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


def _long_fit(rows: Rows, fit: Fit, basis: np.ndarray | None, budget: Budget) -> Fit:
    final = levenberg_marquardt(
        rows, fit.theta, max_steps=LONG_STEPS, basis=basis, progress=1e-4, deadline=budget.deadline
    )
    budget.tell(f"  long fit: error {final.nmse:.1e} after {final.n_steps} steps")
    return final
