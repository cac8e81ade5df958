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
from attnlab.lab.describe import name_of, settings
from attnlab.lab.engine import Engine
from attnlab.lab.measure import Measure, Notify, last_line, measuring, silent
from attnlab.lab.plans.capacity import Planned
from attnlab.lab.plans.crossing import bootstrap, next_size, power_law
from attnlab.lab.plans.forecast import Forecast, Known
from attnlab.lab.plans.plan import Cost, Need, Plan
from attnlab.lab.request import Item, check, kind_of, label, owned
from attnlab.lab.runner import Result
from attnlab.lab.spec import Trials


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
    notify: Notify = silent,
) -> Plan:
    """Find the number of examples that each learner needs, and the size of learners whose theory plans it.

    The simulation doubles n until the mean error over seeds is at the target and then bisects in log n; decisions
    follow from stored cells alone, so that a stopped plan goes on where it was. All learners see the same data. A
    learner of random features gets at each n the heads (units) from which on its error is within a tenth of that of
    infinitely many, by theory, unless their number is set.

    Parameters
    ----------
    task : a name such as ``"slr.Task"``, a task of yours (type), or an object with its parameters.
    error : target test error, divided by that of the null predictor.
    learners : names, types or objects; by default those of the task's system.
    set : parameters by owner, for example ``{"task.d": 32, "rfa.RandomFeatureAttention.n_heads": 500}``.
    n_min, n_max : smallest and largest number of examples tried.
    seeds, n_test : replicates of each size, and test examples of each.
    resolution : ratio at which the bisection stops.
    engine, store : as in :func:`attnlab.lab.run`; ``notify`` is called with a line for each round that is computed.
    """
    target = real("error", error, low=0, open_low=True)
    integer("n_min", n_min, low=1), integer("n_max", n_max, low=n_min), integer("seeds", seeds, low=1)
    real("resolution", resolution, low=1, open_low=True)
    points = _points(task, learners, set or {}, n_min, n_test)
    with measuring(f"plan.{name_of(kind_of('task', task))}", store=store, engine=engine, notify=notify) as measure:
        known = {name: _known(point, n_min) for name, point in points.items()}
        # what an exact value or a bound excludes up to n_max is not simulated
        hopeless = {name: theory.out_of_reach(target, n_max) for name, theory in known.items()}
        worth = {name: point for name, point in points.items() if not hopeless[name]}
        found = _simulate(worth, measure, seeds, target, n_min, n_max, resolution)
    title = label("task", task, settings("task", next(iter(points.values())).point))
    records = Records(tuple({**row, "label": name} for name, result in found.items() for row in result.records))
    # the measured null error, for tasks of which no reference gives it
    null = float(np.mean(records.column("null"))) if len(records) else math.nan
    forecasts = {name: theory.need(target, n_min, n_max, null) for name, theory in known.items()}
    least = next(iter(known.values())).least(target, n_min, n_max, null)
    needs = {name: Need(name, forecasts[name], None, math.inf, 0, None, hopeless[name]) for name in points}
    needs |= {name: _need(name, found[name], forecasts[name], target, n_max, points[name]) for name in found}
    return Plan(title, target, n_min, n_max, seeds, tuple(needs.values()), least, records)


def _points(
    task: Item, learners: Sequence[Item], chosen: Mapping[str, Any], n_min: int, n_test: int
) -> dict[str, Planned]:
    """One request for each learner under its label, checked at the smallest number of examples."""
    name = name_of(kind_of("task", task))
    default = registry.planned(name)
    if not (learners or default):
        raise ValueError(f"name at least one learner for {name}")
    # by number: a learner may come twice, with different parameters
    items = {str(i): item for i, item in enumerate(learners or default)}
    of_task, of_learners = owned(chosen, items)
    # no references in the cells: forecasts ask theory at sizes of their own
    common = {"task": task, **of_task, "compare": "nothing", "n_test": n_test}
    points = [{**common, "learner": item, **of_learners[i]} for i, item in items.items()]
    labels = [label("learner", point["learner"], settings("learner", point)) for point in points]
    if len(set(labels)) < len(labels):
        raise ValueError(f"every learner can be planned once, got {', '.join(labels)}")
    found = dict(zip(labels, map(Planned, points), strict=True))
    for point in found.values():
        check(point.at(n_min))
    return found


def _known(point: Planned, n: int) -> Known:
    task, learner = point.build(n)
    return Known(task, learner, (lambda size: point.build(size)[1]) if point.capacity else None)


def _simulate(
    points: Mapping[str, Planned],
    measure: Measure,
    seeds: int,
    target: float,
    n_min: int,
    n_max: int,
    resolution: float,
) -> dict[str, Result]:
    """Rounds in which every learner tries its next size, until none has a next; all its results."""
    sizes: dict[str, list[int]] = {name: [] for name in points}
    found: dict[str, Result] = {}
    while True:
        asked = {}
        for name in points:
            tried = sorted(sizes[name])
            # one row without columns: the mean over no rows would be a warning
            errors = _errors(found[name], tried) if name in found else np.empty((1, 0))
            n = next_size(dict(zip(tried, errors.mean(axis=0), strict=True)), target, n_min, n_max, resolution)
            n = _beyond(tried, errors, target, n_max) if n is None else n
            if n is not None:
                asked[name] = n
        if not asked:
            return found
        for name, n in asked.items():
            sizes[name].append(n)
        about = "n = " + ", ".join(str(n) for n in sorted(set(asked.values())))
        # the sizes of all learners in one round, so that workers are busy with all of them
        measure([Trials(points[name].at(n), seeds) for name, n in asked.items()], about)
        # once more with the earlier sizes: all are in the store by now, and one result holds the whole curve
        found |= {name: measure([Trials(points[name].at(n), seeds) for n in sizes[name]]) for name in asked}


def _beyond(sizes: Sequence[int], errors: np.ndarray, target: float, n_max: int) -> int | None:
    """One doubling more where the mean is at the target but the interval over seeds has no upper end yet."""
    found = bootstrap(sizes, errors, target)
    open_end = math.isfinite(found.value) and math.isinf(found.high)
    return min(2 * sizes[-1], n_max) if open_end and sizes[-1] < n_max else None


def _errors(result: Result, sizes: Sequence[int]) -> np.ndarray:
    """(seeds, sizes); a cell that failed has not reached any target."""
    found = {(row["seed"], row["n_train"]): row["relative_error"] for row in result.records}
    seeds = result.figure.scales["quick"][0].seeds
    # every replicate has a row, for bootstrap resamples whole curves
    return np.array([[found.get((seed, n), math.inf) for n in sorted(sizes)] for seed in range(seeds)])


def _need(name: str, result: Result, theory: Forecast | None, target: float, n_max: int, point: Planned) -> Need:
    sizes = sorted({int(grid.params["n_train"]) for grid in result.figure.scales["quick"]})
    errors = _errors(result, sizes)
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    measured = bootstrap(sizes, errors, target)
    note = f"failed: {last_line(result.failed[-1])}" if result.failed and not np.isfinite(mean).any() else ""
    # the cost of what is recommended, or of the largest trial where the target was not reached
    at = measured.value if math.isfinite(measured.value) else float(n_max)
    return Need(name, theory, measured, float(mean[best]), sizes[best], _cost(result, at), note, point.text(at))


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
