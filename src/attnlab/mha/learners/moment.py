"""The moment method as a learner: first-order tensor, net in its span, refinement."""

from __future__ import annotations

from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, stream
from attnlab.common.stopping import ended
from attnlab.common.validation import integer
from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.moments import moment_basis, moment_features
from attnlab.mha.layer import rows_of
from attnlab.mha.learners.base import LayerRegressor, check_enough, check_examples
from attnlab.mha.sculpting.span_search import search_span

_MAX_FEATURES = 2300  # d <= 16
# Strength of the net's first starts: the tensor fixes the span, not the scale.
_NORM = 2.0


class MomentLearner(LayerRegressor):
    """Linearised attention, one regression, a rank-m decomposition; then a net in the span and Levenberg-Marquardt.

    The regression has d^2 (d + 1) / 2 features, so d is at most 16.

    Parameters
    ----------
    n_heads : number of heads.
    refine : False stays in the span of the moments.

    Attributes
    ----------
    theta_, w_ : the layer; ``span_ (m, d, d)`` the span found by the moments alone.

    Examples
    --------
    >>> from attnlab.mha import Task
    >>> X, y = Task(d=4, k=3, n_heads=2, rho=1.0).sample(500)
    >>> round(MomentLearner(n_heads=2, random_state=0).fit(X, y).score(X, y), 6)
    1.0
    """

    needs = ("n_heads",)

    def __init__(
        self, n_heads: int = 1, *, refine: bool = True, max_seconds: float | None = None, random_state: Seed = None
    ) -> None:
        self.n_heads = n_heads
        self.refine = refine
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> MomentLearner:
        """Moments, net, refinement."""
        tokens, outputs = check_examples(X, y)
        m = integer("n_heads", self.n_heads, low=1)
        n, k, d = tokens.shape
        check_enough(n, m, d, k, outputs.shape[-1])
        if moment_features(d) > _MAX_FEATURES:
            raise ValueError(f"the moment method needs {moment_features(d)} regression features at d={d}; use d <= 16")
        rows, rng = rows_of(tokens, outputs), stream(self.random_state, "learner", "mha")
        self.span_ = moment_basis(rows, m)
        fit = search_span(rows, self.span_, _NORM, m, rng, Budget.of(self.max_seconds), refine=self.refine)
        self.theta_, self.w_, self.n_tokens_ = fit.theta, fit.w, k
        ended(self, converged=fit.converged, reason=fit.reason, n_iter=fit.n_iter)
        return self
