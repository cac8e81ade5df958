"""The learners of the arena: each learner of the systems, with the adapters that fit it to tasks of other systems.

All learners see the same examples and choose their knob in the same way: from five settings, by leave-one-out where it
is exact and cheap (ridge regression), otherwise by three-fold cross-validation, always on the training examples alone.
Learners of layers have no such knob. Random starts are two. Every learner of a layer has the number of heads, and for
aim's layer its rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from attnlab.common.compute import Compute
from attnlab.lab import registry
from attnlab.lab.contests.adapters import (
    Calibrated,
    FlattenOutputs,
    FlattenTokens,
    PrependQuery,
    ScaleTokens,
)
from attnlab.lab.contests.readings import IndexedLayer, Layer
from attnlab.lab.contests.tasks import query

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

# Ridges down to 1e-8 need kernels in double precision.
DOUBLE = Compute(dtype="float64")

Builder = Callable[[Any, int], Any]


class Declined(Exception):
    """A learner cannot take a task, and the reason in a few words."""


class Forms(NamedTuple):
    """How a learner is built, ``(task, n) -> estimator``, for tasks with one output for each sequence, or with one for
    each token; None where it has no such form.
    """

    scalar: Builder | None = None
    sequence: Builder | None = None

    def build(self, task: Any, kind: str, n: int) -> Any:
        """The estimator for a task and n examples, or :class:`Declined`."""
        builder = self.scalar if kind == "scalar" else self.sequence
        if builder is None:
            raise Declined("one output per sequence" if self.scalar else "one output per token")
        return builder(task, n)


def learner(name: str, **params: Any) -> Any:
    """A learner of the systems by name."""
    return registry.learners()[name](**params)


def tuned(estimator: Any, values: tuple[float, ...], *knobs: str) -> Any:
    """A learner of slr on scaled tokens, its outputs calibrated; its knobs take the value that validates best."""
    model = make_pipeline(ScaleTokens(None), Calibrated(estimator))
    grid = [{f"calibrated__estimator__{knob}": [value] for knob in knobs} for value in values]
    return GridSearchCV(model, grid, cv=FOLDS, error_score="raise")


def _with_query(task: Any, model: Any, own: str = "zero") -> Any:
    """Learners of rfa take their own tasks as they are; other tokens are scaled to norm 1 and get a query."""
    if query(task) == "given":
        return model
    return make_pipeline(ScaleTokens(), PrependQuery("first" if query(task) == "first" else own), model)


def _attention(**params: Any) -> Any:
    return learner("rfa.RandomFeatureAttention", n_heads=HEADS, ridge=RIDGES, compute=DOUBLE, **params)


def _rfa(task: Any, n: int) -> Any:
    return _with_query(task, _attention())


def _brfa(task: Any, n: int) -> Any:
    # With a query of zeros the bias of W would do nothing.
    return _with_query(task, _attention(bias="identity"), "mean")


def _self_attention(task: Any, n: int, **params: Any) -> Any:
    if n * task.tokens > MOST_ROWS:
        raise Declined(f"over {MOST_ROWS} rows")
    model = learner("rfa.RandomFeatureSelfAttention", n_heads=HEADS, ridge=RIDGES, compute=DOUBLE, **params)
    return make_pipeline(ScaleTokens(), model)


def _rfa_layer(task: Any, n: int) -> Any:
    return _self_attention(task, n)


def _brfa_layer(task: Any, n: int) -> Any:
    return _self_attention(task, n, bias="identity")


def _rfmlp(task: Any, n: int) -> Any:
    model = learner("rfa.RandomFeatureMLP", width=HEADS * (task.d + 1), ridge=RIDGES, compute=DOUBLE)
    return model if query(task) == "given" else make_pipeline(ScaleTokens(), model)


def _patch(task: Any, n: int) -> Any:
    width = HEADS * (task.d + 1)
    return _with_query(task, learner("rfa.PatchRandomFeatures", width=width, ridge=RIDGES, compute=DOUBLE))


def _kernel(task: Any, n: int) -> Any:
    return _with_query(task, learner("rfa.AttentionKernelRidge", kernel="rfa", ridge=RIDGES, compute=DOUBLE))


def _erf(task: Any, n: int) -> Any:
    model = learner(
        "slr.SingleLocationAttention", step=0.02, n_steps=600, batch_size=64, penalty_mean=10.0, n_starts=STARTS
    )
    return tuned(model, TEMPERATURES, "lam")


def _softmax(task: Any, n: int) -> Any:
    return tuned(learner("slr.SoftmaxAttention", n_starts=STARTS), PENALTIES, "ridge_k", "ridge_v")


def _linear(task: Any, n: int) -> Any:
    return tuned(learner("slr.LinearPredictor"), SHRINKAGES, "ridge")


def _linear_layer(task: Any, n: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return make_pipeline(FlattenTokens(), FlattenOutputs(RidgeCV(n * np.array(SHRINKAGES))))


def _race(task: Any, n: int) -> Any:
    _enough(task, n)
    return learner("mha.AttentionLearner", n_heads=_heads(task), n_starts=STARTS, **_ALL_EXAMPLES)


def _sculpting(task: Any, n: int) -> Any:
    _enough(task, n)
    needed = 6 * task.d**2 // (task.tokens - 1) + 20
    if n * task.tokens < needed:
        raise Declined(f"needs {needed} rows")
    return learner("mha.SculptingLearner", n_heads=_heads(task), **_ALL_EXAMPLES)


def _moments(task: Any, n: int) -> Any:
    _enough(task, n)
    if task.d > MOMENT_WIDTH:
        raise Declined(f"needs d ≤ {MOMENT_WIDTH}")
    return learner("mha.MomentLearner", n_heads=_heads(task))


def _gradient(task: Any, n: int) -> Any:
    return learner("mha.GradientLearner", n_heads=_heads(task), n_starts=STARTS)


# The number of heads is known, so that nothing has to be held back to choose it.
_ALL_EXAMPLES = {"holdout": None}


def _enough(task: Any, n: int) -> None:
    needed = registry.theory()["mha.examples_needed"](_heads(task), task.d, task.tokens, _outputs(task))
    if n < needed:
        raise Declined(f"needs n ≥ {int(needed)}")


def _amp(task: Any, n: int) -> Any:
    law = _indexed(task)
    model = learner("aim.AMP", rho=law.rho, channel=law.channel, tol=1e-12, max_iter=400, compute=DOUBLE)
    return IndexedLayer(model, law.rho, law.beta)


def _tied(task: Any, n: int) -> Any:
    law = _indexed(task)
    descent = learner("aim.GradientDescent", width=law.width, n_starts=STARTS, channel=law.channel)
    return IndexedLayer(descent, law.rho, law.beta)


def _indexed(task: Any) -> Any:
    """The aim task behind a layer; the model of the tied learners holds for no other."""
    if not isinstance(task, Layer):
        raise Declined("not a tied head")
    return task.task


def _heads(task: Any) -> int:
    """Heads of the planted layer; 1 where the task does not have any."""
    return int(getattr(task, "n_heads", 1))


def _outputs(task: Any) -> int:
    """Width of the output of one token."""
    return int(task.sample(1, 0)[1].shape[-1])


def _own(item: type) -> Forms:
    """A learner of the user's own with its defaults; ``takes`` is the kind of its tasks."""
    takes = getattr(item, "takes", "scalar")

    def build(task: Any, n: int) -> Any:
        # The class and not an object: what it needs of the law is told by each replicate, which plants its own truth.
        return item

    return Forms(build if takes != "sequence" else None, build if takes != "scalar" else None)


