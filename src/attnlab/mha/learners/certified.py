"""Learners that select the number of heads and certify the result: what they do before and after their search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, generator
from attnlab.common.validation import integer, positive
from attnlab.mha.certificate import Certificate
from attnlab.mha.layer import Rows, rows_of
from attnlab.mha.learners.base import LayerRegressor, certify_layer, check_enough, check_examples, split_examples
from attnlab.mha.learners.selection import HeadSearch
from attnlab.mha.levenberg_marquardt import Fit
from attnlab.mha.race import Budget


class Prepared(NamedTuple):
    """Checked and split examples, the numbers of heads to try, and what the search may use."""

    X: np.ndarray
    y: np.ndarray
    rows: Rows
    held_out: tuple[np.ndarray, np.ndarray]
    law: str
    candidates: list[int]
    search: HeadSearch
    budget: Budget
    rng: np.random.Generator


class CertifiedRegressor(LayerRegressor):
    """Parameters and steps that the learners with head selection and certificate share."""

    n_heads: int | None
    max_heads: int
    tokens_law: str
    validation_fraction: float
    certificate_fraction: float
    label_bound: float | None
    delta: float
    max_seconds: float | None
    max_examples: int | None
    verbose: bool | int
    random_state: Seed

    n_heads_: int
    certificate_: Certificate | None

    def _prepare(self, X: ArrayLike, y: ArrayLike) -> Prepared:
        """Validate everything, then split the examples into train, validation and certificate."""
        tokens, outputs, law = check_examples(X, y, self.tokens_law)
        candidates = self._candidates()
        budget = Budget.of(self.max_seconds, self.verbose)
        rng = generator(self.random_state)
        tokens, outputs = tokens[: self.max_examples], outputs[: self.max_examples]
        split = split_examples(len(tokens), self.validation_fraction, self.certificate_fraction, rng)
        _, k, d = tokens.shape
        check_enough(len(split.train), candidates[0], d, k, outputs.shape[-1])
        train, labels = tokens[split.train], outputs[split.train]
        rows = rows_of(train, labels)
        search = HeadSearch(tokens[split.validation], outputs[split.validation], rows, budget)
        held_out = tokens[split.certificate], outputs[split.certificate]
        return Prepared(train, labels, rows, held_out, law, candidates, search, budget, rng)

    def _candidates(self) -> list[int]:
        """Validate the parameters; return the numbers of heads to try."""
        if self.max_seconds is not None:
            positive("max_seconds", self.max_seconds)
        if self.max_examples is not None:
            integer("max_examples", self.max_examples, low=2)
        if self.n_heads is not None:
            return [integer("n_heads", self.n_heads, low=1)]
        return list(range(1, integer("max_heads", self.max_heads, low=1) + 1))

    def _conclude(self, best: Fit, prepared: Prepared) -> None:
        """Keep the chosen layer and certify it on examples that nothing has seen."""
        self.theta_, self.w_, self.n_heads_ = best.theta, best.w, len(best.theta)
        self.n_tokens_ = prepared.X.shape[1]
        self.certificate_ = certify_layer(
            self.theta_,
            self.w_,
            *prepared.held_out,
            law=prepared.law,
            delta=self.delta,
            label_bound=self.label_bound,
        )
