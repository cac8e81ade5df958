"""From what a user asks for to a spec: tasks and learners by name, type or object, with parameters set."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from attnlab.common.figure import Params, Record
from attnlab.common.validation import integer, one_of
from attnlab.lab import registry
from attnlab.lab.describe import Role, is_plain, name_of, parameters, settings
from attnlab.lab.own import part
from attnlab.lab.spec import Spec, changed, needs_of, replaced, values_of

Item = Any  # a name, a type or an object
VERBS: Mapping[Role, tuple[str, ...]] = {"task": ("sample",), "learner": ("fit", "predict", "get_params")}
SIZES = ("n_train", "alpha", "n_test")
# Examples to which a learner is fitted when its parameters are checked.
PROBE = 8


def spec(point: Params) -> Spec:
    """The spec of a point of a grid.

    ``task`` and ``learner`` are names, types or objects; ``task.x`` and ``learner.x`` their parameters; the number of
    examples is ``n_train``, or ``alpha`` for a task that has ``n_samples(alpha)``; ``seed`` is the replicate. Other
    names are kept as columns.

    >>> found = spec({"task": "slr.Task", "task.d": 8, "task.L": 3, "learner": "slr.LinearPredictor", "n_train": 50})
    >>> found.task.d, found.n_train
    (8, 50)
    """
    task, task_given = make("task", point["task"], settings("task", point))
    needs = needs_of(kind_of("learner", point["learner"]), task, set(settings("learner", point)))
    learner, given = make("learner", point["learner"], settings("learner", point), values_of(needs, task))
    own = (*SIZES, "seed", "compare", "names", "task", "learner")
    # A parameter may reach the task under another name (beta, that of its channel): the request's is kept as well.
    labels = {key: value for key, value in point.items() if key == "alpha" or (key not in own and is_plain(value))}
    return Spec(
        task,
        learner,
        _examples(task, point),
        integer("n_test", point.get("n_test", 1000), low=2),
        replicate=point.get("seed", 0),
        needs={name: source for name, source in needs.items() if name not in given},
        plant="seed" not in task_given,
        compare=point.get("compare", "learner"),
        names=point.get("names", ("", "")),
        labels=labels,
    )


def run_spec(params: Params, seed: np.random.SeedSequence) -> Record:
    """The cell of a point."""
    return spec(params).run()


def kind_of(role: Role, item: Item) -> type:
    """The class meant by a name, a type or an object; anything else is refused."""
    if isinstance(item, str):
        return registry.named(role, item)
    kind = item if inspect.isclass(item) else type(item)
    if missing := [verb for verb in VERBS[role] if not hasattr(kind, verb)]:
        raise TypeError(f"a {role} must have {', '.join(VERBS[role])}; {kind.__name__} has no {missing[0]}")
    return kind


def make(
    role: Role, item: Item, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> tuple[Any, set[str]]:
    """The object, and the parameters that were given and not left at their default."""
    kind = kind_of(role, item)
    known = inspect.signature(kind).parameters
    for option in options:
        one_of(f"parameter of {name_of(kind)}", option, known)
    options = {name: part(value) for name, value in options.items()}
    if not isinstance(item, str) and not inspect.isclass(item):
        # what an object differs in from its class counts as given: the law must not overwrite it
        given = changed(item) | set(options)
        if not options:
            return item, given
        return (clone(item).set_params(**options) if role == "learner" else replaced(item, options)), given
    values = {**(defaults or {}), **options}
    needed = [
        p.name for p in known.values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if missing := [name for name in needed if name not in values]:
        raise ValueError(f"{name_of(kind)} needs {' and '.join(missing)} to be set")
    return kind(**values), set(options)


def label(role: Role, item: Item, options: Mapping[str, Any] | None = None) -> str:
    """The name, with the parameters that were given."""
    own = {} if isinstance(item, str) or inspect.isclass(item) else parameters(item) or {}
    given = {name: own[name] for name in own if name in changed(item)} | dict(options or {})
    text = ", ".join(f"{name}={value}" for name, value in given.items())
    name = item if isinstance(item, str) else name_of(kind_of(role, item))
    return f"{name}({text})" if text else name


def owned(chosen: Mapping[str, Any], learners: Mapping[str, Item]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Settings ``task.x`` and ``<learner>.x`` sorted by owner; another owner is refused with the nearest one.

    ``learners`` are items under labels; a setting reaches every learner of its name.
    """
    names = {
        key: item if isinstance(item, str) else name_of(kind_of("learner", item)) for key, item in learners.items()
    }
    of_task: dict[str, Any] = {}
    of_learners: dict[str, dict[str, Any]] = {key: {} for key in learners}
    for key, value in chosen.items():
        # at the last dot: a learner's own name has one
        owner, _, option = key.rpartition(".")
        one_of("the owner of a setting", owner, ["task", *dict.fromkeys(names.values())])
        if owner == "task":
            of_task[f"task.{option}"] = value
        for learner in (k for k, name in names.items() if name == owner):
            of_learners[learner][f"learner.{option}"] = value
    return of_task, of_learners


def check(point: Params) -> None:
    """Refuse a wrong request before anything is computed.

    Learners check their parameters when they are fitted: one with parameters given is fitted to a few examples, and an
    error that names one of them is the request's.
    """
    asked = spec(point)
    asked.columns()
    given = set(settings("learner", point)) | changed(asked.learner)
    if not given:
        return
    task, learner = asked.build()
    try:
        learner.fit(*task.sample(PROBE, 0))
    except (ValueError, TypeError) as error:
        # messages of validation begin with the name of the argument
        if str(error).startswith(tuple(f"{name} " for name in given)):
            raise ValueError(f"{name_of(type(learner))}: {error}") from error
    except Exception:  # a few examples may be too few: no fault of the request
        pass


def _examples(task: Any, point: Params) -> int:
    if ("n_train" in point) == ("alpha" in point):
        raise ValueError("the number of examples must be given as n_train or as alpha, one of them")
    if "n_train" in point:
        return integer("n_train", point["n_train"], low=1)
    if not hasattr(task, "n_samples"):
        raise ValueError(f"{name_of(type(task))} does not know what alpha means; give n_train")
    return int(task.n_samples(point["alpha"]))
