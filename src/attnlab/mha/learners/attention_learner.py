"""The practical front end: all kinds of starts raced, number of heads selected, the result certified."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from attnlab.common.advice import advise
from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute, placed
from attnlab.common.seeds import Seed
from attnlab.common.validation import integer, one_of
from attnlab.mha.alignment import equivalences
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.engine.low_rank import race_factors
from attnlab.mha.engine.moments import moment_basis, moment_features
from attnlab.mha.engine.place import full_solver
from attnlab.mha.engine.race import race, random_starts
from attnlab.mha.learners.base import check_examples
from attnlab.mha.learners.certified import CertifiedRegressor, Prepared
from attnlab.mha.learners.holdout import KEPT, Holdout
from attnlab.mha.learners.selection import EXACT_VALIDATION, WORTH
from attnlab.mha.sculpting.axes import long_axes
from attnlab.mha.sculpting.phases import sculpt
from attnlab.mha.sculpting.span_search import search_span

STARTS = ("random", "moment", "sculpted")
# Where sculpting was measured to find the span: few heads and tokens, many different rows.
_SCULPT_HEADS, _SCULPT_TOKENS, _SCULPT_ROWS = (2, 3), 4, 20_000
_MOMENT_FEATURES = 2300  # d (d + 1) d / 2 regression features: d <= 16
_FIRST_RANDOM = 4
# Factors were found from the first random starts with this many equations for each unknown, and not with half as many.
ENOUGH_EQUATIONS = 6.0
_FIRST_RANK, _RANK_TOL = 4, 1e-6


class AttentionLearner(CertifiedRegressor):
    """Recover a multi-head attention layer from examples, quickly and with a certificate.

    For each number of heads, starts are raced by variable-projection Levenberg-Marquardt in all entries of Theta: a
    few random ones, then those of the moment method and of sculpting where they apply, then further random ones. A
    start that ends exact ends the race. With ``rank`` the unknowns are factors of Theta, fitted by Gauss-Newton with
    conjugate gradients from random starts, which reaches wide layers with many heads.

    Parameters
    ----------
    n_heads : number of heads; None selects it on validation examples, up to ``max_heads``.
    rank : rank of the attention matrices; ``"auto"`` doubles it from 4 on while validation examples say that it helps.
        None fits all entries.
    bias : whether the layer has key biases and a constant (``key_bias_``, ``constant_``).
    starts : which kinds of starts may enter, any of ``random``, ``moment``, ``sculpted``; with ``rank`` random only.
    n_starts : random starts of a race; a kind of start that does not apply is replaced by one more.
    holdout : examples kept for the choice of heads and for the certificate; None keeps none.
    max_seconds : at the end of the time the best layer so far is returned.
    compute : where to compute (``device``, ``memory``): the CPU's BLAS, or a GPU through JAX.

    Progress is written to the logger ``attnlab.mha`` at level INFO.

    Attributes
    ----------
    theta_, w_ : the layer; ``n_heads_`` their number, ``rank_`` the rank that was fitted.
    certificate_ : statements from untouched examples (None without any).
    log_ : one entry for each number of heads tried, with its errors and seconds.
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

    def __init__(
        self,
        n_heads: int | None = None,
        *,
        max_heads: int = 6,
        rank: int | str | None = None,
        bias: bool = False,
        starts: tuple[str, ...] = STARTS,
        n_starts: int = 12,
        holdout: Holdout | None = KEPT,
        max_seconds: float | None = None,
        compute: Compute | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_heads = n_heads
        self.max_heads = max_heads
        self.rank = rank
        self.bias = bias
        self.starts = starts
        self.n_starts = n_starts
        self.holdout = holdout
        self.max_seconds = max_seconds
        self.compute = compute
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> AttentionLearner:
        """Race, select, polish, certify."""
        compute = (self.compute or Compute()).supports(self, "device", "memory")
        tokens, outputs = check_examples(X, y)
        ready = self._prepare(with_constant(tokens) if self.bias else tokens, outputs)
        # Polishing fits all entries of Theta and would leave the rank.
        ready.search.polishing = self.rank is None
        seconds: dict[int, float] = {}

        def fit(m: int) -> Fit:
            begun = time.monotonic()
            with placed(compute, self, "memory"):
                found = self._race(m, ready, compute) if self.rank is None else self._factored(m, ready)
            seconds[m] = time.monotonic() - begun
            return found

        best = ready.search.run(fit, self._determined(ready), selecting=self.n_heads is None)
        self._conclude(best, ready)
        self.log_ = [{**entry, "seconds": seconds[int(entry["n_heads"])]} for entry in ready.search.log]
        self.validation_nmse_ = ready.search.judge(best)
        # A fitted W is zero up to the error of the fit and not up to rounding.
        freedom = equivalences(self.theta_, self.w_, self.n_tokens_, tolerance=1e-6)
        self.redundant_ = str(freedom) if freedom.free or freedom.merged else ""
        self.rank_ = int(np.linalg.matrix_rank(self.theta_, tol=_RANK_TOL * np.abs(self.theta_).max()).max())
        if self.bias:
            # Last, since the certificate and what follows it are about the layer on tokens with a constant.
            self.theta_, self.w_, self.key_bias_, self.constant_ = without_constant(self.theta_, self.w_)
        return self

    def _race(self, m: int, ready: Prepared, compute: Compute) -> Fit:
        """Starts of all kinds, fitted in all entries of Theta."""
        return race(
            ready.rows,
            self._starts(m, ready),
            rng=ready.rng,
            max_starts=self.n_starts + sum(kind != "random" for kind in self.starts),
            budget=ready.budget,
            solver=full_solver(compute, m, ready.X.shape[-1], ready.budget),
        )

    def _factored(self, m: int, ready: Prepared) -> Fit:
        """Random starts, fitted in the factors; with ``rank="auto"`` for doubled ranks, then for the one that shows."""

        judge, budget, d = ready.search.judge, ready.budget, ready.X.shape[-1]

        def fit(rank: int) -> Fit:
            self._check_equations(ready, m, rank)
            return race_factors(ready.X, ready.y, m, rank, n_starts=self.n_starts, rng=ready.rng, budget=budget)

        rank = min(self._first_rank, d) if self.rank == "auto" else self._first_rank
        best = fit(rank)
        if self.rank != "auto":
            return best
        # A rank with fewer equations than unknowns ends the doubling and does not undo it.
        while (wide := min(2 * rank, d)) > rank and _equations(ready, m, wide) >= 1:
            if judge(best) <= EXACT_VALIDATION or budget.spent:
                break
            wider = fit(wide)
            if judge(wider) > (1 - WORTH) * judge(best):
                break
            best, rank = wider, wide
        sizes = np.linalg.svd(best.theta, compute_uv=False)
        # Each head by its own largest value, since heads may differ much in strength.
        visible = int(np.sum(sizes > _RANK_TOL * sizes[:, :1], axis=1).max())
        if visible >= rank or budget.spent:
            return best
        narrow = fit(visible)
        return narrow if judge(narrow) <= (1 + WORTH) * judge(best) or judge(narrow) <= EXACT_VALIDATION else best

    @property
    def _first_rank(self) -> int:
        return _FIRST_RANK if self.rank == "auto" else int(self.rank or 0)

    def _determined(self, ready: Prepared) -> list[int]:
        """The numbers of heads to try; a selection of heads of low rank ends where there are too few equations."""
        if self.rank is None:
            return ready.candidates
        first, *more = ready.candidates  # the first is refused when it is fitted
        return [first, *(m for m in more if _equations(ready, m, self._first_rank) >= 1)]

    def _check_enough(self, n: int, m: int, d: int, k: int, d_out: int) -> None:
        # Factors have fewer unknowns, which _check_equations counts for every rank.
        if self.rank is None:
            super()._check_enough(n, m, d, k, d_out)

    def _check_equations(self, ready: Prepared, m: int, rank: int) -> None:
        """Refuse fewer equations than unknowns; warn where random starts were seen to fail."""
        n, ratio = len(ready.X), _equations(ready, m, rank)
        if ratio < 1:
            raise ValueError(
                f"{n} examples to fit are too few for n_heads={m}, rank={rank}: equations/unknowns = {ratio:.1f}"
            )
        if ratio < ENOUGH_EQUATIONS:
            advise(
                f"equations/unknowns = {ratio:.1f} < {ENOUGH_EQUATIONS:g}: heads of rank {rank} may not be found from "
                f"{n} examples",
                stacklevel=6,
            )

    def _candidates(self) -> list[int]:
        """Validate the parameters; return the numbers of heads to try."""
        if not self.starts:
            raise ValueError(f"starts must name at least one of {STARTS}, got {self.starts!r}")
        for name in self.starts:
            one_of("starts", name, STARTS)
        integer("n_starts", self.n_starts, low=1)
        if self.rank is not None and self.rank != "auto":
            integer("rank", self.rank, low=1)
        return super()._candidates()

    def _starts(self, m: int, ready: Prepared) -> Iterator[np.ndarray]:
        """Cheap starts first; the others are made only if they are asked for."""
        rows, rng, budget = ready.rows, ready.rng, ready.budget
        k, d = ready.X.shape[1:]
        random = random_starts(m, d, rng)
        moments = "moment" in self.starts and moment_features(d) <= _MOMENT_FEATURES
        sculpted = m in _SCULPT_HEADS and k <= _SCULPT_TOKENS and len(rows) >= _SCULPT_ROWS
        sculpted = sculpted and "sculpted" in self.starts
        if not ("random" in self.starts or moments or sculpted):
            raise ValueError(
                f"starts={self.starts!r} has none for these examples: moments need d <= 16, sculpted starts "
                f"{_SCULPT_HEADS[0]} or {_SCULPT_HEADS[1]} heads, at most {_SCULPT_TOKENS} tokens and {_SCULPT_ROWS} "
                f"different rows, got d={d}, {m} heads, {k} tokens and {len(rows)} rows; add 'random'"
            )
        if "random" in self.starts:
            yield from islice(random, min(_FIRST_RANDOM, self.n_starts))
        if moments and not budget.spent:
            # Moments show the span of the heads and not their size: 1.0 is a guess. The race does the refinement.
            yield search_span(rows, moment_basis(rows, m), 1.0, m, rng, budget, refine=False).theta
        if sculpted and not budget.spent:
            point = sculpt(ready.X, ready.y, rows, budget=budget).point
            span = long_axes(point, m)
            yield search_span(rows, span.basis, float(np.linalg.norm(point.theta)), m, rng, budget, refine=False).theta
        # A race that has no time for its own starts still needs one to return.
        if "random" in self.starts or budget.spent:
            yield from random


def _equations(ready: Prepared, m: int, rank: int) -> float:
    """Equations for each unknown of m heads in factors."""
    n, k, d = ready.X.shape
    o = ready.y.shape[-1]
    # Two factors and a projection for each head; their freedom A G, B G^-T, r^2 numbers, is not taken off.
    return float(n * k * o / (m * d * (2 * rank + o)))


def with_constant(X: np.ndarray) -> np.ndarray:
    """Tokens with a last coordinate of one: a layer with biases is one without on these."""
    return np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=-1)


def without_constant(theta: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Theta, W, key biases and constant of a layer that was fitted to tokens with a constant."""
    return theta[:, :-1, :-1], w[:, :-1], theta[:, -1, :-1], w[:, -1].sum(axis=0)


def learn(
    X: ArrayLike,
    y: ArrayLike,
    n_heads: int | None = None,
    *,
    rank: int | str | None = None,
    bias: bool = False,
    max_seconds: float | None = None,
    compute: Compute | None = None,
    random_state: Seed = 0,
) -> AttentionLearner:
    """Recover a layer from examples: a fitted :class:`AttentionLearner`.

    >>> from attnlab.mha import Task
    >>> X, y = Task(d=4, k=3, n_heads=1).sample(200)
    >>> learn(X, y).n_heads_
    1
    """
    learner = AttentionLearner(
        n_heads, rank=rank, bias=bias, max_seconds=max_seconds, compute=compute, random_state=random_state
    )
    return learner.fit(X, y)
