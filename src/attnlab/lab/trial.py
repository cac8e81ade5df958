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
from attnlab.common.validation import integer, one_of
from attnlab.lab import registry

# Parameters of the law that learners of the systems ask for, and the attribute of the task that holds them.
TOLD = {
    "rho": "rho",
    "channel": "channel",
    "beta": "beta",
    "noise": "noise",
    "width": "width",
    "n_heads": "n_heads",
    "nu": "strength",
}
# Examples to which a learner is fitted when its parameters are checked.
PROBE = 8


@dataclass(frozen=True)
class Trial:
    """The function that runs a cell, together with the types its names mean: it travels to workers as it is.

    The cell's parameters are ``task`` and ``learner`` (names), ``task.x`` and ``learner.x`` (their parameters),
    ``n_train`` (or ``alpha``, for a task that knows ``n_samples(alpha)``) and ``n_test``. A learner that asks for a
    parameter of the law (:data:`TOLD`) is told the task's unless it is given one. With ``theory`` the references of
    the systems stand beside the measured errors.
    """

    tasks: Mapping[str, type]
    learners: Mapping[str, type]
    theory: bool = True

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
        task = _made(params["task"], task_type, given)
        learner_type = self.learners[params["learner"]]
        known = inspect.signature(learner_type).parameters
        options = _told(task, known) | _of("learner", params, list(known))
        if "random_state" in known:
            options.setdefault("random_state", seed)
        return task, _made(params["learner"], learner_type, options)

    def check(self, params: Params) -> None:
        """Refuse a wrong request before anything is computed.

        Learners check their parameters when they are fitted: one with parameters given is fitted to a few examples,
        and an error that speaks of one of them is the request's.
        """
        task, learner = self.build(params, 0)
        train_size(task, params)
        integer("n_test", params["n_test"], low=2)
        given = [name.removeprefix("learner.") for name in params if name.startswith("learner.")]
        if not given:
            return
        try:
            learner.fit(*task.sample(PROBE, 0))
        except (ValueError, TypeError) as error:
            if str(error).startswith(tuple(f"{name} " for name in given)):
                raise ValueError(f"{params['learner']}: {error}") from error
        except Exception:  # a few examples may be too few: no fault of the request
            pass

    def __call__(self, params: Params, seed: np.random.SeedSequence) -> Record:
        """Sample, fit, test; the theory of the systems beside."""
        planted, train, test = spawn(seed, 3)
        task, learner = self.build(params, int(planted.generate_state(1)[0]))
        n_train = train_size(task, params)
        said = predictions(task, learner, n_train) if self.theory else {}
        theory = {f"theory.{name}": value for name, value in said.items()}
        return {**examine(task, learner, (n_train, params["n_test"]), (train, test)), **theory}


def examine(
    task: Any, learner: Any, sizes: tuple[int, int], seeds: tuple[np.random.SeedSequence, np.random.SeedSequence]
) -> Record:
    """Fit to examples and test on others (their numbers and seeds in this order), against the null predictor, the mean
    of the training outputs.
    """
    X, y = task.sample(sizes[0], seeds[0])
    learner.fit(X, y)
    X_test, y_test = task.sample(sizes[1], seeds[1])
    predicted = np.asarray(learner.predict(X_test))
    if predicted.shape != y_test.shape:
        raise ValueError(f"predictions must have shape {y_test.shape}, got {predicted.shape}")
    error, null = float(np.mean((predicted - y_test) ** 2)), float(np.mean((y_test - y.mean(axis=0)) ** 2))
    return {"mse": error, "null": null, "relative_error": error / null, "converged": converged(learner)}


def converged(fitted: Any) -> bool | None:
    """Whether a fit met its stopping rule, from ``converged_`` of the learner or of what it contains.

    None where the learner does not say: a third-party estimator may have stopped anywhere.
    """
    if hasattr(fitted, "converged_"):
        return bool(fitted.converged_)
    inside = getattr(fitted, "best_estimator_", None) or getattr(fitted, "estimator_", None)
    steps = getattr(fitted, "steps", None)
    inside = steps[-1][1] if inside is None and steps else inside
    return None if inside is None else converged(inside)


def train_size(task: Any, params: Params) -> int:
    """The number of training examples that a cell asks for, by ``n_train`` or by ``alpha``."""
    if ("n_train" in params) == ("alpha" in params):
        raise ValueError("the number of examples must be given as n_train or as alpha, one of them")
    if "n_train" in params:
        return integer("n_train", params["n_train"], low=1)
    if not hasattr(task, "n_samples"):
        raise ValueError(f"{params['task']} does not know what alpha means; give n_train")
    return int(task.n_samples(params["alpha"]))


def predictions(task: Any, learner: Any, n: int) -> dict[str, float]:
    """What the references of the systems say of this task and learner after n examples."""
    found = {}
    for reference in registry.references():
        if reference.speaks_of(task, learner) and (value := reference.error(task, learner, n)) is not None:
            found[reference.name] = float(value)
    return found


def _told(task: Any, known: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """What a learner asks to know of the law; one whose default is None finds it out by itself."""
    asked = {name: source for name, source in TOLD.items() if name in known and known[name].default is not None}
    return {name: getattr(task, source) for name, source in asked.items() if hasattr(task, source)}


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
