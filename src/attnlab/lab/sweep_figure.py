"""The figure of a sweep and its picture.

Every reference that applies to the task and learner is a column of the table and a line of the picture.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.common.drawing import COLORS, MARKERS, line, panels, plain_log, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab.common.seeds import canonical
from attnlab.lab.describe import settings
from attnlab.lab.request import SIZES, check, run_spec
from attnlab.lab.spec import Trials


def sweep_figure(name: str, asked: Sequence[Grid]) -> Figure:
    """The figure that runs the requests at the points of grids; names and ranges of every cell are checked."""
    # plain grids were enough to count the cells; Trials turn each point into a spec
    grids = [Trials(grid.params, grid.seeds) for grid in asked]
    axes = {name for grid in grids for name, value in grid.params.items() if isinstance(value, list)}
    axes |= (
        {"task"} if len({canonical(settings("task", g.params) | {"": g.params["task"]}) for g in grids}) > 1 else set()
    )
    for point in {canonical(point): point for grid in grids for point in _corners(grid)}.values():
        check(point)
    return Figure(
        name=f"sweep.{name}",
        title=name,
        paper="a sweep of your own",
        shows=f"Test error relative to the null predictor over {', '.join(sorted(axes)) or 'one setting'}.",
        scales={"quick": grids},
        run=run_spec,
        # as a wrapper it leads the report to the source that draws
        draw=functools.update_wrapper(functools.partial(draw, axes=sorted(axes)), draw),
        shape=["learner", "n_train"],
    )


def _corners(grid: Trials) -> Iterator[dict[str, Any]]:
    """Every value of every axis once, the others at their first: a grid of millions is checked in a moment.

    The size of the data and the replicate do not change what a learner may be given.
    """
    first = {name: value[0] if isinstance(value, list) else value for name, value in grid.params.items()} | {"seed": 0}
    yield first
    for name, axis in grid.params.items():
        if isinstance(axis, list) and name not in SIZES:
            yield from ({**first, name: value} for value in axis[1:])


def draw(records: Records, axes: Sequence[str]) -> Any:
    """Error against the axis with most values, one colour per learner; theory as a line."""
    canvas, ((plot,),) = panels(width=5.5, height=3.8)
    # an axis of one learner only is no axis of the picture
    numeric = [a for a in axes if all(isinstance(row.get(a), int | float) for row in records)]
    x = max(
        numeric or ["n_train" if records.values("n_train") else "alpha"], key=lambda name: len(records.values(name))
    )
    others = [a for a in axes if a != x]
    groups = _grouped(records, lambda row: _label(row, others))
    for i, (label, rows) in enumerate(groups.items()):
        color = COLORS[i % len(COLORS)]
        marker = MARKERS[i % len(MARKERS)]
        points(plot, rows.curve(x, "relative_error"), color=color, label=label, fmt=marker, ms=4.5)
        _draw_theory(plot, rows, x, "theory.theory", color=color)
    for i, rows in enumerate(
        _grouped(records, lambda row: str([row.get(name) for name in others if name.split(".")[0] == "task"])).values()
    ):
        # one entry in the legend for the lines of all settings of the task
        name = "Bayes" if i == 0 else None
        _draw_theory(plot, rows, x, "theory.Bayes", color="#777777", linestyle="--", linewidth=1, label=name)
    plot.axhline(1.0, color="#999999", linewidth=1)
    plot.set(xlabel=x, ylabel="test error / null error", yscale="log")
    if min(records.values(x)) > 0 and max(records.values(x)) > 8 * min(records.values(x)):
        plot.set_xscale("log")
        plain_log(plot)
    plain_log(plot, "y")
    plot.legend(fontsize=8)
    return canvas


def _draw_theory(plot: Any, rows: Records, x: str, column: str, **options: Any) -> None:
    """A reference relative to the null error, where it has a value and is not zero."""
    found = [(row[x], row[column] / row.get("theory.null", row["null"])) for row in rows if row.get(column)]
    if found:
        values = {at: float(np.mean([value for place, value in found if place == at])) for at, _ in sorted(found)}
        line(plot, list(values), list(values.values()), **options)


def _grouped(records: Records, key: Callable[[Mapping[str, Any]], str]) -> dict[str, Records]:
    """The rows by the value of ``key``, in order."""
    groups = records.split(key)
    return {name: groups[name] for name in sorted(groups)}


def _label(row: Mapping[str, Any], names: Sequence[str]) -> str:
    shown = [name for name in names if name in row and name not in ("learner", "task")]
    extra = [f"{name.removeprefix('learner.').removeprefix('task.')}={row[name]}" for name in shown]
    where = [f"on {row['task']}"] if "task" in names else []
    # a dollar sign would begin a formula
    return " ".join([str(row["learner"]), *extra, *where]).replace("$", r"\$")
