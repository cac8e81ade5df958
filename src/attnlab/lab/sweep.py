"""A user's own experiment in TOML: a grid over tasks, learners and sample sizes, or a figure with knobs set."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from attnlab.common.figure import Figure, Grid
from attnlab.lab import registry
from attnlab.lab.errors import UsageError

Scalar = int | float | str | bool
STRICT = ConfigDict(extra="forbid")  # a misspelt key would silently change nothing


def _positive(words: str, *kinds: type) -> BeforeValidator:
    """One value or a list of them; true is not 1, and "5" is not 5."""

    def checked(value: Any) -> Any:
        items = value if isinstance(value, list) else [value]
        if not items or not all(type(item) in kinds and 0 < item < math.inf for item in items):
            raise ValueError(f"must be a positive {words} or a list of them, got {value!r}")
        return value

    return BeforeValidator(checked)


class FigureFile(BaseModel):
    """A figure of the lab with knobs set."""

    model_config = STRICT
    figure: str
    scale: Literal["quick", "paper"] = "quick"
    set: dict[str, Scalar | list[Scalar]] = Field(default_factory=dict)


class Named(BaseModel):
    """A task or learner by name; every other key is one of its parameters, a list is an axis of the grid."""

    model_config = ConfigDict(extra="allow")
    name: str

    def columns(self, role: str) -> dict[str, Any]:
        """The name and the parameters as they stand in a request."""
        return {role: self.name, **{f"{role}.{key}": value for key, value in (self.model_extra or {}).items()}}


class SweepFile(BaseModel):
    """A grid over tasks x learners x sample size; the size is ``n_train``, or ``alpha`` where the task has it."""

    model_config = STRICT
    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    task: Named | list[Named]
    learner: list[Named] = Field(min_length=1)
    n_train: Annotated[Any, _positive("whole number", int)] = None
    alpha: Annotated[Any, _positive("number", int, float)] = None
    n_test: int = Field(default=1000, ge=2, strict=True)
    seeds: int = Field(default=1, ge=1, strict=True)

    @model_validator(mode="after")
    def _one_size(self) -> SweepFile:
        if (self.n_train is None) == (self.alpha is None):
            raise ValueError("give n_train or alpha, one of them")
        return self

    def grids(self) -> list[Grid]:
        """One for each task and learner."""
        tasks = self.task if isinstance(self.task, list) else [self.task]
        size = {"n_train": self.n_train} if self.alpha is None else {"alpha": self.alpha}
        return [
            Grid({**task.columns("task"), **learner.columns("learner"), **size, "n_test": self.n_test}, self.seeds)
            for task, learner in itertools.product(tasks, self.learner)
        ]


def read(
    path: str | Path,
    knobs: Mapping[str, Any] | None = None,
    accept: Callable[[str, int], None] = lambda name, size: None,
) -> tuple[Figure, str]:
    """Read a request and set knobs; return the figure to run and its scale. Nothing is computed, everything is checked.

    ``accept`` gets the name and the number of cells, and may refuse them.
    """
    knobs = knobs or {}
    content = _content(path)
    try:
        if "figure" in content:
            asked = FigureFile.model_validate(content)
            # the command line's knobs after the file's, which they replace
            figure = registry.select([asked.figure])[0].changed(asked.scale, asked.set).changed(asked.scale, knobs)
            accept(figure.name, figure.size(asked.scale))
            return figure, asked.scale
        file = SweepFile.model_validate(content)
        grids = file.grids()
        # counted before it is built, for a refused grid must cost nothing
        accept(f"sweep.{file.name}", sum(grid.changed(knobs).size for grid in grids))
        # only now: scikit-learn and matplotlib take longer to import than a sweep of any size to count
        from attnlab.lab.sweep_figure import sweep_figure

        return sweep_figure(file.name, grids).changed("quick", knobs), "quick"
    # before ValueError, of which pydantic's error is a kind
    except ValidationError as error:
        found = [(".".join(map(str, e["loc"])), e["msg"].removeprefix("Value error, ")) for e in error.errors()]
        lines = [f"{place}: {text}" if place else text for place, text in found]
        raise UsageError(f"{path}: " + "; ".join(lines)) from error
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: {error}") from error


def _content(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path} nests tables or lists too deeply") from error
