"""The practical front end: all kinds of starts raced, number of heads selected, the result certified."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, generator
from attnlab.common.validation import integer, one_of, positive
from attnlab.mha.alignment import equivalences
from attnlab.mha.certificate import Certificate
from attnlab.mha.layer import Rows, rows_of
from attnlab.mha.learners.base import LayerRegressor, certify_layer, check_enough, check_examples, split_examples
from attnlab.mha.learners.selection import HeadSearch
from attnlab.mha.levenberg_marquardt import Fit
from attnlab.mha.moments import moment_basis, moment_features
from attnlab.mha.race import Budget, race, random_starts
from attnlab.mha.sculpting.axes import long_axes
from attnlab.mha.sculpting.net import search_net
from attnlab.mha.sculpting.phases import sculpt

STARTS = ("random", "moment", "sculpted")
# Where sculpting was measured to find the span: few heads and tokens, many different rows.
_SCULPT_HEADS, _SCULPT_TOKENS, _SCULPT_ROWS = (2, 3), 4, 20_000
_MOMENT_FEATURES = 2200  # d (d + 1) d / 2 regression features: d <= 16
_FIRST_RANDOM = 4


class AttentionLearner(LayerRegressor):
    """Recover a multi-head attention layer from examples, quickly and with a certificate.

    For each number of heads, starts are raced by variable-projection Levenberg-Marquardt: a few random ones, then
    those of the moment method and of sculpting where they apply, then further random ones. A start that ends exact
    ends the race.

    Parameters
    ----------
    n_heads : number of heads; None selects it on validation examples, up to ``max_heads``.
    starts : which kinds of starts may enter, any of ``random``, ``moment``, ``sculpted``.
    max_starts : random starts of a race.
    tokens_law : ``boolean`` refuses tokens other than signs; ``auto`` looks.
    validation_fraction, certificate_fraction : shares of the examples kept from the fit.
    label_bound : a bound on the absolute labels for the certificate; None takes the fitted layer's own.
    delta : probability that a statement of the certificate is wrong.
    max_seconds, max_examples : budgets; at the end of the time the best layer so far is returned.
    verbose : print progress.

    Attributes
    ----------
    theta_, w_ : the layer; ``n_heads_`` their number.
    certificate_ : statements from untouched examples (None without any).
    log_ : one entry for each number of heads tried, with its errors, seconds and the start that won.
    validation_nmse_ : error of the chosen layer on validation examples.
    redundant_ : heads of the layer that are free or merged, as text; empty when every head is needed.

    Examples
    --------
    >>> from attnlab.mha import Task, align
    >>> task = Task(d=4, k=3, n_heads=2)
    >>> X, y = task.sample(300)
    >>> learner = AttentionLearner(random_state=0).fit(X, y)
    >>> learner.n_heads_, align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6
    (2, True)
    """

    certificate_: Certificate | None

    def __init__(
        self,
        n_heads: int | None = None,
        *,
        max_heads: int = 6,
        starts: tuple[str, ...] = STARTS,
        max_starts: int = 12,
        tokens_law: str = "auto",
        validation_fraction: float = 0.1,
        certificate_fraction: float = 0.1,
        label_bound: float | None = None,
        delta: float = 0.05,
        max_seconds: float | None = None,
        max_examples: int | None = None,
        verbose: bool | int = False,
        random_state: Seed = None,
    ) -> None:
        self.n_heads = n_heads
        self.max_heads = max_heads
        self.starts = starts
        self.max_starts = max_starts
        self.tokens_law = tokens_law
        self.validation_fraction = validation_fraction
        self.certificate_fraction = certificate_fraction
        self.label_bound = label_bound
        self.delta = delta
        self.max_seconds = max_seconds
        self.max_examples = max_examples
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> AttentionLearner:
        """Race, select, polish, certify."""
        tokens, outputs, law = check_examples(X, y, self.tokens_law)
        candidates = self._checked()
        budget = Budget.of(self.max_seconds, self.verbose)
        rng = generator(self.random_state)
        tokens, outputs = tokens[: self.max_examples], outputs[: self.max_examples]
        split = split_examples(len(tokens), self.validation_fraction, self.certificate_fraction, rng)
        _, k, d = tokens.shape
        check_enough(len(split.train), candidates[0], d, k, outputs.shape[-1])
        train, labels = tokens[split.train], outputs[split.train]
        rows = rows_of(train, labels)
        search = HeadSearch(tokens[split.validation], outputs[split.validation], rows, budget)
        seconds: dict[int, float] = {}

        def fit(m: int) -> Fit:
            begun = time.monotonic()
            starts = self._starts(m, train, labels, rows, rng, budget)
            found = race(rows, starts, rng=rng, max_starts=self.max_starts + len(STARTS) - 1, budget=budget)
            seconds[m] = time.monotonic() - begun
            return found

        best = search.run(fit, candidates)
        self.theta_, self.w_, self.n_heads_ = best.theta, best.w, len(best.theta)
        self.log_ = [{**entry, "seconds": seconds[int(entry["n_heads"])]} for entry in search.log]
        self.validation_nmse_ = search.judge(best)
        freedom = equivalences(self.theta_, self.w_, k, tolerance=1e-6)
        self.redundant_ = str(freedom) if freedom.free or freedom.merged else ""
        self.n_tokens_ = k
        held = split.certificate
        self.certificate_ = certify_layer(
            self.theta_, self.w_, tokens[held], outputs[held], law=law, delta=self.delta, label_bound=self.label_bound
        )
        return self

    def _checked(self) -> list[int]:
        """Validate the parameters; return the numbers of heads to try."""
        if not self.starts:
            raise ValueError(f"starts must name at least one of {STARTS}, got {self.starts!r}")
        for name in self.starts:
            one_of("starts", name, STARTS)
        integer("max_starts", self.max_starts, low=1)
        if self.max_seconds is not None:
            positive("max_seconds", self.max_seconds)
        if self.max_examples is not None:
            integer("max_examples", self.max_examples, low=2)
        if self.n_heads is not None:
            return [integer("n_heads", self.n_heads, low=1)]
        return list(range(1, integer("max_heads", self.max_heads, low=1) + 1))

    def _starts(
        self, m: int, X: np.ndarray, y: np.ndarray, rows: Rows, rng: np.random.Generator, budget: Budget
    ) -> Iterator[np.ndarray]:
        """Cheap starts first; the others are made only if they are asked for."""
        k, d = X.shape[1:]
        random = random_starts(m, d, rng)
        if "random" in self.starts:
            yield from islice(random, min(_FIRST_RANDOM, self.max_starts))
        if "moment" in self.starts and moment_features(d) <= _MOMENT_FEATURES and not budget.spent:
            yield search_net(rows, moment_basis(rows, m), 1.0, m, rng, budget, refine=False).theta
        sculptable = m in _SCULPT_HEADS and k <= _SCULPT_TOKENS and len(rows) >= _SCULPT_ROWS
        if "sculpted" in self.starts and sculptable and not budget.spent:
            point = sculpt(X, y, rows, budget=budget).point
            span = long_axes(point, m)
            yield search_net(rows, span.basis, float(np.linalg.norm(point.theta)), m, rng, budget, refine=False).theta
        if "random" in self.starts or budget.spent:
            yield from random


def learn(
    X: ArrayLike,
    y: ArrayLike,
    n_heads: int | None = None,
    *,
    max_seconds: float | None = None,
    max_examples: int | None = None,
    verbose: bool | int = False,
    random_state: Seed = 0,
) -> AttentionLearner:
    """Recover a layer from examples: a fitted :class:`AttentionLearner`.

    >>> from attnlab.mha import Task
    >>> X, y = Task(d=4, k=3, n_heads=1).sample(200)
    >>> learn(X, y).n_heads_
    1
    """
    return AttentionLearner(
        n_heads, max_seconds=max_seconds, max_examples=max_examples, verbose=verbose, random_state=random_state
    ).fit(X, y)
