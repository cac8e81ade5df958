"""What theory says of the test errors on single-location regression."""

from __future__ import annotations

import functools
import math
from typing import Any

from attnlab.common.reference import Reference
from attnlab.slr.learners.amp import AMP
from attnlab.slr.learners.attention import LinearAttention, SoftmaxAttention, SoftplusAttention
from attnlab.slr.learners.predictors import LinearPredictor, OraclePredictor
from attnlab.slr.task import Task
from attnlab.slr.theory.advantage import bayes_attention_risk
from attnlab.slr.theory.bayes_optimal import bayes_state_evolution
from attnlab.slr.theory.erm import erm_state_evolution
from attnlab.slr.theory.linear import linear_learning_curve
from attnlab.slr.theory.population import bayes_risk, linear_risk, null_risk, oracle_risk

# Quasi-random points of the state evolutions: the error moves by less than 1 % against ten times as many.
DRAWS = 2**12


def null(task: Task, learner: Any, n: int) -> float:
    """Predicting zero; the output has the same variance under every law and length."""
    return null_risk(gamma=task.gamma, noise_std=task.noise_std)


def bayes(task: Task, learner: Any, n: int) -> float | None:
    """The best predictor that knows k* and v*."""
    if task.gamma == 1:
        risk = bayes_attention_risk(nu=task.strength, L=task.L, law=task.law, lengths=task.lengths)
        return risk + task.noise_std**2
    if task.nu is None and task.lengths is None:
        return _bayes(task.d, task.L, task.gamma) + task.noise_std**2
    return None


@functools.lru_cache(maxsize=64)
def _bayes(d: int, L: int, gamma: float) -> float:
    return bayes_risk(d=d, L=L, gamma=gamma, n_draws=50_000).value


def best_linear(task: Task, learner: LinearPredictor, n: int) -> float | None:
    """What no linear predictor falls below."""
    if task.lengths is not None:
        return None
    return float(linear_risk(L=task.L, gamma=task.gamma, noise_std=task.noise_std))


def linear(task: Task, learner: LinearPredictor, n: int) -> float | None:
    """Linear regression after n examples."""
    if task.lengths is not None or not isinstance(learner.ridge, int | float):
        return None
    return linear_learning_curve(
        n,
        d=task.d,
        L=task.L,
        gamma=task.gamma,
        noise_std=task.noise_std,
        nu=None if task.law == "max" else task.nu,
        law=task.law,
        ridge=learner.ridge,
    )


def oracle(task: Task, learner: OraclePredictor, n: int) -> float | None:
    """Erf attention at the planted pair."""
    if task.law != "spiked" or task.nu is not None or task.lengths is not None or learner.task != task:
        return None
    lam = (task.d * task.L) ** -0.25 if learner.lam is None else learner.lam
    return float(oracle_risk(d=task.d, L=task.L, lam=lam, gamma=task.gamma, noise_std=task.noise_std))


def message_passing(task: Task, learner: AMP, n: int) -> float | None:
    """State evolution, where the algorithm assumes the law that holds."""
    assumed = learner.nu, learner.noise_var
    if task.law != "spiked" or task.gamma != 1 or task.lengths is not None or not task.noise_std:
        return None
    if not all(map(math.isclose, assumed, (task.strength, task.noise_std**2))):
        return None
    return _message_passing(n / task.d, task.strength, task.L, task.noise_std**2)


@functools.lru_cache(maxsize=1024)
def _message_passing(alpha: float, nu: float, L: int, noise_var: float) -> float | None:
    found = bayes_state_evolution(alpha, nu=nu, L=L, noise_var=noise_var, n_draws=DRAWS)
    return found.error + noise_var if found.converged else None


def empirical_risk(task: Task, learner: SoftmaxAttention | LinearAttention | SoftplusAttention, n: int) -> float | None:
    """The minimiser of the regularised empirical risk."""
    if task.gamma != 1 or task.lengths is not None or not task.noise_std or not task.strength:
        return None
    ridges = learner.ridge_k, learner.ridge_v
    if not all(isinstance(ridge, int | float) and ridge > 0 for ridge in ridges):
        return None
    return _empirical_risk(
        learner._kind, n / task.d, task.strength, task.L, task.noise_std**2, task.law, *map(float, ridges)
    )


@functools.lru_cache(maxsize=1024)
def _empirical_risk(
    kind: str, alpha: float, nu: float, L: int, noise_var: float, law: str, ridge_k: float, ridge_v: float
) -> float | None:
    found = erm_state_evolution(
        kind, alpha, nu=nu, L=L, noise_var=noise_var, ridge_k=ridge_k, ridge_v=ridge_v, law=law, n_draws=DRAWS
    )
    return found.error + noise_var if found.converged else None


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "exact", null),
    Reference("Bayes", Task, "exact", bayes),
    Reference("best linear", Task, "bound", best_linear, LinearPredictor),
    Reference("theory", Task, "asymptotic", linear, LinearPredictor),
    Reference("theory", Task, "exact", oracle, OraclePredictor),
    Reference("theory", Task, "asymptotic", message_passing, AMP),
    *(
        Reference("theory", Task, "heuristic", empirical_risk, attention)
        for attention in (SoftmaxAttention, LinearAttention, SoftplusAttention)
    ),
)
