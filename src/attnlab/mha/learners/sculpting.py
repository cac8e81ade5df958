"""The paper's algorithm as a learner, every phase open to inspection."""

from __future__ import annotations

import time

import numpy as np
from sklearn.utils.validation import check_is_fitted

from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import integer, one_of, positive
from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.layer import Rows, rows_of
from attnlab.mha.learners.base import check_examples
from attnlab.mha.learners.certified import CertifiedRegressor, Prepared
from attnlab.mha.learners.holdout import KEPT, Holdout
from attnlab.mha.sculpting import net
from attnlab.mha.sculpting.agreement import rows_needed
from attnlab.mha.sculpting.axes import Span, heads_by_gap, long_axes, span_of_chords
from attnlab.mha.sculpting.body import Body
from attnlab.mha.sculpting.phases import Sculpture, Step, sculpt
from attnlab.mha.sculpting.program import longest_chords, polytope
from attnlab.mha.sculpting.span_search import search_span
from attnlab.mha.theory.counts import net_size

BODIES = ("kl", "linear")
PHASES = ("refine", "span", *net.KINDS)


class SculptingLearner(CertifiedRegressor):
    r"""Recover a layer by sculpting a convex body around its attention matrices.

    Phases 1 to 5 follow arXiv:2402.04084: crude sum of projections, rows on which all heads agree, the convex body
    these rows cut out, its point of smallest norm, a refined sum and a new body, the body's long axes (the affine hull
    of the heads). None is non-convex in Theta and none needs a restart. What follows has a name of its own:

    ==========  ==========================  ====================================================================
    phase6      whose                       what is done
    ==========  ==========================  ====================================================================
    net         the paper's                 a grid of the affine hull, regression for every tuple
    plane       the paper's, other reading  the same in the ball of the linear span
    zoom        ours                        a grid of the plane that is made finer around the best pair
    span        ours, span search           Levenberg-Marquardt inside the span, from random starts
    refine      ours, free refinement       span search, then Levenberg-Marquardt in all entries of Theta
    ==========  ==========================  ====================================================================

    The first four end at the accuracy of the span; the last one makes the layer exact, and takes only its
    starts from the span.

    Parameters
    ----------
    n_heads : number of heads; None selects it on validation examples.
    max_heads : largest number tried when selecting.
    body : where the long axes are read: ``kl``, the Hessian of the divergence, or ``linear``, chords by linear
        programs.
    phase6 : see above. ``net``, ``plane`` and ``zoom`` take at most three heads (``zoom`` two).
    net_points, net_radius, net_rows : candidates of a net, its extent in units of the norm of the point of smallest
        norm, and rows that the regressions see (as many again judge the best).
    holdout : examples kept for the choice of heads and for the certificate; None keeps none.
    max_seconds : at the end of the time the best layer so far is returned.

    Attributes
    ----------
    theta_, w_ : the layer; ``n_heads_`` their number.
    steps_ : one :class:`Step` for each phase, in order; after ``fit_span`` also ``body_``, the convex body.
    span_ : orthonormal basis of the found span, ``(m, d, d)``, before any non-convex step.
    w_sum_ : the refined sum of projections.
    gap_heads_ : number of heads that the gap in the body's axes suggests.
    certificate_ : statements from untouched examples.
    log_ : errors for each number of heads tried.

    Examples
    --------
    >>> from attnlab.mha import Task
    >>> X, y = Task(d=4, k=2, n_heads=1, rho=2.0).sample(400)
    >>> learner = SculptingLearner(n_heads=1, random_state=0).fit(X, y)
    >>> [step.name for step in learner.steps_][:3]
    ['crude sum', 'agreeing rows', 'body and point of smallest norm']
    """

    steps_: list[Step]
    body_: Body

    def __init__(
        self,
        n_heads: int | None = None,
        *,
        max_heads: int = 4,
        body: str = "kl",
        phase6: str = "refine",
        net_points: int = 100,
        net_radius: float = 3.0,
        net_rows: int = 3000,
        holdout: Holdout | None = KEPT,
        max_seconds: float | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_heads = n_heads
        self.max_heads = max_heads
        self.body = body
        self.phase6 = phase6
        self.net_points = net_points
        self.net_radius = net_radius
        self.net_rows = net_rows
        self.holdout = holdout
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> SculptingLearner:
        """Run all phases."""
        ready = self._prepare(X, y)
        sculpture = self._sculpt(ready.X, ready.y, ready.rows, ready.budget)
        # Only a free refinement may leave the span.
        ready.search.polishing = self.phase6 == "refine"
        spans: dict[int, Span] = {}
        best = ready.search.run(
            lambda m: self._fit_heads(m, ready, sculpture, spans), ready.candidates, selecting=self.n_heads is None
        )
        self._conclude(best, ready)
        self.span_, self.curvatures_ = spans[self.n_heads_].basis, spans[self.n_heads_].curvatures
        self.log_ = ready.search.log
        return self

    def fit_span(self, X: ArrayLike, y: ArrayLike) -> SculptingLearner:
        """Phases 1 to 5 alone, on all examples: ``steps_``, ``body_``, ``span_`` and ``curvatures_``, but no layer."""
        tokens, outputs = check_examples(X, y)
        m = integer("n_heads", self.n_heads, low=1)
        # For its checks alone: the number of heads is given.
        self._candidates()
        sculpture = self._sculpt(tokens, outputs, rows_of(tokens, outputs), Budget.of(self.max_seconds))
        span = self._long_axes(m, sculpture, stream(self.random_state, "learner", "mha"))
        self.span_, self.curvatures_, self.body_ = span.basis, span.curvatures, sculpture.body
        return self

    def _sculpt(self, X: np.ndarray, y: np.ndarray, rows: Rows, budget: Budget) -> Sculpture:
        """Phases 1 to 4, with what they leave for inspection."""
        k, d = X.shape[1:]
        if len(rows) < rows_needed(k, d):
            raise ValueError(
                f"sculpting needs at least {rows_needed(k, d)} different rows for d={d}, k={k}, got {len(rows)}; "
                "AttentionLearner works with fewer"
            )
        sculpture = sculpt(X, y, rows, budget=budget)
        for step in sculpture.steps:
            budget.tell(f"{step.name}: {step.summary}")
        self.steps_ = list(sculpture.steps)
        self.w_sum_ = sculpture.agreement.w_sum
        # The last record is that of the last body.
        self.gap_heads_ = heads_by_gap(self.steps_[-1].arrays["curvatures"], self.max_heads)
        return sculpture

    def _candidates(self) -> list[int]:
        """Validate the parameters; return the numbers of heads to try."""
        one_of("body", self.body, BODIES)
        integer("net_points", self.net_points, low=2)
        positive("net_radius", self.net_radius)
        integer("net_rows", self.net_rows, low=1)
        candidates = super()._candidates()
        if one_of("phase6", self.phase6, PHASES) not in net.KINDS:
            return candidates
        most = 2 if self.phase6 == "zoom" else net.MOST_HEADS
        if self.n_heads is not None and self.n_heads > most:
            tuples = float(net_size(self.n_heads, self.net_points ** (self.n_heads - 1)))
            raise ValueError(
                f"phase6={self.phase6!r} takes at most {most} heads: n_heads={self.n_heads} would compare {tuples:.1e} "
                "tuples"
            )
        # A selection goes only as far as the net can compare tuples.
        return candidates[:most]

    def _fit_heads(self, m: int, ready: Prepared, sculpture: Sculpture, spans: dict[int, Span]) -> Fit:
        """Phases 5 and 6 for m heads."""
        # Kept for every m, since the number of heads is chosen later.
        spans[m] = self._long_axes(m, sculpture, ready.rng)
        if self.phase6 in net.KINDS:
            return self._net(spans[m], ready, sculpture)
        begun = time.monotonic()
        # The unit of the starts. Orthogonal heads of equal norm are sqrt(m) times as long, within the starts' range.
        norm = float(np.linalg.norm(sculpture.point.theta))
        free = self.phase6 == "refine"
        fit = search_span(ready.rows, spans[m].basis, norm, m, ready.rng, ready.budget, refine=free)
        summary = {"n_heads": float(m), "nmse": fit.nmse, "steps": float(fit.n_iter)}
        name = "span search and free refinement" if free else "span search"
        self.steps_.append(Step(name, time.monotonic() - begun, summary))
        return fit

    def _net(self, span: Span, ready: Prepared, sculpture: Sculpture) -> Fit:
        """The paper's phase 6: a net of candidates, regression for every tuple, the best judged on fresh rows."""
        begun = time.monotonic()
        # As many rows judge as choose: of thousands of tuples the best on some rows looks better there than it is.
        n = min(self.net_rows, len(ready.rows) // 2)
        order = ready.rng.permutation(len(ready.rows))
        rows, fresh = ready.rows.take(order[:n]), ready.rows.take(order[n : 2 * n])
        found = net.search_net(
            rows,
            fresh,
            sculpture.point.theta,
            span.axes,
            kind=self.phase6,
            points=self.net_points,
            radius=self.net_radius,
        )
        summary = {
            "n_heads": float(len(found.fit.theta)),
            "points": float(found.points),
            "tuples": float(found.tuples),
            "spacing": found.spacing,
            "nmse": found.fit.nmse,
            "fresh_nmse": found.fresh,
        }
        self.steps_.append(Step(f"{net.KINDS[self.phase6]}, regression", time.monotonic() - begun, summary))
        return found.fit

    def _long_axes(self, m: int, sculpture: Sculpture, rng: np.random.Generator) -> Span:
        """Phase 5, with its record."""
        begun = time.monotonic()
        span = self._span(m, sculpture, rng)
        summary = {"n_heads": float(m), "gap": span.gap}
        self.steps_.append(Step("long axes", time.monotonic() - begun, summary, {"basis": span.basis}))
        return span

    def _span(self, m: int, sculpture: Sculpture, rng: np.random.Generator) -> Span:
        span = long_axes(sculpture.point, m)
        # A single head has no long axis: its span is the point, whatever the body.
        if self.body == "kl" or m == 1:
            return span
        d = len(sculpture.point.theta)
        # Each try costs two linear programs: of the d^2 coordinate directions a dozen are looked at.
        chords = longest_chords(polytope(sculpture.agreement), m, tries=min(d * d, 12), rng=rng)
        return span_of_chords(chords, m)

    def transform_span(self, Theta: ArrayLike) -> np.ndarray:
        """Coordinates of attention matrices in the found span."""
        check_is_fitted(self, "span_")
        return np.tensordot(np.asarray(Theta, dtype=float), self.span_, axes=([1, 2], [1, 2]))
