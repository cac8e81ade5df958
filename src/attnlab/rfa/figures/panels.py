"""How the experiments are drawn: relative error against one knob, theory as lines, simulation as points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from attnlab.common.drawing import COLORS, MARKERS, line, panels, points, style
from attnlab.common.records import Records
from attnlab.rfa.figures.curves import TARGETS, TITLES
from attnlab.rfa.task import Task
from attnlab.rfa.theory import learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MODEL_NAMES: Mapping[str, str] = MappingProxyType(
    {"rfa": "RFA", "brfa": "BRFA", "rfmlp": "RFMLP", "patch": "pooled units"}
)
MODEL_STYLE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {model: (COLORS[i], MARKERS[i]) for i, model in enumerate(MODEL_NAMES)}
)


def legend_below(canvas: Canvas, axes: Axes, columns: int) -> None:
    """One legend for all panels, outside the data."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: labels[i].endswith("theory"))
    handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    canvas.legend(handles, labels, loc="outside lower center", ncols=columns)


def draw_learning_curves(records: Records, names: Sequence[str], columns: int) -> Canvas:
    """One panel per target: error against n for every model, with the predictions for RFA and RFMLP."""
    rows = -(-len(names) // columns)
    with style():
        canvas, grid = panels(rows, columns, width=3.3, height=2.6)
        for axes, name in zip(grid.flat, names, strict=False):
            here = records.where(target=name)
            for model in [m for m in MODEL_NAMES if m in here.values("model")]:
                color, marker = MODEL_STYLE[model]
                points(axes, here.curve("n", "error", model=model), color=color, fmt=marker, label=MODEL_NAMES[model])
                if model in ("rfa", "rfmlp") and not name.startswith("softmax"):
                    _theory(axes, here, name, model, color)
            axes.set(xscale="log", yscale="log", title=TITLES[name])
            axes.axhline(1, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
            value_ticks(axes, here.values("n"))
            narrow_ticks(axes)
        for axes in grid[-1]:
            axes.set_xlabel("samples $n$")
        for axes in grid[:, 0]:
            axes.set_ylabel("error / Var $f_*$")
        legend_below(canvas, grid[0, 0], 6)
    return canvas


def _theory(axes: Axes, records: Records, name: str, model: str, color: str) -> None:
    row = records.rows[0]
    sizes = np.geomspace(min(records.values("n")), max(records.values("n")), 25)
    task = Task(d=row["d"], n_keys=row["n_keys"], **TARGETS[name])
    line(axes, sizes, learning_curve(task, sizes, model).value, color=color, label=f"{MODEL_NAMES[model]}, theory")


def narrow_ticks(axes: Axes) -> None:
    """Label 1, 2, 5 on a logarithmic axis that spans little more than a decade; draw a smaller span linearly."""
    low, high = axes.get_ylim()
    if high / low < 4:
        axes.set_yscale("linear")
    elif high / low < 30:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def value_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Ticks at the values that were run, six at most."""
    shown = list(values)[:: -(-len(values) // 6)]
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
    theory: Callable[[Records, str, str, Any], np.ndarray | None] | None = None,
) -> Canvas:
    """One panel per target: error against ``knob``, one set of points per value of ``series``.

    ``theory(records, knob, target, value)`` gives the line of a value of the series, or None; without it points are
    joined.
    """
    columns = min(columns, len(names))
    with style():
        canvas, grid = panels(-(-len(names) // columns), columns, width=3.3, height=2.8)
        for axes, name in zip(grid.flat, names, strict=True):
            here = records.where(target=name)
            for i, value in [(i, v) for i, v in enumerate(labels) if v in here.values(series)]:
                curve = here.curve(knob, "error", **{series: value})
                predicted = theory(here, knob, name, value) if theory else None
                join = "-" if theory is None else ":" if predicted is None else ""
                points(axes, curve, color=COLORS[i], fmt=MARKERS[i] + join, linewidth=0.9, label=labels[value])
                if predicted is not None:
                    line(axes, curve.x, predicted, color=COLORS[i], label=f"{labels[value]}, theory")
            axes.set(title=TITLES[name], xlabel=xlabel)
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
