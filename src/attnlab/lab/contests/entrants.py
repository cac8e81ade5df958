"""Who enters the arena: each learner of the systems, told how to meet a task of another system.

All learners see the same examples and choose their knob in the same way: from five settings, by leave-one-out where it
is exact and cheap (ridge regression), otherwise by three-fold cross-validation, always on the training examples alone.
Learners of layers have no such knob. Whoever starts at random has two starts. What is public of a layer is told to all
its learners: the number of heads, and for aim's layer its rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from attnlab.lab import registry
from attnlab.lab.contests.adapters import (
    Calibrated,
    FlattenOutputs,
    FlattenTokens,
    IndexedLayer,
    PrependQuery,
    ScaleTokens,
)
from attnlab.lab.contests.events import Stage, unpacked

HEADS = 300
STARTS = 2
RIDGES = (1e-8, 1e-6, 1e-4, 1e-2, 1.0)
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
SHRINKAGES = (1e-4, 1e-2, 0.1, 1.0, 100.0)
TEMPERATURES = (0.025, 0.05, 0.1, 0.2, 0.4)
FOLDS = 3
MOMENT_WIDTH = 16
# More rows than this make leave-one-out on self-attention a matter of minutes.
MOST_ROWS = 2100

Builder = Callable[[Stage, int], Any]


class Declined(Exception):
    """A learner cannot take a task, and the reason in a few words."""


@dataclass(frozen=True)
class Entrant:
    """A learner of the arena.

    Parameters
    ----------
    name : as shown and as typed.
    scalar, sequence : ``(stage, n) -> estimator`` for tasks with one output for each sequence, or with one for each
        token; None where the learner has no such form. They raise :class:`Declined` with a reason.
    """

    name: str
    scalar: Builder | None = None
    sequence: Builder | None = None

    def enter(self, stage: Stage, n: int) -> Any:
        """The estimator for a task and n examples, or :class:`Declined`."""
        builder = self.scalar if stage.kind == "scalar" else self.sequence
        if builder is None:
            raise Declined("one output per sequence" if self.scalar else "one output per token")
        return builder(stage, n)


def learner(name: str, **params: Any) -> Any:
    """A learner of the systems by name."""
    return registry.learners()[name](**params)


def tuned(estimator: Any, values: tuple[float, ...], *knobs: str) -> Any:
    """A learner of slr on scaled tokens, its outputs calibrated; its knobs take the value that validates best."""
    model = make_pipeline(ScaleTokens(None), Calibrated(estimator))
    grid = [{f"calibrated__estimator__{knob}": [value] for knob in knobs} for value in values]
    return GridSearchCV(model, grid, cv=FOLDS, error_score="raise")


def bare(fitted: Any) -> Any:
    """The learner inside whatever it wears, with the knob that was chosen: what theory speaks of, or None.

    Theory of slr's attention does not know the calibration of outputs; that of ridge regressions does not need to.
    """
    inner = fitted.best_estimator_[-1].estimator_ if type(fitted) is GridSearchCV else fitted
    if isinstance(inner, registry.learners()["slr.SoftmaxAttention"]):
        return None
    chosen = "ridge" in inner.get_params() and hasattr(inner, "ridge_")
    return clone(inner).set_params(ridge=inner.ridge_) if chosen else inner


def _with_query(stage: Stage, model: Any, query: str = "zero") -> Any:
    """Learners of rfa take their own tasks as they are; other tokens are scaled to norm 1 and get a query."""
    if stage.query == "given":
        return model
    return make_pipeline(ScaleTokens(), PrependQuery("first" if stage.query == "first" else query), model)


def _attention(**params: Any) -> Any:
    return learner("rfa.RandomFeatureAttention", n_heads=HEADS, ridge=RIDGES, dtype="float64", **params)


def _rfa(stage: Stage, n: int) -> Any:
    return _with_query(stage, _attention())


def _brfa(stage: Stage, n: int) -> Any:
    # With a query of zeros the bias of W would do nothing.
    return _with_query(stage, _attention(bias="identity"), "mean")


def _self_attention(stage: Stage, n: int, **params: Any) -> Any:
    if n * stage.tokens > MOST_ROWS:
        raise Declined(f"over {MOST_ROWS} rows")
    return make_pipeline(ScaleTokens(), _attention(self_attention=True, **params))


def _rfa_layer(stage: Stage, n: int) -> Any:
    return _self_attention(stage, n)


def _brfa_layer(stage: Stage, n: int) -> Any:
    return _self_attention(stage, n, bias="identity")


def _rfmlp(stage: Stage, n: int) -> Any:
    model = learner("rfa.RandomFeatureMLP", width=HEADS * (stage.d + 1), ridge=RIDGES, dtype="float64")
    return model if stage.query == "given" else make_pipeline(ScaleTokens(), model)


def _patch(stage: Stage, n: int) -> Any:
    width = HEADS * (stage.d + 1)
    return _with_query(stage, learner("rfa.PatchRandomFeatures", width=width, ridge=RIDGES, dtype="float64"))


def _kernel(stage: Stage, n: int) -> Any:
    return _with_query(stage, learner("rfa.AttentionKernelRidge", kernel="rfa", ridge=RIDGES, dtype="float64"))


def _erf(stage: Stage, n: int) -> Any:
    model = learner(
        "slr.SingleLocationAttention", step=0.02, n_steps=600, batch_size=64, penalty_mean=10.0, n_inits=STARTS
    )
    return tuned(model, TEMPERATURES, "lam")


def _softmax(stage: Stage, n: int) -> Any:
    return tuned(learner("slr.SoftmaxAttention", n_restarts=STARTS), PENALTIES, "ridge_k", "ridge_v")


def _linear(stage: Stage, n: int) -> Any:
    return tuned(learner("slr.LinearPredictor"), SHRINKAGES, "ridge")


def _linear_layer(stage: Stage, n: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return make_pipeline(FlattenTokens(), FlattenOutputs(RidgeCV(n * np.array(SHRINKAGES))))


def _race(stage: Stage, n: int) -> Any:
    _enough(stage, n)
    return learner("mha.AttentionLearner", n_heads=stage.heads, n_starts=STARTS, **_ALL_EXAMPLES)


def _sculpting(stage: Stage, n: int) -> Any:
    _enough(stage, n)
    needed = 6 * stage.d**2 // (stage.tokens - 1) + 20
    if n * stage.tokens < needed:
        raise Declined(f"needs {needed} rows")
    return learner("mha.SculptingLearner", n_heads=stage.heads, **_ALL_EXAMPLES)


def _moments(stage: Stage, n: int) -> Any:
    _enough(stage, n)
    if stage.d > MOMENT_WIDTH:
        raise Declined(f"needs d ≤ {MOMENT_WIDTH}")
    return learner("mha.MomentLearner", n_heads=stage.heads)


def _gradient(stage: Stage, n: int) -> Any:
    return learner("mha.GradientLearner", n_heads=stage.heads, n_starts=STARTS)


# The number of heads is known, so that nothing has to be held back to choose it.
_ALL_EXAMPLES = {"holdout": None}


def _enough(stage: Stage, n: int) -> None:
    needed = registry.theory()["mha.examples_needed"](stage.heads, stage.d, stage.tokens, stage.outputs)
    if n < needed:
        raise Declined(f"needs n ≥ {needed}")


def _amp(stage: Stage, n: int) -> Any:
    task = _indexed(stage)
    model = learner("aim.AMP", rho=task.rho, beta=task.beta, dtype="float64", tol=1e-12, max_iter=400)
    return IndexedLayer(model, task.rho, task.beta)


def _tied(stage: Stage, n: int) -> Any:
    task = _indexed(stage)
    descent = registry.learners()["aim.GradientDescent"](task.width, STARTS, beta=task.beta)
    return IndexedLayer(descent, task.rho, task.beta)


def _indexed(stage: Stage) -> Any:
    """The aim task behind a layer; the model of the tied learners holds for no other."""
    if stage.view != "layer":
        raise Declined("not a tied head")
    return stage.source


@dataclass(frozen=True)
class Own:
    """Builds a user's learner."""

    item: type

    def __call__(self, stage: Stage, n: int) -> Any:
        """The learner with its defaults."""
        return self.item()

    def __reduce__(self) -> tuple[Any, ...]:
        return unpacked, (Own, cloudpickle.dumps(self.item))


def entrants() -> dict[str, Entrant]:
    """All learners by name, and the user's own (:func:`attnlab.lab.add`).

    A learner of your own enters scalar tasks; with a class attribute ``takes = "sequence"`` those with an output for
    each token, with ``takes = "both"`` all.
    """
    found = {entrant.name: entrant for entrant in ENTRANTS}
    for name, item in registry.learners().items():
        if not name.startswith("own."):
            continue
        takes = getattr(item, "takes", "scalar")
        builder = Own(item)
        found[name] = Entrant(name, builder if takes != "sequence" else None, builder if takes != "scalar" else None)
    return found


ENTRANTS = (
    Entrant("RFA", _rfa, _rfa_layer),
    Entrant("BRFA", _brfa, _brfa_layer),
    Entrant("kernel", _kernel),
    Entrant("RFMLP", _rfmlp),
    Entrant("patch", _patch),
    Entrant("erf", _erf),
    Entrant("softmax", _softmax),
    Entrant("race", None, _race),
    Entrant("sculpting", None, _sculpting),
    Entrant("moments", None, _moments),
    Entrant("gradient", None, _gradient),
    Entrant("AMP", None, _amp),
    Entrant("tied", None, _tied),
    Entrant("linear", _linear, _linear_layer),
)
