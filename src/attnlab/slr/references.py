"""What theory says of the test errors on single-location regression."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from attnlab.common.prediction import Prediction
from attnlab.common.reference import Reference
from attnlab.slr.learners.amp import AMP
from attnlab.slr.learners.attention import Attention, LinearAttention, SoftmaxAttention, SoftplusAttention
from attnlab.slr.learners.erf_attention import SingleLocationAttention
from attnlab.slr.learners.predictors import LinearPredictor, OraclePredictor
from attnlab.slr.task import Task
from attnlab.slr.theory.bayes_optimal import bayes_state_evolution
from attnlab.slr.theory.erm import erm_state_evolution
from attnlab.slr.theory.linear import linear_learning_curve
from attnlab.slr.theory.population import bayes_risk, linear_risk, null_risk, oracle_risk

# Quasi-random points of the state evolutions: the error moves by less than 1 % against ten times as many.
DRAWS = 2**12


@functools.lru_cache(maxsize=1024)
def _known(theory: Callable[..., Prediction], task: Task, *arguments: Any, **options: Any) -> float | None:
    """The value, computed once for each law; None where the theory refuses the task or did not converge."""
    try:
        found = theory(task, *arguments, **options)
    except ValueError:
        return None
    return float(found) if found.converged else None


def _law(task: Task) -> Task:
    """The task without what no theory depends on."""
    return Task(task.d, task.L, noise_std=task.noise_std, law=task.law, lengths=task.lengths, locations=task.locations)


def null(task: Task, learner: Any, n: int) -> float | None:
    """Predicting zero; the output has the same variance under every law and length."""
    return _known(null_risk, _law(task))


def bayes(task: Task, learner: Any, n: int) -> float | None:
    """The best predictor that knows k* and v*."""
    return _known(bayes_risk, _law(task), n_draws=50_000)


def best_linear(task: Task, learner: LinearPredictor, n: int) -> float | None:
    """What no linear predictor falls below."""
    return _known(linear_risk, _law(task))


def linear(task: Task, learner: LinearPredictor, n: int) -> float | None:
    """Linear regression after n examples."""
    return _known(linear_learning_curve, _law(task), n, ridge=learner.ridge) if _number(learner.ridge) else None


def oracle(task: Task, learner: OraclePredictor, n: int) -> float | None:
    """Erf attention at the planted pair."""
    # With the truth of another task the layer is not at the planted pair of this one.
    if learner.task != task:
        return None
    return _known(oracle_risk, _law(task), lam=(task.d * task.L) ** -0.25 if learner.lam is None else learner.lam)


def message_passing(task: Task, learner: AMP, n: int) -> float | None:
    """State evolution, where the algorithm assumes the law that holds."""
    if not all(map(math.isclose, (learner.nu, learner.noise_std), (task.strength, task.noise_std))):
        return None
    # The theory is of the excess risk: the noise of the labels is added.
    found = _known(bayes_state_evolution, _law(task), n / task.d, n_draws=DRAWS)
    return None if found is None else found + task.noise_std**2


def empirical_risk(task: Task, learner: Any, n: int) -> float | None:
    """The minimiser of the regularised empirical risk."""
    ridges = {"ridge_k": learner.ridge_k, "ridge_v": learner.ridge_v}
    if not all(map(_number, ridges.values())):
        return None
    found = _known(erm_state_evolution, _law(task), learner.activation, n / task.d, n_draws=DRAWS, **ridges)
    return None if found is None else found + task.noise_std**2


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "exact", null),
    Reference("Bayes", Task, "exact", bayes),
    Reference("best linear", Task, "bound", best_linear, LinearPredictor),
    Reference("theory", Task, "asymptotic", linear, LinearPredictor),
    Reference("theory", Task, "exact", oracle, OraclePredictor),
    Reference("theory", Task, "asymptotic", message_passing, AMP),
    *(
        Reference("theory", Task, "heuristic", empirical_risk, attention)
        for attention in (Attention, SoftmaxAttention, LinearAttention, SoftplusAttention)
    ),
)

# Those that learn from examples alone: what a plan compares when no learner is named.
PLANNED = {Task: (SingleLocationAttention, SoftmaxAttention, LinearAttention, LinearPredictor)}
