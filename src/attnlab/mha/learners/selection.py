"""How many heads: fit one more as long as examples that were not fitted say that it helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from attnlab.mha.layer import Rows, attention
from attnlab.mha.learners.base import relative_error
from attnlab.mha.levenberg_marquardt import Fit, levenberg_marquardt
from attnlab.mha.race import Budget

# One more head must lower the validation error by this share.
WORTH = 0.02
EXACT_VALIDATION = 1e-14
NOISY = 1e-12
_POLISH_ROWS = 20_000
_POLISH_STEPS = 5


@dataclass
class HeadSearch:
    """Fits of 1, 2, ... heads, judged on validation examples."""

    X: np.ndarray
    y: np.ndarray
    rows: Rows
    budget: Budget
    log: list[dict[str, float]] = field(default_factory=list)

    def run(self, fit: Callable[[int], Fit], candidates: list[int]) -> Fit:
        """The fit with the fewest heads beyond which the validation error stops falling."""
        best: Fit | None = None
        lowest = np.inf
        for m in candidates:
            if best is not None and self.budget.spent:
                break
            found = polish(self.rows, fit(m), self.budget)
            error = self.judge(found)
            self.log.append({"n_heads": m, "train_nmse": found.nmse, "validation_nmse": error})
            self.budget.tell(f"{m} head(s): error {found.nmse:.1e} on fitted rows, {error:.1e} on validation")
            if best is not None and error > (1 - WORTH) * lowest:
                break
            best, lowest = found, error
            if error < EXACT_VALIDATION:
                break
        assert best is not None
        return best

    def judge(self, fit: Fit) -> float:
        """Error on validation examples; on the fitted rows where there are none."""
        if len(self.X) == 0:
            return fit.nmse
        return relative_error(self.y, attention(self.X, fit.theta, fit.w))


def polish(rows: Rows, fit: Fit, budget: Budget) -> Fit:
    """A few further steps on many rows, where labels are noisy and every row counts."""
    if fit.nmse < NOISY or budget.spent:
        return fit
    return levenberg_marquardt(
        rows.take(slice(0, _POLISH_ROWS)), fit.theta, max_steps=_POLISH_STEPS, deadline=budget.deadline
    )
