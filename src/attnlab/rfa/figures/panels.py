"""How the experiments are drawn: relative error against one knob. Simulation is points, theory for the heads that were
simulated is a line, theory for infinitely many heads a thin line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from attnlab.common.drawing import COLORS, MARKERS, line, panels, points, style
from attnlab.common.records import Records
from attnlab.rfa.figures.curves import INFINITE, TARGETS, predictable, prediction, title
from attnlab.rfa.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MODEL_NAMES: Mapping[str, str] = MappingProxyType(
    {"rfa": "RFA", "brfa": "BRFA", "rfmlp": "RFMLP", "patch": "pooled units"}
)
MODEL_STYLE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {model: (COLORS[i], MARKERS[i]) for i, model in enumerate(MODEL_NAMES)}
)
CAPTION = (
    "Lines: predictions for the heads that were simulated; thin lines: for infinitely many. (Without a table of "
    "eigenvalues, for a bias or a softmax target, predictions end at n = 512.)"
)
# A prediction without a known spectrum is read off a sample of twice the size: larger ones take minutes.
LARGEST_SAMPLED = 512
LIMIT = {"linewidth": 0.6, "alpha": 0.8}


def legend_below(canvas: Canvas, axes: Axes, columns: int) -> None:
    """One legend for all panels, outside the data."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: ("theory" in labels[i], r"\infty" in labels[i]))
    canvas.legend([handles[i] for i in order], [labels[i] for i in order], loc="outside lower center", ncols=columns)


def task_of(row: Mapping[str, Any], name: str, **changed: Any) -> Task:
    """The task of a cell, but for its seed, on which no prediction here depends."""
    return Task(**{"d": row["d"], "n_keys": row["n_keys"], **TARGETS[name], **changed})


def draw_learning_curves(records: Records, names: Sequence[str], columns: int) -> Canvas:
    """One panel per target: error against n for every model, with the predictions for RFA and RFMLP."""
    with style():
        canvas, grid = panels(math.ceil(len(names) / columns), columns, width=3.3, height=2.6)
        # Model by model: the predictions of a model for all targets share its sampled kernels.
        for model, (color, marker) in [(m, MODEL_STYLE[m]) for m in MODEL_NAMES if m in records.values("model")]:
            for axes, name in zip(grid.flat, names, strict=False):
                mine = records.where(target=name, model=model)
                points(axes, mine.curve("n", "error"), color=color, fmt=marker, label=MODEL_NAMES[model])
                predictions_along_n(axes, mine, task_of(mine.rows[0], name), color, MODEL_NAMES[model])
        for axes, name in zip(grid.flat, names, strict=False):
            axes.set(xscale="log", yscale="log", title=title(name))
            axes.axhline(1, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
            value_ticks(axes, records.values("n"))
            narrow_ticks(axes)
        for axes in grid[-1]:
            axes.set_xlabel("samples $n$")
        for axes in grid[:, 0]:
            axes.set_ylabel("error / Var $f_*$")
        legend_below(canvas, grid[0, 0], 4)
    return canvas


def predictions_along_n(axes: Axes, records: Records, task: Task, color: str, label: str) -> None:
    """The line of the heads that were simulated and that of infinitely many; nothing where there is no prediction."""
    row, sizes = records.rows[0], np.array(records.values("n"))
    if row["model"] not in ("rfa", "brfa", "rfmlp"):
        return
    exact = predictable(task, row["model"])
    n = np.geomspace(min(sizes), max(sizes), 30) if exact else sizes[sizes <= LARGEST_SAMPLED]
    if len(n):
        finite, limit = (prediction(task, n, row["model"], heads).value for heads in (row["heads"], INFINITE))
        line(axes, n, finite, color=color, label=f"{label}, theory")
        line(axes, n, limit, color=color, label=f"{label}, theory, $M = \\infty$", **LIMIT)


def narrow_ticks(axes: Axes) -> None:
    """Label 1, 2, 5 on a logarithmic axis that spans little more than a decade; draw a smaller span linearly."""
    low, high = axes.get_ylim()
    if high / low < 4:
        axes.set_yscale("linear")
    elif high / low < 60:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def value_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Ticks at the values that were run, six at most."""
    shown = list(values)[:: math.ceil(len(values) / 6)]
    axes.set_xticks(shown, [f"{value:g}" for value in shown])
    axes.xaxis.set_minor_locator(NullLocator())


def draw_knob(
    records: Records,
    knob: str,
    names: Sequence[str],
    series: str,
    labels: Mapping[Any, str],
    xlabel: str,
    *,
    columns: int = 3,
    logarithmic: bool = True,
    theory: Callable[[Records, str, str, Any], tuple[np.ndarray, np.ndarray] | None] | None = None,
) -> Canvas:
    """One panel per target: error against ``knob``, one set of points per value of ``series``.

    ``theory(records, knob, target, value)`` gives the lines of a value of the series, for the heads that were simulated
    and for infinitely many, or None; without them points are joined.
    """
    columns = min(columns, len(names))
    with style():
        canvas, grid = panels(math.ceil(len(names) / columns), columns, width=3.3, height=2.8)
        for axes, name in zip(grid.flat, names, strict=True):
            here = records.where(target=name)
            for i, value in [(i, v) for i, v in enumerate(labels) if v in here.values(series)]:
                curve = here.curve(knob, "error", **{series: value})
                predicted = theory(here.where(**{series: value}), knob, name, value) if theory else None
                join = "-" if theory is None else ":" if predicted is None else ""
                points(axes, curve, color=COLORS[i], fmt=MARKERS[i] + join, linewidth=0.9, label=labels[value])
                if predicted is not None:
                    line(axes, curve.x, predicted[0], color=COLORS[i], label=f"{labels[value]}, theory")
                    limit = f"{labels[value]}, theory, $M = \\infty$"
                    line(axes, curve.x, predicted[1], color=COLORS[i], label=limit, **LIMIT)
            axes.set(title=title(name), xlabel=xlabel)
            if logarithmic:
                axes.set(xscale="log", yscale="log")
                narrow_ticks(axes)
                value_ticks(axes, here.values(knob))
            else:
                axes.set_ylim(0, None)
        for axes in grid[:, 0]:
            axes.set_ylabel("error / Var $f_*$")
        legend_below(canvas, grid[0, 0], len(labels))
    return canvas
