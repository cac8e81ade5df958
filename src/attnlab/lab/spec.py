"""One experiment: a task, a learner, how many examples, which replicate. Sweeps, arena, planner and phase diagrams are
lists of these.

A :class:`Spec` is the only source of a cell's identity (all parameters of task and learner, defaults too), of its code
fingerprint and of its seeds. The four seeds come from the task's parameters, the replicate and the stream: learners and
sample sizes are compared on the same planted truth.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from attnlab.common.cell import Cell, Params, Record, replicate_texts
from attnlab.common.figure import Figure, Grid
from attnlab.common.fingerprint import fingerprint
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import branch, cell_seed
from attnlab.lab import registry
from attnlab.lab.describe import VERSIONED, columns, parameters, roots

Compare = Literal["learner", "task", "nothing"]


class Seeds(NamedTuple):
    """The integers that a cell's random numbers come from; each has a tag of its own."""

    plant: int
    data: int
    learner: int
    test: int


@dataclass(frozen=True, eq=False)
class Spec:
    """A learner on a task.

    Parameters
    ----------
    task, learner : objects with all their parameters.
    n_train, n_test : numbers of examples.
    replicate : each has its own planted truth, data, start and test set.
    stream : which fresh random numbers: 1 to explore, 2 to confirm.
    needs : parameters of the learner that are taken from the task, and the attribute that holds each (``self``: the
        task); None: what the learner declares and has at its default.
    plant : whether the replicate's seed replaces the task's; None: unless the task has a seed other than its default.
    compare : which references stand beside: those of the learner and the task, of the task alone, or none.
    names : what task and learner are called in the table, where that is not their class.
    labels : further columns.

    >>> from attnlab import slr
    >>> spec = Spec(slr.Task(d=8, L=3), slr.LinearPredictor(ridge=0.1), n_train=100)
    >>> spec.run()["converged"], spec.columns()["task.gamma"]
    (True, 0.7071067811865476)
    """

    task: Any
    learner: Any
    n_train: int
    n_test: int = 1000
    replicate: int = 0
    stream: int = 1
    needs: Mapping[str, str] | None = None
    plant: bool | None = None
    compare: Compare = "learner"
    names: tuple[str, str] = ("", "")
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.needs is None:
            # set past the frozen dataclass; what None means is settled once, and a copy by replace() keeps it
            object.__setattr__(self, "needs", needs_of(self.learner, self.task, changed(self.learner)))
        if self.plant is None:
            object.__setattr__(self, "plant", "seed" not in changed(self.task))

    def columns(self) -> dict[str, Any]:
        """Every parameter, as plain values: the identity of the experiment."""
        learner = self._informed(self.task, names=True)
        found = {**self.labels, **self._task_columns(), **dict(columns("learner", learner))}
        for role, name in zip(("task", "learner"), self.names, strict=True):
            if name:
                found |= {role: name, f"{role}.class": found[role]}
        return {
            **found,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "compare": self.compare,
            "seed": self.replicate,
        }

    def _task_columns(self) -> dict[str, Any]:
        found = dict(columns("task", self.task))
        # the seed that a replicate replaces has no influence, and must not make two cells of one
        planted = self.plant and [name for name in found if name.split(".")[-1] == "seed"]
        return found | dict.fromkeys(planted or [], "replicate")

    @functools.cached_property
    def seed(self) -> np.random.SeedSequence:
        """Of the planted task: the same for all learners and sizes."""
        return cell_seed({**self._task_columns(), "replicate": self.replicate, "stream": self.stream})

    @property
    def seeds(self) -> Seeds:
        """52 bits, which every language reads exactly from JSON; 32 for learners, as scikit-learn requires."""
        words = {tag: int(branch(self.seed, tag).generate_state(1, np.uint64)[0]) for tag in Seeds._fields}
        return Seeds(*(word >> (32 if tag == "learner" else 12) for tag, word in words.items()))

    @functools.cached_property
    def code(self) -> str:
        """Fingerprint of the code behind the task, the learner and the references beside it."""
        found = {type(self), *roots(self.task), *roots(self.learner)}
        found |= {reference.error for reference in self._references(self.task, self.learner)}
        return fingerprint(*(root for root in found if root.__module__.split(".")[0] not in VERSIONED))

    def cell(self, figure: str) -> Cell:
        """As a cell of the store."""
        return Cell(figure, self.columns(), self, self.stream)

    def build(self) -> tuple[Any, Any]:
        """The task with its truth planted, and the learner with its seed and what it needs to know."""
        task = planted(self.task, self.seeds.plant) if self.plant else self.task
        learner = self._informed(task)
        free = [k for k, v in learner.get_params().items() if k.split("__")[-1] == "random_state" and v is None]
        return task, learner.set_params(**dict.fromkeys(free, self.seeds.learner))

    def _informed(self, task: Any, *, names: bool = False) -> Any:
        """A copy of the learner with what it needs; with ``names``, where it is found if it is no plain value."""
        values = values_of(self.needs or {}, task)
        if names:
            values = {key: v if _is_short(v) else f"task.{(self.needs or {})[key]}" for key, v in values.items()}
        return clone(self.learner).set_params(**values)

    def run(self) -> Record:
        """Sample, fit and test, against the null predictor, which always predicts the mean of the training outputs."""
        task, learner = self.build()
        X, y = task.sample(self.n_train, self.seeds.data)
        learner.fit(X, y)
        X_test, y_test = task.sample(self.n_test, self.seeds.test)
        predicted = np.asarray(learner.predict(X_test))
        # (n, 1) against (n,) would broadcast to n x n differences and give a wrong error without a word
        if predicted.shape != y_test.shape:
            raise ValueError(f"predictions must have shape {y_test.shape}, got {predicted.shape}")
        error, null = float(np.mean((predicted - y_test) ** 2)), float(np.mean((y_test - y.mean(axis=0)) ** 2))
        return {
            "mse": error,
            "null": null,
            "relative_error": error / null,
            **how_it_ended(learner),
            **{f"seed.{tag}": value for tag, value in self.seeds._asdict().items()},
            **self.theory(task, learner),
        }

    def __call__(self, params: Params, seed: np.random.SeedSequence) -> Record:
        """Run as a cell, whose parameters and seed are those given here."""
        return self.run()

    def theory(self, task: Any, fitted: Any) -> dict[str, Any]:
        """What the references say after n_train examples, as columns ``theory.<name>``."""
        learner = chosen(fitted)
        found: dict[str, Any] = {}
        for reference in self._references(task, learner):
            value = reference.error(task, learner, self.n_train)
            if value is None:
                continue
            found[f"theory.{reference.name}"] = float(value)
            if isinstance(value, Prediction):
                found[f"theory.{reference.name}.error"] = float(value.error)
                found[f"theory.{reference.name}.converged"] = bool(np.all(value.converged))
        return found

    def _references(self, task: Any, learner: Any) -> list[Any]:
        if self.compare == "nothing":
            return []
        asked = chosen(learner) if self.compare == "learner" else None
        return [reference for reference in registry.references() if reference.applies_to(task, asked)]


