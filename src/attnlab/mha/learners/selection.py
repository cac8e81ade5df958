"""How many heads: fit one more as long as examples that were not fitted say that it helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from attnlab.common.advice import advise
from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.iterated import fit_rows
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.layer import Rows, attention
from attnlab.mha.learners.base import relative_error

# One more head must lower the validation error by this share.
WORTH = 0.02
EXACT_VALIDATION = 1e-14
NOISY = 1e-12
_POLISH_ROWS = 20_000
_POLISH_STEPS = 5
# Steps end at this gain of one: far below the share of the error, unknowns over equations, that the noise decides.
_POLISH_GAIN = 1e-7


@dataclass
class HeadSearch:
    """Fits of 1, 2, ... heads, judged on validation examples."""

    X: np.ndarray
    y: np.ndarray
    rows: Rows
    budget: Budget
    polishing: bool = True
    log: list[dict[str, float]] = field(default_factory=list)

    def run(self, fit: Callable[[int], Fit], candidates: list[int], *, selecting: bool) -> Fit:
        """The fit with the fewest heads beyond which the validation error stops falling."""
        best: Fit | None = None
        lowest, settled = np.inf, not selecting
        for m in candidates:
            if best is not None and self.budget.spent:
                break
            found = self._polished(fit(m), slice(0, _POLISH_ROWS))
            error = self.judge(found)
            self.log.append({"n_heads": m, "train_nmse": found.nmse, "validation_nmse": error})
            self.budget.tell(f"{m} head(s): error {found.nmse:.1e} on fitted rows, {error:.1e} on validation")
            # Written so that a NaN is no gain.
            if best is not None and not error < (1 - WORTH) * lowest:
                settled = True
                break
            best, lowest = found, error
            if error < EXACT_VALIDATION:
                settled = True
                break
        assert best is not None
        if not settled and not self.budget.spent:
            advise(
                f"{candidates[-1]} heads were reached and the validation error ({lowest:.1e}) was still falling: there "
                "may be more heads; raise max_heads, or give more examples where rank= is limited by their number",
                stacklevel=4,
            )
        # Candidates were polished on a part of the rows, the winner is on all.
        return self._polished(best, slice(None)) if len(self.rows) > _POLISH_ROWS else best

    def judge(self, fit: Fit) -> float:
        """Error on validation examples; on the fitted rows where there are none."""
        if len(self.X) == 0:
            return fit.nmse
        return relative_error(self.y, attention(self.X, fit.theta, fit.w))

    def _polished(self, fit: Fit, part: slice) -> Fit:
        """A few further steps on many rows, where labels are noisy and every row counts."""
        if not self.polishing or fit.nmse < NOISY or self.budget.spent:
            return fit
        rows = self.rows.take(part)
        limits = {"max_iter": _POLISH_STEPS, "progress": _POLISH_GAIN, "patience": 1}
        polished = fit_rows(rows, fit.theta, **limits, deadline=self.budget.deadline)
        # These steps are few on purpose: whether the fit settled was decided before them.
        return replace(polished, n_iter=fit.n_iter + polished.n_iter, reason=fit.reason, history=fit.history)
