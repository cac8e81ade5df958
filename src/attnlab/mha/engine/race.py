r"""Random starts raced by Levenberg-Marquardt: short fits for all, long fits for the best.

Starts are :math:`\Theta = c\,G/d`, G Gaussian and c log-uniform in [0.2, 4]: from nearly uniform to sharp attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.iterated import LARGE, fit_rows
from attnlab.mha.engine.levenberg_marquardt import Fit, levenberg_marquardt
from attnlab.mha.layer import Rows

SHORT_STEPS, LARGE_STEPS = 12, 16
LONG_STEPS = 120
# A short fit this good is on its way to the planted layer: no other start is needed.
PROMISING = 1e-6
# A fit to rounding, which no other start can better.
EXACT = 1e-16
_FINALISTS = 3
_WITNESSES, _SAME = 4, 1e-3


def short_rows(m: int, d: int, k: int) -> int:
    """Rows of a short fit: enough that a start is judged, few enough that many can be."""
    # The last term: a row says at most m (k - 1) numbers about the m d^2 of Theta, so d^2 / (k - 1) rows are the least.
    enough = max(600, 5 * m * d + 40 * k, 2 * d * d // max(k - 1, 1))
    # Steps of large layers are cheap in rows, and with twice as many the first start usually succeeds.
    return 2 * enough if m * d * d >= LARGE else enough


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
    solver: Callable[..., Fit] = fit_rows,
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
    m, d, _ = (first := next(starts := iter(starts))).shape
    contest = _Race(rows, (m, d, rows.K.shape[1]), rng, basis, free, budget or Budget(), solver)
    fits: list[Fit] = []
    for number, start in enumerate(islice(chain([first], starts), max_starts)):
        # The first start is fitted in any case, so that there is a layer to return.
        if number and contest.budget.spent:
            break
        fit = contest.short_fit(start, number)
        if fit.nmse >= PROMISING:
            fits.append(fit)
        elif contest.long_fit(fit).nmse < EXACT:
            return contest.winner()
        if not contest.finals and (best := _agreed(fits)) is not None:
            error = contest.long_fit(best).nmse
            if error < EXACT or error > best.nmse / 2:
                return contest.winner()
    for fit in sorted(fits, key=lambda f: f.nmse)[:_FINALISTS]:
        if contest.finals and contest.budget.spent:
            break
        if contest.long_fit(fit).nmse < EXACT:
            break
    return contest.winner()


class _Race:
    """The fits that were made, and on which rows."""

    def __init__(
        self,
        rows: Rows,
        sizes: tuple[int, int, int],
        rng: np.random.Generator,
        basis: np.ndarray | None,
        free: bool,
        budget: Budget,
        solver: Callable[..., Fit],
    ) -> None:
        self.short, self.long = (_subset(rows, count(*sizes), rng) for count in (short_rows, long_rows))
        self.basis, self.free, self.budget, self.solver = basis, free, budget, solver
        self.steps = 0
        self.finals: list[Fit] = []

    def short_fit(self, start: np.ndarray, number: int) -> Fit:
        """A fit of few steps on few rows."""
        fit = self._fit(self.short, start, self.basis, max_iter=SHORT_STEPS if start.size < LARGE else LARGE_STEPS)
        self.budget.tell(f"  start {number + 1}: error {fit.nmse:.1e} after {fit.n_iter} steps")
        return fit

    def long_fit(self, fit: Fit) -> Fit:
        """A finalist, from where a short fit has ended."""
        span = None if self.free else self.basis
        self.finals.append(self._fit(self.long, fit.theta, span, max_iter=LONG_STEPS, progress=1e-4))
        self.budget.tell(f"  long fit: error {self.finals[-1].nmse:.1e} after {self.finals[-1].n_iter} steps")
        return self.finals[-1]

    def winner(self) -> Fit:
        """The best finalist, with the steps of all."""
        return replace(min(self.finals, key=lambda f: f.nmse), n_iter=self.steps)

    def _fit(self, part: Rows, start: np.ndarray, span: np.ndarray | None, **limits: Any) -> Fit:
        if span is None:
            fit = self.solver(part, start, deadline=self.budget.deadline, **limits)
        else:
            fit = levenberg_marquardt(part, start, basis=span, deadline=self.budget.deadline, **limits)
        self.steps += fit.n_iter
        return fit


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
