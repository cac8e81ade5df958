"""The arena: every learner on every task it can take, on equal data, with exact references beside."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.seeds import digest, spawn
from attnlab.common.validation import integer, one_of
from attnlab.lab.contests.entrants import Declined, Entrant, Own, bare, entrants
from attnlab.lab.contests.events import Event, events
from attnlab.lab.contests.scoreboard import Key, Standings, draw
from attnlab.lab.engine import Engine
from attnlab.lab.runner import Result, run
from attnlab.lab.trial import examine

SEEDS = {"quick": 3, "paper": 10}
N_TEST = 2000
MINUTES = {"quick": 4.0, "paper": 180.0}


@dataclass(frozen=True)
class Bout:
    """The function that runs a cell: one learner on one task."""

    events: Mapping[str, Event]
    entrants: Mapping[str, Entrant]

    def __call__(self, params: Params, seed: np.random.SeedSequence) -> Record:
        """Sample, tune and fit, test; the exact references of the task beside."""
        planted, train, test = spawn(seed, 3)
        number = int(planted.generate_state(1)[0])
        n = params["n_train"]
        stage = self.events[params["task"]].stage(params["scale"], number)
        learner = seeded(self.entrants[params["learner"]].enter(stage, n), number)
        record = examine(stage.task, learner, (n, params["n_test"]), (train, test))
        theory = stage.references(bare(learner), n)
        return {**record, **{f"theory.{name}": value for name, value in theory.items()}}


def seeded(learner: Any, seed: int) -> Any:
    """Every ``random_state`` of the learner and of what it contains set to ``seed``."""
    names = [name for name in learner.get_params() if name.split("__")[-1] == "random_state"]
    return learner.set_params(**dict.fromkeys(names, seed))


@dataclass(frozen=True)
class Contest:
    """A checked request: the figure that runs it, and who declined to enter what."""

    figure: Figure
    scale: str
    tasks: list[str]
    learners: list[str]
    declined: dict[Key, str]

    def standings(self, result: Result) -> Standings:
        """What came of it."""
        return Standings(result, self.declined, self.tasks, self.learners)


def contest(
    tasks: Sequence[str] | None = None,
    learners: Sequence[str] | None = None,
    *,
    n: Sequence[int] | None = None,
    seeds: int | None = None,
    scale: str = "quick",
) -> Contest:
    """Check a request and find out who can enter what; nothing is computed."""
    one_of("scale", scale, SEEDS)
    known_events, known_entrants = events(), entrants()
    chosen = {name: known_events[one_of("task", name, known_events)] for name in tasks or known_events}
    field = {name: known_entrants[one_of("learner", name, known_entrants)] for name in learners or known_entrants}
    seeds = integer("seeds", SEEDS[scale] if seeds is None else seeds, low=1)
    grids, declined = [], {}
    for event in chosen.values():
        sizes = sorted({integer("n", size, low=2) for size in (event.sizes[scale] if n is None else n)})
        stage = event.stage(scale, 0)
        for entrant in field.values():
            taken = []
            for size in sizes:
                try:
                    entrant.enter(stage, size)
                    taken.append(size)
                except Declined as reason:
                    declined[event.name, entrant.name, size] = str(reason)
            if taken:
                grids.append(Grid({"kind": stage.kind, **_params(event, entrant, scale, taken)}, seeds))
    if not grids:
        reasons = "; ".join(f"{learner} on {task}: {why}" for (task, learner, _), why in declined.items())
        raise ValueError(f"no learner can take any of these tasks ({reasons})")
    figure = Figure(
        name="arena",
        title="Arena: every learner on every task it can take",
        paper="derived here",
        shows="Test error relative to the null predictor; all learners of a task see the same examples.",
        scales={scale: grids},
        run=Bout(chosen, field),
        draw=draw,
        shared=("learner", "code"),
        shape=("task", "learner", "n_train"),
        minutes=MINUTES,
    )
    return Contest(figure, scale, list(chosen), list(field), declined)


def _params(event: Event, entrant: Entrant, scale: str, sizes: list[int]) -> dict[str, Any]:
    """The parameters of the cells; what a user wrote enters by its source, so that an edit is computed anew."""
    params: dict[str, Any] = {"task": event.name, "scale": scale, "learner": entrant.name}
    params |= {f"task.{key}": value for key, value in event.params.get(scale, {}).items()}
    params |= {"n_train": sizes, "n_test": N_TEST}
    builder = entrant.scalar or entrant.sequence
    own = [event.task] * event.name.startswith("own.") + ([builder.item] if isinstance(builder, Own) else [])
    return params | ({"code": digest({"source": [_source(item) for item in own]})[:12]} if own else {})


def _source(item: type) -> str:
    try:
        return inspect.getsource(item)
    except (OSError, TypeError):
        return item.__qualname__


def arena(
    tasks: Sequence[str] | None = None,
    learners: Sequence[str] | None = None,
    *,
    n: Sequence[int] | None = None,
    seeds: int | None = None,
    scale: str = "quick",
    engine: Engine | None = None,
    store: str | os.PathLike[str] | None = None,
) -> Standings:
    """Put learners against tasks on equal data.

    Parameters
    ----------
    tasks, learners : names, see ``attnlab arena --list``; all by default, your own (:func:`attnlab.lab.add`) included.
    n : numbers of training examples; by default those of each task.
    seeds : replicates, each with its own planted task and examples.
    scale : ``"quick"`` or ``"paper"``.
    engine, store : as in :func:`attnlab.lab.run`.

    >>> from attnlab import lab
    >>> standings = lab.arena(["slr.max"], ["linear"], n=[200], seeds=2)
    >>> standings.error("slr.max", "linear").value < 1
    True
    """
    request = contest(tasks, learners, n=n, seeds=seeds, scale=scale)
    return request.standings(run(request.figure, scale, engine=engine, store=store))
