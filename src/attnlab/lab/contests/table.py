"""What the arena came to: one table, and from it the heat map, the learning curves and the costs."""

from __future__ import annotations

import csv
import functools
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.common.records import Estimate, Records
from attnlab.common.statistics import estimate, mean, of
from attnlab.lab.contests.drawing import costs, curves, field_text, heat_map, last, learners_on, size
from attnlab.lab.page import report
from attnlab.lab.runner import Result
from attnlab.lab.store import StoredCell

BAYES = "Bayes"
KINDS = ("scalar", "sequence")
# task, learner, number of examples
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Comparison:
    """The results of an arena.

    Attributes
    ----------
    result : the records of all cells, as :func:`attnlab.lab.run` gives them.
    declined : (task, learner, n) of the learners that cannot take a task, with the reason.
    tasks, learners : all that were asked for, in order.
    memory : peak memory in MB by learner, where it was measured (:func:`attnlab.lab.contests.memory.measure`).
    """

    result: Result
    declined: Mapping[Key, str]
    tasks: Sequence[str]
    learners: Sequence[str]
    memory: Mapping[str, float] | None = None

    @functools.cached_property
    def table(self) -> Records:
        """One row for each task, learner and number of examples.

        ``status`` is *done*, *declined* (with a ``reason``), *failed*, or *reference* (Bayes). ``relative_error`` is
        the mean over seeds of the test error divided by the null predictor's, ``sem`` its standard error; ``theory``
        is the learner's own prediction, ``seconds`` the median time of a cell.
        """
        kinds = {p["task"]: p["kind"] for p in self._params(self.result.cells)}
        failed = Counter(_key(p) for p in self._params(self.result.failed))
        rows = summary(self.result.records, self.declined, failed, self._seconds(), kinds)
        return Records(tuple(sorted(rows, key=lambda row: _place(row, self.tasks, self.learners))))

    def error(self, task: str, learner: str, n: int | None = None) -> Estimate:
        """Relative error with its 95 % interval, after n examples (the most there are)."""
        chosen = self.result.records.where(task=task, learner=learner)
        # the learner's own: it may have declined the largest size of the others
        size = max(chosen.values("n_train")) if n is None else n
        return estimate(mean(of("relative_error")), chosen.where(n_train=size))

    def matrix(self, kind: str) -> list[dict[str, str]]:
        """Learner by task, for ``scalar`` or ``sequence`` tasks: the error at the most examples, or why none."""
        tasks = list(dict.fromkeys(row["task"] for row in self.table if row["kind"] == kind))
        names = learners_on(self.table, tasks)
        return [{"learner": name, **{task: self._field(task, name) for task in tasks}} for name in names]

    def _field(self, task: str, learner: str) -> str:
        rows = [row for row in self.table if (row["task"], row["learner"]) == (task, learner)]
        return field_text(last(rows), " ", size(self.table, task)) if rows else ""

    def draw(self) -> Any:
        """The heat map."""
        return heat_map(self.table)

    def curves(self) -> Any:
        """The learning curves."""
        return curves(self.table)

    def report(self, folder: str | os.PathLike[str]) -> Path:
        """Write the page and its pictures, ``arena_table.csv``, and learner by task ``arena_scalar.csv`` and
        ``arena_sequence.csv``.
        """
        views = [
            self._view("arena", "Arena: error relative to the null predictor", self.table, heat_map),
            self._view("arena.curves", "Arena: learning curves", self.table, curves),
            self._view("arena.cost", "Arena: time and memory", Records(tuple(self._costs())), costs),
        ]
        page = report(views, folder)
        _write(Path(folder) / "arena_table.csv", self.table.rows)
        for kind in KINDS:
            _write(Path(folder) / f"arena_{kind}.csv", self.matrix(kind))
        return page

    def _view(self, name: str, title: str, records: Records, draw: Any) -> Result:
        """The same cells under another drawing."""
        figure = replace(self.result.figure, name=name, title=title, shows=SHOWS[name], draw=draw)
        return replace(self.result, figure=figure, records=records)

    @staticmethod
    def _params(cells: Sequence[StoredCell]) -> list[dict[str, Any]]:
        return [json.loads(cell.params) for cell in cells]

    def _seconds(self) -> dict[Key, float]:
        found: dict[Key, list[float]] = {}
        for cell, params in zip(self.result.cells, self._params(self.result.cells), strict=True):
            found.setdefault(_key(params), []).append(cell.seconds)
        return {key: float(np.median(values)) for key, values in found.items()}

    def _costs(self) -> list[dict[str, Any]]:
        """Seconds of the largest cells of each task and learner, and the learner's peak memory."""
        done = [row for row in self.table if row["status"] == "done"]
        # sorted by n: the last one that is put under a key stays
        largest = {(row["task"], row["learner"]): row for row in sorted(done, key=lambda row: row["n"])}
        memory = self.memory or {}
        return [
            {key: row[key] for key in ("task", "learner", "n", "seconds")} | {"memory_mb": memory.get(row["learner"])}
            for row in sorted(largest.values(), key=lambda row: self.learners.index(row["learner"]))
        ]


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def draw(records: Records) -> Any:
    """The heat map of the cells that are done, whoever else was asked."""
    kinds = {row["task"]: row["kind"] for row in records}
    return heat_map(Records(tuple(summary(records, {}, {}, {}, kinds))))


