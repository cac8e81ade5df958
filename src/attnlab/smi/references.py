"""What theory says of the test errors on sequence multi-index models."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from attnlab.common.advice import no_advice
from attnlab.common.reference import Reference
from attnlab.smi.learners.amp import AMP
from attnlab.smi.learners.oracle import OraclePredictor
from attnlab.smi.learners.predictor import output_shape
from attnlab.smi.link import Link
from attnlab.smi.links import as_link
from attnlab.smi.task import Task
from attnlab.smi.theory.bayes import state_evolution
from attnlab.smi.theory.curve import curve
from attnlab.smi.theory.generalization import generalization_error
from attnlab.smi.theory.thresholds import weak_recovery

# Two scrambles of 2^10 points: a reference is drawn beside simulations, whose noise is larger.
DRAWS, REPLICATES = 2**10, 2


def null(task: Task, learner: Any, n: int) -> float:
    """Predicting the mean output."""
    return _error(task.law, _key(np.zeros((task.rank, task.rank))), "bayes")


def bayes(task: Task, learner: Any, n: int) -> float | None:
    """The best prediction from n sequences that message passing can reach."""
    return _after(task.law, n / task.d, "bayes")


def message_passing(task: Task, learner: AMP, n: int) -> float | None:
    """The same for AMP that assumes the link that holds, with its own way of predicting."""
    return _after(task.law, n / task.d, learner.prediction) if as_link(learner.link) == task.law else None


def oracle(task: Task, learner: OraclePredictor, n: int) -> float | None:
    """Known directions: the noise of the output."""
    if as_link(learner.link) != task.law or learner.W is None or not np.array_equal(learner.W, task.W):
        return None
    return _error(task.law, _key((1 - 1e-12) * np.eye(task.rank)), "plug-in")


@functools.lru_cache(maxsize=1024)
def _after(link: Link, alpha: float, predictor: str) -> float | None:
    if link.rank == 1:
        q = _on_branch(link, alpha)
        return None if q is None else _error(link, ((q,),), predictor)
    with no_advice():
        found = state_evolution(link, alpha, draws=DRAWS, replicates=REPLICATES, tol=1e-4)
    return _error(link, _key(found.Q), predictor) if found.converged and found.resolved else None


def _on_branch(link: Link, alpha: float) -> float | None:
    """The overlap of the uninformed branch: below the largest alpha(q) so far, only smaller overlaps are reached."""
    known = _branch(link)
    if known is None:
        return None
    q, reached = known
    return float(np.interp(alpha, reached, q))


@functools.lru_cache(maxsize=64)
def _branch(link: Link) -> tuple[np.ndarray, np.ndarray] | None:
    """Overlaps of one direction, and the alpha from which message passing reaches each: one curve serves all n."""
    # v = -log(1 - q): equal steps resolve q near 0 and 1 - q near recovery.
    v = np.linspace(0.02, 14.0, 50)
    with no_advice():
        first = weak_recovery(link, draws=DRAWS, replicates=4)
        found = curve(link, -np.expm1(-v), draws=DRAWS, replicates=REPLICATES)
    if not found.resolved.any():
        return None
    known = found.resolved
    # The branch leaves q = 0 at the threshold of weak recovery, where q/S(q) is 0/0.
    q, alpha = np.r_[0.0, found.q[known]], np.r_[float(first), np.asarray(found)[known]]
    return (q, np.maximum.accumulate(alpha)) if np.isfinite(alpha).all() else None


def _key(Q: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, np.asarray(Q).tolist()))


@functools.lru_cache(maxsize=1024)
def _error(link: Link, Q: tuple[tuple[float, ...], ...], predictor: str) -> float:
    """Mean over the entries of y."""
    return float(generalization_error(link, np.array(Q), predictor=predictor)) / int(np.prod(output_shape(link)))


REFERENCES: tuple[Reference, ...] = (
    Reference("null", Task, "asymptotic", null),
    Reference("Bayes", Task, "asymptotic", bayes),
    Reference("theory", Task, "asymptotic", message_passing, AMP),
    Reference("theory", Task, "asymptotic", oracle, OraclePredictor),
)
