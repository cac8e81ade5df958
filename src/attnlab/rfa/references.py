"""What theory says of the test errors on the targets of random-feature attention."""

from __future__ import annotations

from typing import Any

from attnlab.common.reference import Reference
from attnlab.rfa.learners.attention import RandomFeatureAttention
from attnlab.rfa.learners.kernel_ridge import AttentionKernelRidge
from attnlab.rfa.learners.units import HEADS_MATCHED, RandomFeatureMLP
from attnlab.rfa.task import Task
from attnlab.rfa.theory.learning_curve import learning_curve

# The law of W for which the spectra are known. With this many features per example the error is at most a quarter above
# that of infinitely many (measured where the error is more than a twentieth of the null).
TAU = 0.5
FEATURES = 16


def null(task: Task, learner: Any, n: int) -> float:
    """Predicting the mean of the target."""
    return task.variance + task.noise_std**2


def bayes(task: Task, learner: Any, n: int) -> float:
    """Whoever knows f* errs by the noise."""
    return task.noise_std**2


def attention(task: Task, learner: RandomFeatureAttention, n: int) -> float | None:
    """Random-feature attention with many heads."""
    given = learner.get_params()
    plain = {"score": "relu", "normalize": "mean", "position": None, "self_attention": False, "bias": None, "tau": TAU}
    if any(given[name] != value for name, value in plain.items()):
        return None
    if learner.n_heads * (task.d + 1) < FEATURES * n:
        return None
    return _ridge_regression(task, learner, n, "rfa")


def kernel(task: Task, learner: AttentionKernelRidge, n: int) -> float | None:
    """Infinitely many heads, or units."""
    models = {"rfa": "rfa", "mlp": "rfmlp"}
    if learner.kernel not in models or learner.bias is not None or learner.tau != TAU:
        return None
    return _ridge_regression(task, learner, n, models[learner.kernel])


def units(task: Task, learner: RandomFeatureMLP, n: int) -> float | None:
    """Random features of all tokens concatenated."""
    width = HEADS_MATCHED * (task.d + 1) if learner.width is None else learner.width
    return None if width < FEATURES * n else _ridge_regression(task, learner, n, "rfmlp")


def _ridge_regression(task: Task, learner: Any, n: int, model: str) -> float | None:
    """The learning curve with the learner's ridge, for polynomial targets on the sphere."""
    if task.family is None or task.family.energies is None or task.token_law != "sphere":
        return None
    if learner.loss != "squared" or learner.norm_bound is not None or not isinstance(learner.ridge, int | float):
        return None
    curve = learning_curve(task, n, model=model, ridge=learner.ridge)
    return float(curve) * task.variance + task.noise_std**2 if curve.converged else None


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "exact", null),
    Reference("Bayes", Task, "exact", bayes),
    Reference("theory", Task, "asymptotic", attention, RandomFeatureAttention),
    Reference("theory", Task, "asymptotic", kernel, AttentionKernelRidge),
    Reference("theory", Task, "asymptotic", units, RandomFeatureMLP),
)
