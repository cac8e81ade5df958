r"""Phase 2a: rows on which all heads use the same pattern.

For a row, :math:`r = \min_{p \in \text{simplex}} \|y_a - p X \bar W\|`. When r is small all heads agree on p, since
:math:`y_a - p X \bar W = \sum_i (p^{(i)} - p) X W_i` and the map on the right has a smallest singular value
(arXiv:2402.04084). Agreement is found together with a better sum of projections by graduated trimming: regress
patterns, refit the sum on the rows that fit best, tighten. Residuals are relative to the spread of the row's values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attnlab.mha.layer import Rows
from attnlab.mha.sculpting.patterns import regress_patterns

INTERIOR = 0.95  # a pattern whose largest weight is below gives equalities, above only inequalities
FLOOR = 1e-3  # the scale is not lowered below: what is left there is rounding and the noise of the sum
REACH = 4.0  # rows up to this many scales enter the body, with falling weight
ROW_LIMIT = 20_000
_SATURATED_RESIDUAL = 0.05
_SHRINK = 0.75
_KEEP = 8.0  # rows beyond so many scales leave: their weight is below 3e-4
_HARD_ATTENTION = 0.15
# Trimming starts on this many rows and goes on with four times as many, row by row those still in play.
_FIRST_LEVEL = 20_000
_LEVEL_GROWTH = 4


@dataclass(frozen=True)
class Agreement:
    """Rows still in play, their common patterns and residuals, and the refined sum of projections.

    ``history`` has one entry a round: rows looked at, rows in play, scale, and relative change of the sum.
    """

    rows: Rows
    patterns: np.ndarray
    residuals: np.ndarray
    w_sum: np.ndarray
    scale: float
    history: tuple[dict[str, float], ...]

    @property
    def interior(self) -> np.ndarray:
        """Which rows have a pattern that gives equalities."""
        return self.patterns.max(axis=1) < INTERIOR

    def accepted(self, reach: float = REACH, limit: int = ROW_LIMIT) -> np.ndarray:
        """Rows for the body, those with interior patterns (equalities) before saturated ones (inequalities).

        Interior patterns need r < reach * scale, saturated ones also r < 0.05.
        """
        bound = reach * self.scale
        fits = self.residuals < np.where(self.interior, bound, min(bound, _SATURATED_RESIDUAL))
        # lexsort takes its last key first.
        order = np.lexsort((self.residuals, ~self.interior))
        return order[fits[order]][:limit]

    @property
    def weights(self) -> np.ndarray:
        """Geman and McClure's weight of each row: one for perfect agreement, 1/4 at the scale."""
        return (1 + (self.residuals / self.scale) ** 2) ** -2


def rows_needed(k: int, d: int) -> int:
    """Interior rows that the body needs: each gives k - 1 equalities, and there are d^2 unknowns."""
    return 6 * d * d // (k - 1) + 20


def refit_sum(rows: Rows, patterns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted least squares of y on p X."""
    Z = np.einsum("rb,rbd->rd", patterns, rows.K)
    weighted = Z * weights[:, None]
    gram = weighted.T @ Z
    # Few rows have weight early on and need not span the tokens.
    gram[np.diag_indices_from(gram)] += 1e-10 * np.trace(gram) / len(gram)
    return np.linalg.solve(gram, weighted.T @ rows.Y)


def find_agreement(rows: Rows, w_sum: np.ndarray, *, max_iter: int = 60, deadline: float = np.inf) -> Agreement:
    """Graduated trimming from a crude sum of projections, on growing sets of rows.

    The scale starts at the 30 % quantile of the residuals and shrinks by 0.75 a round, down to the residual of the
    best :func:`rows_needed` interior rows. Then more rows are looked at with the sum found so far, which lets the scale
    shrink further: rare agreement is searched for only with a sum that recognises it. Where attention is hard there
    are too few interior rows and the floor is used. Weights are Geman and McClure's, (1 + (r/s)^2)^-2.
    """
    state: Agreement | None = None
    for level in _levels(len(rows)):
        looked_at = rows.take(slice(0, level))
        beyond = np.inf if state is None else _KEEP * state.scale
        patterns, residuals = regress_patterns(looked_at, w_sum, beyond=beyond)
        scale = float(np.quantile(residuals, 0.3)) if state is None else state.scale
        if state is not None:
            looked_at, patterns, residuals = _in_play(looked_at, patterns, residuals, scale)
        history = () if state is None else state.history
        state = Agreement(looked_at, patterns, residuals, w_sum, scale, history)
        state = trim(state, level, max_iter=max_iter, deadline=deadline)
        w_sum = state.w_sum
    assert state is not None
    return state


def sculpt_again(rows: Rows, w_sum: np.ndarray, before: Agreement, *, deadline: float = np.inf) -> Agreement:
    """Phase 4: look at all rows again with a refined sum, starting from the scale reached before."""
    patterns, residuals = regress_patterns(rows, w_sum, beyond=_KEEP * before.scale)
    in_play = _in_play(rows, patterns, residuals, before.scale)
    return trim(Agreement(*in_play, w_sum, before.scale, before.history), len(rows), deadline=deadline)


def trim(state: Agreement, level: int, *, max_iter: int = 60, deadline: float = np.inf) -> Agreement:
    """Rounds of pattern regression, refit and tightening, until the scale leaves just enough interior rows."""
    enough = rows_needed(*state.rows.K.shape[1:])
    rows, patterns, residuals, w_sum, scale = state.rows, state.patterns, state.residuals, state.w_sum, state.scale
    history = list(state.history)
    for number in range(max_iter):
        refined = refit_sum(rows, patterns, (1 + (residuals / scale) ** 2) ** -2)
        change = float(np.linalg.norm(refined - w_sum) / np.linalg.norm(refined))
        w_sum = refined
        patterns, residuals = regress_patterns(rows, w_sum, patterns)
        history.append({"looked_at": float(level), "rows": float(len(rows)), "scale": scale, "change": change})
        bottom = _bottom(patterns, residuals, enough)
        if scale <= bottom * (1 + 1e-9) or time.monotonic() >= deadline:
            break
        scale = max(_SHRINK * scale, bottom)
        # The crude sum misplaces good rows: none leaves before it has been refitted a few times.
        if number >= 3 or state.history:
            rows, patterns, residuals = _in_play(rows, patterns, residuals, scale)
    return Agreement(rows, patterns, residuals, w_sum, scale, tuple(history))


def _levels(r: int) -> Iterator[int]:
    level = _FIRST_LEVEL
    while level < r:
        yield level
        level *= _LEVEL_GROWTH
    yield r


def _in_play(
    rows: Rows, patterns: np.ndarray, residuals: np.ndarray, scale: float
) -> tuple[Rows, np.ndarray, np.ndarray]:
    kept = residuals < _KEEP * scale
    return rows.take(kept), patterns[kept], residuals[kept]


def _bottom(patterns: np.ndarray, residuals: np.ndarray, enough: int) -> float:
    """The scale at which just enough interior rows are left."""
    interior = np.sort(residuals[patterns.max(axis=1) < INTERIOR])
    q = interior[enough - 1] if len(interior) >= enough else np.inf
    # Too few interior rows agree: attention is hard, and saturated rows have to do.
    return FLOOR if q > _HARD_ATTENTION else max(float(q), FLOOR)