@dataclass(frozen=True)
class Trials(Grid):
    """A grid whose cells are specs: the parameters are a request (:func:`attnlab.lab.request.spec`)."""

    def cells(self, figure: Figure, stream: int) -> Iterator[Cell]:
        """One for each point, replicate by replicate; those of a setting differ in their number alone."""
        from attnlab.lab.request import spec

        made: list[Callable[[int], Cell]] = []
        for point in dataclasses.replace(self, seeds=1).points():
            replicate = replicates(figure.name, dataclasses.replace(spec(point), stream=stream))
            yield replicate(0)
            # with one replicate none is wanted again: a million settings are then not kept
            if self.seeds > 1:
                made.append(replicate)
        for seed in range(1, self.seeds):
            yield from (replicate(seed) for replicate in made)


def replicates(figure: str, first: Spec) -> Callable[[int], Cell]:
    """The cells of a setting by their replicate: what they have in common is made once, for there may be millions."""
    fields = {field.name: getattr(first, field.name) for field in dataclasses.fields(first)} | {"code": first.code}
    common = {"figure": figure, "stream": first.stream, "shared": (), "code": first.code}
    columns = first.columns()
    before, after = replicate_texts(figure, columns, first.stream)

    def cell(seed: int) -> Cell:
        # the constructors of frozen dataclasses, and a hash of all columns, would take most of a resumed run
        spec, made = object.__new__(Spec), object.__new__(Cell)
        spec.__dict__.update(fields, replicate=seed)
        id = hashlib.sha256(f"{before}{seed}{after}".encode()).hexdigest()
        made.__dict__.update(common, params={**columns, "seed": seed}, run=spec, id=id)
        return made

    return cell


