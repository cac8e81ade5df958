"""The planner: how many examples each learner needs for a target error, by theory and by simulation."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.common.records import Records
from attnlab.common.validation import integer, real
from attnlab.lab import registry
from attnlab.lab.engine import Engine
from attnlab.lab.plans.crossing import bootstrap, next_size, power_law
from attnlab.lab.plans.forecast import Forecast, Oracle
from attnlab.lab.plans.needs import Cost, Need, Plan
from attnlab.lab.plans.rounds import Rounds, Say, last_line, quietly, rounds
from attnlab.lab.plans.setting import Choice, Item, apply
from attnlab.lab.runner import Result
from attnlab.lab.trial import Trial

# What is planned for when no learner is named: those that learn such a task from examples alone.
LEARNERS = {
    "slr.Task": ("slr.SingleLocationAttention", "slr.SoftmaxAttention", "slr.LinearAttention", "slr.LinearPredictor"),
    "rfa.Task": ("rfa.RandomFeatureAttention", "rfa.AttentionKernelRidge", "rfa.RandomFeatureMLP",
                 "rfa.PatchRandomFeatures"),
    "aim.Task": ("aim.AMP", "aim.GradientDescent"),
    "aim.DeepTask": ("aim.DeepAMP",),
    "mha.Task": ("mha.AttentionLearner", "mha.MomentLearner", "mha.GradientLearner"),
}  # fmt: skip


def plan(
    task: Item,
    error: float = 0.05,
    *,
    learners: Sequence[Item] = (),
    set: Mapping[str, Any] | None = None,
    n_min: int = 16,
    n_max: int = 4096,
    seeds: int = 5,
    n_test: int = 1000,
    resolution: float = 1.1,
    engine: Engine | None = None,
    store: str | os.PathLike[str] | None = None,
    say: Say = quietly,
) -> Plan:
    """Find the number of examples that each learner needs.

    The simulation doubles n until the mean error over seeds is at the target and then bisects in log n; decisions
    follow from stored cells alone, so that a stopped plan goes on where it was. All learners see the same data.

    Parameters
    ----------
    task : a name such as ``"slr.Task"``, a task of yours (type), or an object with its parameters.
    error : target test error, divided by that of the null predictor.
    learners : names, types or objects; by default those of the task's system.
    set : parameters by owner, for example ``{"task.d": 32, "rfa.RandomFeatureAttention.n_heads": 500}``.
    n_min, n_max : smallest and largest number of examples tried.
    seeds, n_test : replicates of each size, and test examples of each.
    resolution : ratio at which the bisection stops.
    engine, store : as in :func:`attnlab.lab.run`.
    say : is told what is computed, a line for each round.
    """
    target = real("error", error, low=0, open_low=True)
    integer("n_min", n_min, low=1), integer("n_max", n_max, low=n_min), integer("seeds", seeds, low=1)
    real("resolution", resolution, low=1, open_low=True)
    chosen, contestants = apply(set or {}, *_choices(task, learners))
    if len({choice.label() for choice in contestants}) < len(contestants):
        raise ValueError(f"every learner can be planned once, got {', '.join(c.label() for c in contestants)}")
    trial = Trial({chosen.name: chosen.type}, {c.name: c.type for c in contestants}, theory=False)
    cells = {c.label(): {**chosen.params(), **c.params(), "n_test": n_test} for c in contestants}
    for params in cells.values():
        trial.check({**params, "n_train": n_min})

    name = f"plan.{chosen.name}"
    with rounds(name, trial, seeds=seeds, shared=["learner", "n_train"], store=store, engine=engine, say=say) as run:
        oracles = {label: Oracle(*trial.build(params, 0)) for label, params in cells.items()}
        hopeless = {label: oracle.out_of_reach(target, n_max) for label, oracle in oracles.items()}
        worth = {label: params for label, params in cells.items() if not hopeless[label]}
        found = _simulate(worth, run, target, n_min, n_max, resolution)
    records = Records(tuple({**row, "label": label} for label, result in found.items() for row in result.records))
    null = float(np.mean(records.column("null"))) if len(records) else math.nan
    forecasts = {label: oracle.need(target, n_min, n_max, null) for label, oracle in oracles.items()}
    needs = [
        _need(label, found[label], forecasts[label], target, n_max)
        if label in found
        else Need(label, forecasts[label], None, math.inf, 0, None, hopeless[label])
        for label in cells
    ]
    least = next(iter(oracles.values())).least(target, n_min, n_max, null)
    return Plan(chosen.label(), target, n_min, n_max, seeds, tuple(needs), least, records)


def _choices(task: Item, learners: Sequence[Item]) -> tuple[Choice, list[Choice]]:
    chosen = Choice.of("task", task)
    system = chosen.name.split(".")[0]
    default = LEARNERS.get(chosen.name) or [name for name in registry.learners() if name.split(".")[0] == system]
    if not (learners or default):
        raise ValueError(f"name at least one learner for {chosen.name}")
    return chosen, [Choice.of("learner", item) for item in (learners or default)]


def _simulate(
    cells: Mapping[str, Mapping[str, Any]], run: Rounds, target: float, n_min: int, n_max: int, resolution: float
) -> dict[str, Result]:
    """Rounds in which every learner tries its next size, until none has a next; all its results."""
    sizes: dict[str, list[int]] = {label: [] for label in cells}
    found: dict[str, Result] = {}
    while True:
        asked = {}
        for label in cells:
            errors = _errors(found[label], sizes[label]) if label in found else np.empty((1, 0))
            n = next_size(
                dict(zip(sorted(sizes[label]), errors.mean(axis=0), strict=True)), target, n_min, n_max, resolution
            )
            n = _beyond(sorted(sizes[label]), errors, target, n_max) if n is None else n
            if n is not None:
                asked[label] = n
        if not asked:
            return found
        for label, n in asked.items():
            sizes[label].append(n)
        about = "n = " + ", ".join(str(n) for n in sorted(set(asked.values())))
        run([{**cells[label], "n_train": n} for label, n in asked.items()], about)
        found |= {label: run([{**cells[label], "n_train": n} for n in sizes[label]]) for label in asked}


def _beyond(sizes: Sequence[int], errors: np.ndarray, target: float, n_max: int) -> int | None:
    """One doubling more where the mean is at the target but the interval over seeds has no upper end yet."""
    found = bootstrap(sizes, errors, target)
    open_end = math.isfinite(found.value) and math.isinf(found.high)
    return min(2 * sizes[-1], n_max) if open_end and sizes[-1] < n_max else None


def _errors(result: Result, sizes: Sequence[int]) -> np.ndarray:
    """(seeds, sizes); a cell that failed has not reached any target."""
    found = {(row["seed"], row["n_train"]): row["relative_error"] for row in result.records}
    seeds = result.figure.scales["quick"][0].seeds
    return np.array([[found.get((seed, n), math.inf) for n in sorted(sizes)] for seed in range(seeds)])


def _need(label: str, result: Result, theory: Forecast | None, target: float, n_max: int) -> Need:
    sizes = sorted({int(grid.params["n_train"]) for grid in result.figure.scales["quick"]})
    errors = _errors(result, sizes)
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    measured = bootstrap(sizes, errors, target)
    note = f"failed: {last_line(result.failed[-1])}" if result.failed and not np.isfinite(mean).any() else ""
    at = measured.value if math.isfinite(measured.value) else float(n_max)
    return Need(label, theory, measured, float(mean[best]), sizes[best], _cost(result, at), note)


def _cost(result: Result, n: float) -> Cost | None:
    """From the fastest cell at each size: the others may have waited for a compiler."""
    times: dict[int, float] = {}
    for cell in result.cells:
        if cell.status == "done":
            size = json.loads(cell.params)["n_train"]
            times[size] = min(times.get(size, math.inf), cell.seconds)
    if not times:
        return None
    a, b = power_law(list(times), list(times.values()))
    return Cost(b, a * n**b, n)
