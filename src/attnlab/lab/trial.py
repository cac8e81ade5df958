"""One trial: sample a task, fit a learner, test it. Sweeps, arena, planner and phase diagrams are made of these."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.common.figure import Params, Record
from attnlab.common.seeds import spawn
from attnlab.common.validation import one_of
from attnlab.lab import registry


@dataclass(frozen=True)
class Trial:
    """The function that runs a cell, together with the types its names mean: it travels to workers as it is.

    The cell's parameters are ``task`` and ``learner`` (names), ``task.x`` and ``learner.x`` (their parameters),
    ``n_train`` and ``n_test``.
    """

    tasks: Mapping[str, type]
    learners: Mapping[str, type]

    @classmethod
    def of(cls, tasks: list[str], learners: list[str]) -> Trial:
        """Look names up in the registry; an unknown one is refused with the nearest known one."""
        known_tasks, known_learners = registry.tasks(), registry.learners()
        return cls(
            {name: known_tasks[one_of("task", name, known_tasks)] for name in tasks},
            {name: known_learners[one_of("learner", name, known_learners)] for name in learners},
        )

    def build(self, params: Params, seed: int) -> tuple[Any, Any]:
        """The task and the learner of a cell; unknown parameters are refused by name."""
        task_type = self.tasks[params["task"]]
        fields = [field.name for field in dataclasses.fields(task_type)]
        given = _of("task", params, fields)
        if "seed" in fields:
            given.setdefault("seed", seed)
        learner_type = self.learners[params["learner"]]
        known = list(inspect.signature(learner_type).parameters)
        options = _of("learner", params, known)
        if "random_state" in known:
            options.setdefault("random_state", seed)
        return _made(params["task"], task_type, given), _made(params["learner"], learner_type, options)

    def __call__(self, params: Params, seed: np.random.SeedSequence) -> Record:
        """Sample, fit, test; the null predictor is the mean of the training outputs."""
        planted, train, test = spawn(seed, 3)
        task, learner = self.build(params, int(planted.generate_state(1)[0]))
        X, y = task.sample(params["n_train"], train)
        learner.fit(X, y)
        X_test, y_test = task.sample(params["n_test"], test)
        error = float(np.mean((learner.predict(X_test) - y_test) ** 2))
        null = float(np.mean((y_test - y.mean(axis=0)) ** 2))
        theory = {f"theory.{name}": value for name, value in predictions(task, learner, params["n_train"]).items()}
        return {"mse": error, "null": null, "relative_error": error / null, **theory}


def predictions(task: Any, learner: Any, n: int) -> dict[str, float]:
    """What the references of the systems say of this task and learner after n examples."""
    found = {}
    for reference in registry.references():
        if reference.speaks_of(task, learner) and (value := reference.error(task, learner, n)) is not None:
            found[reference.name] = float(value)
    return found


def _made(name: str, kind: type, options: Mapping[str, Any]) -> Any:
    """Build a task or a learner; a parameter that it needs and that is not given is named."""
    needed = [
        option.name
        for option in inspect.signature(kind).parameters.values()
        if option.default is option.empty and option.kind not in (option.VAR_POSITIONAL, option.VAR_KEYWORD)
    ]
    if missing := [option for option in needed if option not in options]:
        raise ValueError(f"{name} needs {' and '.join(missing)} to be set")
    return kind(**options)


def _of(kind: str, params: Params, known: list[str]) -> dict[str, Any]:
    """The parameters of the task or the learner, without the prefix."""
    given = {key.removeprefix(f"{kind}."): value for key, value in params.items() if key.startswith(f"{kind}.")}
    for name in given:
        one_of(f"parameter of {params[kind]}", name, known)
    return given