SHOWS = {
    "arena": "Test error divided by that of the null predictor, at the largest number of examples: mean and standard "
    "error over seeds. All learners of a task see the same examples. Grey: the learner cannot take the task, and why.",
    "arena.curves": "Points: mean and standard error over seeds. Lines: the null predictor, the Bayes error and the "
    "learners' own theory, where there is one.",
    "arena.cost": "Left: seconds of a whole cell (sampling, tuning, fitting, testing; compilation included) at the "
    "largest number of examples, median over seeds, one point for each task. Right: peak memory of one such cell above "
    "the library's own, in a fresh process.",
}


def summary(
    records: Records,
    declined: Mapping[Key, str],
    failed: Mapping[Key, int],
    seconds: Mapping[Key, float],
    kinds: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The rows of the table, for tasks that at least one learner took."""
    groups: dict[Key, list[Mapping[str, Any]]] = {}
    for row in records:
        groups.setdefault(_key(row), []).append(row)
    rows = [_measured(key, cells, seconds, failed.get(key, 0)) for key, cells in groups.items()]
    # where some replicates are done the row above has the number of those that failed
    rows += [_row(key, "failed", seeds=failed[key]) for key in failed if key not in groups]
    rows += [_row(key, "declined", reason=reason) for key, reason in declined.items()]
    # a task that no learner took has no cell, and so no kind
    return [{"kind": kinds[row["task"]], **row} for row in rows + _bayes(groups) if row["task"] in kinds]


def _key(params: Mapping[str, Any]) -> Key:
    return params["task"], params["learner"], params["n_train"]


def _place(row: Mapping[str, Any], tasks: Sequence[str], learners: Sequence[str]) -> tuple[int, int, int]:
    """By task, then learner (Bayes last), then number of examples."""
    last = learners.index(row["learner"]) if row["learner"] in learners else len(learners)
    return tasks.index(row["task"]), last, row["n"]


def _row(key: Key, status: str, **values: Any) -> dict[str, Any]:
    task, learner, n = key
    empty = dict.fromkeys(("relative_error", "sem", "theory", "seconds"))
    return {"task": task, "learner": learner, "n": n, "status": status, "reason": "", "seeds": 0, **empty, **values}


def _measured(
    key: Key,
    cells: Sequence[Mapping[str, Any]],
    seconds: Mapping[Key, float],
    failures: int,
) -> dict[str, Any]:
    errors = np.array([cell["relative_error"] for cell in cells])
    # each by the null error of its own cell, as the measured error is
    theory = [cell["theory.theory"] / cell["null"] for cell in cells if "theory.theory" in cell]
    unsettled = sum(cell["converged"] is False for cell in cells)
    reasons = [f"{failures} failed"] * bool(failures) + [f"{unsettled} not converged"] * bool(unsettled)
    return _row(
        key,
        "done",
        relative_error=float(errors.mean()),
        sem=float(errors.std(ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else None,
        seeds=len(errors),
        theory=float(np.mean(theory)) if theory else None,
        seconds=seconds.get(key),
        reason=", ".join(reasons),
    )


def _bayes(groups: Mapping[Key, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The Bayes error of each task and number of examples, relative to the measured null."""
    found: dict[Key, list[float]] = {}
    for (task, _, n), cells in groups.items():
        values = [cell["theory.Bayes"] / cell["null"] for cell in cells if "theory.Bayes" in cell]
        # the cells of every learner carry it: the mean is over all of them
        found.setdefault((task, BAYES, n), []).extend(values)
    return [_row(key, "reference", relative_error=float(np.mean(v)), seeds=len(v)) for key, v in found.items() if v]
