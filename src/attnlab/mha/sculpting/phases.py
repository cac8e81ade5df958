"""Phases 1 to 4 in order, each leaving a record: crude sum, agreeing rows, body, point of smallest norm, again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.variable_projection import row_patterns
from attnlab.mha.layer import Rows
from attnlab.mha.sculpting.agreement import Agreement, find_agreement, refit_sum, sculpt_again
from attnlab.mha.sculpting.body import Body, MinimumNorm, minimum_norm_point
from attnlab.mha.sculpting.crude import crude_sum


@dataclass(frozen=True)
class Step:
    """What one phase did: seconds, numbers worth reading, and the arrays it produced."""

    name: str
    seconds: float
    summary: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Sculpture:
    """The finished body, its rows, its point of smallest norm and the record of how it came about."""

    agreement: Agreement
    body: Body
    point: MinimumNorm
    steps: tuple[Step, ...]


def sculpt(X: np.ndarray, y: np.ndarray, rows: Rows, budget: Budget | None = None) -> Sculpture:
    """Phases 1 to 4; nothing here depends on the number of heads."""
    budget = budget or Budget()
    steps: list[Step] = []
    begun = time.monotonic()
    w_sum = crude_sum(X, y)
    steps.append(Step("crude sum", time.monotonic() - begun, {"norm": float(np.linalg.norm(w_sum))}, {"w_sum": w_sum}))
    begun = time.monotonic()
    agreement = find_agreement(rows, w_sum, deadline=budget.deadline)
    steps.append(_agreement_step("agreeing rows", begun, agreement))
    body, point = _body_of(agreement, steps)
    if not budget.spent:
        begun = time.monotonic()
        refined = _refined_sum(body, point)
        summary = {"change": float(np.linalg.norm(refined - agreement.w_sum) / np.linalg.norm(refined))}
        steps.append(Step("refined sum", time.monotonic() - begun, summary, {"w_sum": refined}))
        begun = time.monotonic()
        # All rows again: some that the sum before put beyond the limit may agree.
        agreement = sculpt_again(rows, refined, agreement, deadline=budget.deadline)
        steps.append(_agreement_step("agreeing rows again", begun, agreement))
        body, point = _body_of(agreement, steps)
    return Sculpture(agreement, body, point, tuple(steps))


def _refined_sum(body: Body, point: MinimumNorm) -> np.ndarray:
    """On agreeing rows the pattern of any point of the hull is that of all heads: regress y on the mean keys it gives.

    Phase 3 of the paper takes the rows on which the point of smallest norm is surest instead. At these sizes they are
    too rare: the sum from agreeing rows is ten times more exact.
    """
    patterns = row_patterns(body.rows, point.theta[None])[:, 0]
    from_point = refit_sum(body.rows, patterns, body.weights)
    from_rows = refit_sum(body.rows, body.patterns, body.weights)
    return (from_point + from_rows) / 2


def _body_of(agreement: Agreement, steps: list[Step]) -> tuple[Body, MinimumNorm]:
    begun = time.monotonic()
    chosen = agreement.accepted()
    weights = agreement.weights[chosen]
    # Mean one: the shrinkage of Newton's method then weighs the same whatever the scale.
    body = Body(agreement.rows.take(chosen), agreement.patterns[chosen], weights / weights.mean())
    point = minimum_norm_point(body)
    summary = {
        "rows": float(len(chosen)),
        "interior_rows": float(agreement.interior[chosen].sum()),
        "divergence": point.divergence,
        "norm": float(np.linalg.norm(point.theta)),
        "newton_steps": float(point.n_iter),
    }
    arrays = {"theta": point.theta, "curvatures": np.linalg.eigvalsh(point.hessian)}
    steps.append(Step("body and point of smallest norm", time.monotonic() - begun, summary, arrays))
    return body, point


def _agreement_step(name: str, begun: float, agreement: Agreement) -> Step:
    history = agreement.history
    summary = {
        "scale": agreement.scale,
        "rows": float(len(agreement.rows)),
        "interior_rows": float(np.sum(agreement.interior & (agreement.residuals < agreement.scale))),
        "rounds": float(len(history)),
    }
    arrays = {
        "w_sum": agreement.w_sum,
        "scales": np.array([round_["scale"] for round_ in history]),
        "rows_in_play": np.array([round_["rows"] for round_ in history]),
    }
    return Step(name, time.monotonic() - begun, summary, arrays)
