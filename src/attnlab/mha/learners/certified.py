"""Learners that select the number of heads and certify the result: what they do before and after their search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import integer, positive
from attnlab.mha.certificate import Certificate, certify, check_labels, output_bound
from attnlab.mha.engine.damped import OUT_OF_TIME, Budget
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.layer import Rows, attention, rows_of
from attnlab.mha.learners.base import LayerRegressor, are_signs, check_enough, check_examples
from attnlab.mha.learners.holdout import NOTHING, Holdout
from attnlab.mha.learners.selection import HeadSearch


class Prepared(NamedTuple):
    """Checked and split examples, the numbers of heads to try, and what the search may use."""

    X: np.ndarray
    y: np.ndarray
    rows: Rows
    untouched: tuple[np.ndarray, np.ndarray]
    candidates: list[int]
    search: HeadSearch
    budget: Budget
    rng: np.random.Generator


class CertifiedRegressor(LayerRegressor):
    """Parameters and steps that the learners with head selection and certificate share."""

    n_heads: int | None
    max_heads: int
    holdout: Holdout | None
    max_seconds: float | None
    random_state: Seed

    n_heads_: int
    certificate_: Certificate | None

    def _prepare(self, X: ArrayLike, y: ArrayLike) -> Prepared:
        """Validate everything, then split the examples into train, validation and certificate."""
        tokens, outputs = check_examples(X, y)
        candidates = self._candidates()
        holdout = self.holdout or NOTHING
        if holdout.label_bound is not None:
            # The certificate would refuse the bound too, but only after the fit.
            check_labels(outputs, holdout.label_bound)
        budget = Budget.of(self.max_seconds)
        rng = stream(self.random_state, "learner", "mha")
        split = holdout.split(len(tokens), rng)
        _, k, d = tokens.shape
        # Only the fewest heads that are tried: more may have too few equations, and validation judges them.
        self._check_enough(len(split.train), candidates[0], d, k, outputs.shape[-1])
        train, labels = tokens[split.train], outputs[split.train]
        rows = rows_of(train, labels)
        search = HeadSearch(tokens[split.validation], outputs[split.validation], rows, budget)
        untouched = tokens[split.certificate], outputs[split.certificate]
        return Prepared(train, labels, rows, untouched, candidates, search, budget, rng)

    def _check_enough(self, n: int, m: int, d: int, k: int, d_out: int) -> None:
        check_enough(n, m, d, k, d_out)

    def _candidates(self) -> list[int]:
        """Validate the parameters; return the numbers of heads to try."""
        if self.max_seconds is not None:
            positive("max_seconds", self.max_seconds)
        if self.n_heads is not None:
            return [integer("n_heads", self.n_heads, low=1)]
        return list(range(1, integer("max_heads", self.max_heads, low=1) + 1))

    def _conclude(self, best: Fit, prepared: Prepared) -> None:
        """Keep the chosen layer and certify it on examples that nothing has seen."""
        self.theta_, self.w_, self.n_heads_ = best.theta, best.w, len(best.theta)
        self.n_tokens_ = prepared.X.shape[1]
        # The cut comes from fitted labels: one chosen from the untouched examples would void the bound.
        self.certificate_ = self._certified(*prepared.untouched, float(np.mean(prepared.y**2)))
        # The best fit may have settled in a search that the time cut short.
        reason = OUT_OF_TIME if prepared.budget.spent else best.reason
        ended(self, converged=best.converged and reason == best.reason, reason=reason, n_iter=best.n_iter)

    def _certified(self, X: np.ndarray, y: np.ndarray, mean_square: float) -> Certificate | None:
        """Certificate on untouched examples; None without any. The loss is cut at that of predicting zero."""
        if len(X) == 0 or self.holdout is None:
            return None
        return certify(
            attention(X, self.theta_, self.w_),
            y,
            label_bound=self.holdout.label_bound,
            # Weights of a pattern sum to one, so that on the cube |W| bounds an output; other tokens give no bound.
            output_bound=output_bound(self.w_) if are_signs(X) else np.inf,
            cut=mean_square,
            delta=self.holdout.delta,
        )