def _brought(build: Builder) -> Forms:
    """A learner that a system brings to the arena."""

    def checked(task: Any, n: int) -> Any:
        estimator = build(task, n)
        if estimator is None:
            raise Declined("made for other tasks")
        return estimator

    return Forms(checked)


def entered() -> dict[str, Forms]:
    """All learners by name, and the user's own (:func:`attnlab.lab.add`).

    A learner of your own enters scalar tasks; with a class attribute ``takes = "sequence"`` those with an output for
    each token, with ``takes = "both"`` all.
    """
    brought = {name: _brought(build) for room in registry.arenas() for name, build in room.LEARNERS.items()}
    return (
        LEARNERS | brought | {name: _own(item) for name, item in registry.learners().items() if name.startswith("own.")}
    )


LEARNERS = {
    "RFA": Forms(_rfa, _rfa_layer),
    "BRFA": Forms(_brfa, _brfa_layer),
    "kernel": Forms(_kernel),
    "RFMLP": Forms(_rfmlp),
    "patch": Forms(_patch),
    "erf": Forms(_erf),
    "softmax": Forms(_softmax),
    "race": Forms(None, _race),
    "sculpting": Forms(None, _sculpting),
    "moments": Forms(None, _moments),
    "gradient": Forms(None, _gradient),
    "AMP": Forms(None, _amp),
    "tied": Forms(None, _tied),
    "linear": Forms(_linear, _linear_layer),
}
# Theory of slr's attention does not know the calibration of outputs; that of ridge regressions does not need to.
WITHOUT_THEORY = ("softmax", "erf")