def planted(task: Any, seed: int) -> Any:
    """The task with this seed, and every task inside it."""
    changes = {
        key: seed if key == "seed" else planted(value, seed)
        for key, value in (parameters(task) or {}).items()
        if key == "seed" or (hasattr(value, "sample") and parameters(value))
    }
    return replaced(task, changes) if changes else task


def replaced(task: Any, changes: Mapping[str, Any]) -> Any:
    """The task with some parameters changed."""
    if dataclasses.is_dataclass(task) and not isinstance(task, type):
        return dataclasses.replace(task, **changes)
    return type(task)(**{**(parameters(task) or {}), **changes})


def changed(item: Any) -> set[str]:
    """The parameters of an object that differ from the defaults of its class."""
    defaults = {name: option.default for name, option in inspect.signature(type(item)).parameters.items()}
    return {name for name, value in (parameters(item) or {}).items() if not _same(value, defaults.get(name))}


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value is default or (value == default and type(value) is not np.ndarray))
    except ValueError:  # an array has no single answer
        return False


def needs_of(learner: Any, task: Any, given: set[str]) -> dict[str, str]:
    """What a learner declares to need and is not given, where the task has all of it."""
    declared = getattr(learner, "needs", ())
    sources = dict(declared) if isinstance(declared, Mapping) else {name: name for name in declared}
    # all or none: with a part of them the learner would mix the law's values with defaults of its own
    if not all(source == "self" or hasattr(task, source) for source in sources.values()):
        return {}
    return {name: source for name, source in sources.items() if name not in given}


def values_of(needs: Mapping[str, str], task: Any) -> dict[str, Any]:
    """The parameters of a learner that come from the task."""
    return {name: task if source == "self" else getattr(task, source) for name, source in needs.items()}


def inner(learner: Any) -> Any:
    """The learner inside a search, a pipeline or an adapter: the fitted one where there is one."""
    for name in ("best_estimator_", "estimator_"):
        if hasattr(learner, name):
            return inner(getattr(learner, name))
    if isinstance(learner, Pipeline):
        return inner(learner.steps[-1][1])
    return inner(learner.estimator) if hasattr(learner, "estimator") else learner


def chosen(learner: Any) -> Any:
    """What theory is asked about: the learner inside, with the ridge that it chose on its training data."""
    found = inner(learner)
    ridge = getattr(found, "ridge_", None)
    is_chosen = isinstance(ridge, int | float | np.number) and hasattr(found, "ridge")
    return clone(found).set_params(ridge=float(ridge)) if is_chosen else found  # type: ignore[arg-type]


def how_it_ended(fitted: Any) -> dict[str, Any]:
    """Whether and why a fit stopped; None where the learner does not say, as some of other libraries."""
    found = fitted if hasattr(fitted, "converged_") else inner(fitted)
    settled, count = getattr(found, "converged_", None), getattr(found, "n_iter_", None)
    return {
        "converged": None if settled is None else bool(settled),
        "n_iter": None if count is None else int(np.max(count)),
        "stop_reason": getattr(found, "stop_reason_", None),
    }


def _is_short(value: Any) -> bool:
    """Whether a value can be a column by itself: a number, a word, or a parameter object of the law."""
    return not isinstance(value, np.ndarray) and not hasattr(value, "sample")
