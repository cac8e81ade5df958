"""A user's own experiment in TOML: a grid over tasks, learners and sample sizes, or a figure with knobs set."""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from attnlab.common.drawing import COLORS, panels, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab.lab import registry
from attnlab.lab.errors import UsageError
from attnlab.lab.trial import Trial

Scalar = int | float | str | bool
Knob = Scalar | list[Scalar]


class Request(BaseModel):
    """Unknown keys are refused: a misspelt one would silently change nothing."""

    model_config = ConfigDict(extra="forbid")


class FigureRequest(Request):
    """A figure of the lab with knobs set."""

    figure: str
    scale: Literal["quick", "paper"] = "quick"
    set: dict[str, Knob] = Field(default_factory=dict)


class Component(BaseModel):
    """A task or learner by name; every other key is one of its parameters, a list is an axis of the grid."""

    model_config = ConfigDict(extra="allow")
    name: str

    def params(self) -> dict[str, Any]:
        """The parameters given."""
        return dict(self.model_extra or {})


class SweepRequest(Request):
    """A grid over task x learner x sample size."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    task: Component
    learner: list[Component] = Field(min_length=1)
    n_train: int | list[int]
    n_test: int = Field(default=1000, ge=2)
    seeds: int = Field(default=1, ge=1)


def read(path: str | Path) -> tuple[Figure, str]:
    """Read a request; return the figure to run and its scale. Nothing is computed, everything is checked."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    try:
        if "figure" in content:
            request = FigureRequest.model_validate(content)
            return registry.select([request.figure])[0].changed(request.scale, request.set), request.scale
        return sweep_figure(SweepRequest.model_validate(content)), "quick"
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors()]
        raise UsageError(f"{path}: " + "; ".join(lines)) from error
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: {error}") from error


def sweep_figure(request: SweepRequest) -> Figure:
    """The figure that runs a sweep; the first cell of each learner is built to check names and ranges."""
    trial = Trial.of([request.task.name], [learner.name for learner in request.learner])
    grids = []
    for learner in request.learner:
        params = {
            "task": request.task.name,
            **{f"task.{key}": value for key, value in request.task.params().items()},
            "learner": learner.name,
            **{f"learner.{key}": value for key, value in learner.params().items()},
            "n_train": request.n_train,
            "n_test": request.n_test,
        }
        grids.append(Grid(params, request.seeds))
    axes = {name for grid in grids for name, value in grid.params.items() if isinstance(value, list)}
    figure = Figure(
        name=f"sweep.{request.name}",
        title=request.name,
        paper="a sweep of your own",
        shows=f"Test error relative to the null predictor over {', '.join(sorted(axes)) or 'one setting'}.",
        scales={"quick": grids},
        run=trial,
        draw=functools.partial(draw, axes=sorted(axes)),
        # learners are compared on the same data
        shared=sorted({name for grid in grids for name in grid.params if name.split(".")[0] == "learner"}),
        shape=["learner", "n_train"],
    )
    for cell in figure.cells("quick"):
        trial.build(cell.params, 0)
    return figure


def draw(records: Records, axes: Sequence[str]) -> Any:
    """Error against the axis with most values, one colour per learner."""
    canvas, ((plot,),) = panels(width=5.5)
    numeric = [a for a in axes if all(isinstance(v, int | float) for v in records.values(a))] or ["n_train"]
    x = max(numeric, key=lambda name: len(records.values(name)))
    others = [a for a in axes if a != x]
    labels = sorted({_label(row, others) for row in records})
    for label, color in zip(labels, [COLORS[i % len(COLORS)] for i in range(len(labels))], strict=True):
        chosen = Records(tuple(row for row in records if _label(row, others) == label))
        points(plot, chosen.curve(x, "relative_error"), color=color, label=label, linestyle="--", linewidth=0.8)
    plot.axhline(1.0, color="#999999", linewidth=1)
    plot.set(xlabel=x, ylabel="test error / null error", yscale="log")
    if min(records.values(x)) > 0 and max(records.values(x)) > 8 * min(records.values(x)):
        plot.set_xscale("log")
    plot.legend()
    return canvas


def _label(row: Mapping[str, Any], names: Sequence[str]) -> str:
    extra = [f"{name.removeprefix('learner.')}={row[name]}" for name in names if name in row and name != "learner"]
    return " ".join([str(row["learner"]), *extra])


def to_toml(figure: Figure, scale: str) -> str:
    """The request that runs a figure of the lab again with the knobs it has (for a sweep: its grids, as a comment)."""
    if figure.name.startswith(("sweep.", "arena")):
        return "".join(f"# {json.dumps(dict(grid.params))}\n" for grid in figure.scales[scale])
    lines = [f'figure = "{figure.name}"', f'scale = "{scale}"']
    if len(figure.scales[scale]) == 1:
        values = figure.knobs(scale).items()
        lines += ["", "[set]", *(f"{name} = {_toml(value)}" for name, value in values if not isinstance(value, tuple))]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    return json.dumps(value).replace("Infinity", "inf").replace("NaN", "nan")
