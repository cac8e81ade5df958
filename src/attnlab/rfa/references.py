"""What theory says of the test errors on the targets of random-feature attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attnlab.common.reference import Capacity, Reference
from attnlab.rfa.activations import Relu, as_activation
from attnlab.rfa.learners import AttentionKernelRidge, PatchRandomFeatures, RandomFeatureAttention, RandomFeatureMLP
from attnlab.rfa.learners.units import HEADS_MATCHED
from attnlab.rfa.task import Task
from attnlab.rfa.theory.heads import heads_needed
from attnlab.rfa.theory.learning_curve import learning_curve


def null(task: Task, learner: Any, n: int) -> float:
    """Predicting the mean of the target."""
    return task.variance + task.noise_std**2


def bayes(task: Task, learner: Any, n: int) -> float:
    """Knowing f*, one errs by the noise."""
    return task.noise_std**2


def theory(task: Task, learner: Any, n: int) -> Any:
    """The learning curve of the learner's heads or units, with its ridge; None where it is not known."""
    model = _model(learner, task)
    if model is None:
        return None
    try:
        curve = learning_curve(task, n, ridge=learner.ridge, tail="features", **model)
    except ValueError:  # a target or a law of the tokens without a known spectrum
        return None
    # The curve is relative to Var f* and leaves out the noise of the labels; a test error has it.
    scale = task.variance
    return replace(curve, value=curve.value * scale + task.noise_std**2, error=curve.error * scale)


def _model(learner: Any, task: Task) -> dict[str, Any] | None:
    """The model of the learning curve and its size, where the loss is squared and the spectrum known."""
    if learner.loss != "squared" or not isinstance(learner.ridge, int | float):
        return None
    if isinstance(learner, RandomFeatureMLP):
        return {"model": "rfmlp", "width": HEADS_MATCHED * (task.d + 1) if learner.width is None else learner.width}
    if learner.bias is not None:
        return None
    if isinstance(learner, AttentionKernelRidge):
        return {"model": learner.kernel} if learner.kernel in ("rfa", "rfmlp") else None
    # Equality includes tau: the spectrum is that of scores of variance one.
    return {"n_heads": learner.n_heads} if as_activation(learner.activation) == Relu() else None


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "exact", null),
    Reference("Bayes", Task, "exact", bayes),
    *(
        Reference("theory", Task, "asymptotic", theory, learner)
        for learner in (RandomFeatureAttention, AttentionKernelRidge, RandomFeatureMLP)
    ),
)


def size(task: Task, learner: Any, n: int) -> Any:
    """Heads or units from which on the error is within a tenth of that of infinitely many."""
    model = _model(learner, task)
    if model is None:
        return None
    try:
        return heads_needed(task, n, model=model.get("model", "rfa"), ridge=learner.ridge, tail="features")
    except ValueError:  # a target or a law of the tokens without a known spectrum
        return None


CAPACITIES: tuple[Capacity, ...] = (
    Capacity("n_heads", Task, RandomFeatureAttention, size),
    Capacity("width", Task, RandomFeatureMLP, size),
)

# Those that learn from examples alone: what a plan compares when no learner is named.
PLANNED = {Task: (RandomFeatureAttention, AttentionKernelRidge, RandomFeatureMLP, PatchRandomFeatures)}
