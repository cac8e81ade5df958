"""The arena: every learner on every task it can take, on equal data, with exact references beside."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnlab.common.arena import Declined
from attnlab.common.figure import Figure
from attnlab.common.validation import integer, one_of
from attnlab.lab.contests.entrants import arena_learners, arena_tasks, kind
from attnlab.lab.contests.table import Comparison, Key, draw
from attnlab.lab.engine import Engine
from attnlab.lab.request import run_spec
from attnlab.lab.runner import Result, run
from attnlab.lab.spec import Trials

SEEDS = {"quick": 3, "paper": 10}
N_TEST = 2000
# Minutes of a cell on two cores, mean over the whole arena.
MINUTES = {"quick": 0.005, "paper": 0.05}


@dataclass(frozen=True)
class Contest:
    """A checked request: the figure that runs it, and which learners cannot take which tasks."""

    figure: Figure
    scale: str
    tasks: list[str]
    learners: list[str]
    declined: dict[Key, str]

    def comparison(self, result: Result) -> Comparison:
        """What came of it."""
        return Comparison(result, self.declined, self.tasks, self.learners)


def contest(
    tasks: Sequence[str] | None = None,
    learners: Sequence[str] | None = None,
    *,
    n: Sequence[int] | None = None,
    seeds: int | None = None,
    scale: str = "quick",
) -> Contest:
    """Check a request and find out which learners can take which tasks; nothing is computed."""
    one_of("scale", scale, SEEDS)
    known_tasks, known_learners = arena_tasks(scale), arena_learners()
    chosen = {name: known_tasks[one_of("task", name, known_tasks)] for name in tasks or known_tasks}
    field = {name: known_learners[one_of("learner", name, known_learners)] for name in learners or known_learners}
    seeds = integer("seeds", SEEDS[scale] if seeds is None else seeds, low=1)
    grids: list[Trials] = []
    declined: dict[Key, str] = {}
    for name, (task, default) in chosen.items():
        what = kind(name, task)
        sizes = sorted({integer("n", size, low=2) for size in (default if n is None else n)})
        # a grid for each size: a learner may decline few examples, or too many rows, and take the rest
        for (learner, forms), size in itertools.product(field.items(), sizes):
            try:
                estimator = forms.build(task, what, size)
            except Declined as reason:
                declined[name, learner, size] = str(reason)
                continue
            # inside an adapter the learner's own theory is about other data; what holds for the task still holds
            compare = "learner" if forms.theory else "task"
            point = {"task": task, "learner": estimator, "names": (name, learner), "kind": what, "compare": compare}
            grids.append(Trials({**point, "n_train": size, "n_test": N_TEST}, seeds))
    if not grids:
        reasons = "; ".join(f"{learner} on {task}: {why}" for (task, learner, _), why in declined.items())
        raise ValueError(f"no learner can take any of these tasks ({reasons})")
    figure = Figure(
        name="arena",
        title="Arena: every learner on every task it can take",
        paper="derived here",
        shows="Test error relative to the null predictor; all learners of a task see the same examples.",
        scales={scale: grids},
        run=run_spec,
        draw=draw,
        shape=("task", "learner", "n_train"),
    )
    # the number of cells is known only once the figure has its grids
    figure = replace(figure, minutes={scale: MINUTES[scale] * figure.size(scale)})
    return Contest(figure, scale, list(chosen), list(field), declined)


def arena(
    tasks: Sequence[str] | None = None,
    learners: Sequence[str] | None = None,
    *,
    n: Sequence[int] | None = None,
    seeds: int | None = None,
    scale: str = "quick",
    engine: Engine | None = None,
    store: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Put learners against tasks on equal data.

    Parameters
    ----------
    tasks, learners : names, see ``attnlab arena --list``; all by default, your own (:func:`attnlab.lab.add`) included.
    n : numbers of training examples; by default those of each task.
    seeds : replicates, each with its own planted task and examples.
    scale : ``"quick"`` or ``"paper"``.
    engine, store : as in :func:`attnlab.lab.run`.

    >>> from attnlab import lab
    >>> comparison = lab.arena(["slr.max"], ["linear"], n=[200], seeds=2)
    >>> comparison.error("slr.max", "linear").value < 1
    True
    """
    request = contest(tasks, learners, n=n, seeds=seeds, scale=scale)
    return request.comparison(run(request.figure, scale, engine=engine, store=store))
