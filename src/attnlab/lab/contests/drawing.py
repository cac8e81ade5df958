"""The pictures of the arena, drawn from its table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np

from attnlab.common.drawing import COLORS, MARKERS, line, panels, points
from attnlab.common.records import Curve, Records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Errors are coloured and drawn down to these; exact recovery is below any such number.
FLOOR, LOWEST = 1e-4, 1e-5
BLANK = "#ededed"
NOTHING = 1e-10
HUES = (*COLORS[:6], COLORS[7])  # black is kept for the references and the linear baseline

Row = Mapping[str, Any]


def heat_map(table: Records) -> Canvas:
    """Learner by task, the error in each field; tasks that share their learners stand together."""
    blocks = _blocks(table)
    learners = [learners_on(table, tasks) for tasks in blocks]
    rows = max(map(len, learners))
    columns = sum(map(len, blocks))
    canvas, plots = panels(
        1,
        len(blocks),
        width=(1.05 * columns + 3.4) / len(blocks),
        height=0.44 * rows + 1.5,
        width_ratios=[len(tasks) for tasks in blocks],
    )
    cmap = matplotlib.colormaps["viridis"]
    for plot, tasks, names in zip(plots[0], blocks, learners, strict=True):
        _fields(plot, table, tasks, names, cmap, rows)
    scale = matplotlib.cm.ScalarMappable(matplotlib.colors.LogNorm(FLOOR, 1), cmap)
    bar = canvas.colorbar(scale, ax=plots[0].tolist(), fraction=0.025, extend="min")
    bar.set_label("test error / null error")
    return canvas


def _fields(plot: Axes, table: Records, tasks: list[str], names: list[str], cmap: Any, rows: int) -> None:
    for x, task in enumerate(tasks):
        for y, name in enumerate(names):
            found = [row for row in table if row["task"] == task and row["learner"] == name]
            if found:
                _field(plot, x, y, last(found), cmap, size(table, task))
    references = [y for y, name in enumerate(names) if name == "Bayes"]
    for y in references:
        plot.axhline(y - 0.5, color="black", linewidth=1.2)
    plot.set(xlim=(-0.5, len(tasks) - 0.5), ylim=(rows - 0.5, -0.5))
    plot.set_xticks(
        range(len(tasks)), [f"{task.replace('.', chr(10), 1)}\nn = {size(table, task)}" for task in tasks], fontsize=8.5
    )
    plot.set_yticks(range(len(names)), names)
    plot.xaxis.tick_top()
    plot.tick_params(length=0)
    plot.grid(False)
    for side in plot.spines.values():
        side.set_visible(False)


def last(rows: Sequence[Row]) -> Row:
    """The row of the most examples, before any that was declined."""
    return max(rows, key=lambda row: (row["status"] != "declined", row["n"]))


def _field(plot: Axes, x: int, y: int, row: Row, cmap: Any, n: int) -> None:
    """One coloured field with its number (and its own n where that is not the heading's), or a grey one and why."""
    value = row["relative_error"]
    color, ink = BLANK, "#a63d00" if row["status"] == "failed" else "#555555"
    if value is not None:
        # FLOOR is 0 and the null error 1 on this scale, as on the colour bar
        color = cmap(1 + np.log10(np.clip(value, FLOOR, 1)) / -np.log10(FLOOR))
        ink = "black" if np.dot(color[:3], (0.299, 0.587, 0.114)) > 0.45 else "white"  # by its luminance
    text = field_text(row, "\n", n)
    plot.add_patch(matplotlib.patches.Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, color=color, linewidth=0))
    plot.text(x, y, text, ha="center", va="center", fontsize=7.5, color=ink, linespacing=1.1)


def field_text(row: Row, between: str, n: int) -> str:
    """What stands in a field: error, standard error and, where it is not the ``n`` of the others, its own; or why
    there is none.
    """
    if row["status"] == "failed":
        return "failed"
    if row["status"] == "declined":
        return str(row["reason"]).replace(" ", between, 1)
    parts = [_number(row["relative_error"])]
    # an error of rounding has a spread of rounding
    if row["sem"] is not None and row["relative_error"] >= NOTHING:
        parts.append(f"±{_number(row['sem'])}")
    if row["n"] < n:
        parts.append(f"n = {row['n']}")
    return between.join(parts)


def _number(value: float) -> str:
    """Two or three digits, small ones as powers of ten.

    >>> _number(0.4763), _number(3.2e-6), _number(4e-29)
    ('0.476', '3e−06', '<1e−10')
    """
    if 0 < value < NOTHING:
        return "<1e−10"
    text = f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.0e}"
    return text.replace("-", "−")


def size(table: Records, task: str) -> int:
    """The most examples of a task that anybody took."""
    return max(int(row["n"]) for row in table if row["task"] == task and row["status"] in ("done", "failed"))


def styles(names: Sequence[str], order: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour for each learner of a panel, and a marker that is its own among all."""
    # with more learners than colours a colour comes again, with another marker
    hues = itertools.cycle(HUES)
    return {
        name: ("black" if name == "linear" else next(hues), MARKERS[order.index(name) % len(MARKERS)]) for name in names
    }


def curves(table: Records) -> Canvas:
    """Error against the number of examples, one panel for each task."""
    blocks = _blocks(table)
    tasks = [(task, block) for block in blocks for task in block]
    order = [name for name in dict.fromkeys(row["learner"] for row in table) if name != "Bayes"]
    columns = min(3, len(tasks))
    canvas, plots = panels(math.ceil(len(tasks) / columns), columns, width=3.7, height=2.9)
    handles: dict[str, Any] = {}
    for plot, entry in itertools.zip_longest(plots.flat, tasks):
        if entry is None:
            plot.set_axis_off()
            continue
        task, block = entry
        _panel(plot, table, task, styles([name for name in learners_on(table, block) if name != "Bayes"], order))
        # by label: a learner that is in several panels has one entry
        handles |= dict(zip(*reversed(plot.get_legend_handles_labels()), strict=True))
    canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(8, len(handles)))
    return canvas


def _panel(plot: Axes, table: Records, task: str, styles: Mapping[str, tuple[str, str]]) -> None:
    for name, (color, marker) in styles.items():
        rows = _sorted(table, task, name, "done")
        if not rows:
            continue
        n, error, sem, theory = (_column(rows, key) for key in ("n", "relative_error", "sem", "theory"))
        # an error at the floor is drawn without its bar, which belongs to the true value
        shown = Curve(n, np.maximum(error, LOWEST), np.where(error > LOWEST, sem, 0))
        points(plot, shown, color=color, fmt=marker, label=name, linestyle=":", linewidth=0.7)
        if np.isfinite(theory).any():
            line(plot, n, np.maximum(theory, LOWEST), color=color, linewidth=1.1)
    sizes = sorted({row["n"] for row in table if row["task"] == task})
    plot.set(xscale="log", yscale="log", xlabel="examples n", ylabel="error / null error")
    plot.set_title(task, loc="left")
    plot.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    plot.set_xticks([], minor=True)
    plot.axhline(1, color=COLORS[7], linewidth=1)
    _bayes_line(plot, _sorted(table, task, "Bayes", "reference"))
    low, high = plot.get_ylim()
    # room below the floor, where markers stand; a learner far above the null error must not press the others together
    plot.set_ylim(max(low, 0.6 * LOWEST), min(max(high, 1.3), 4))


def _bayes_line(plot: Axes, rows: list[Row]) -> None:
    """The Bayes error; where it is zero it has no place on the axis, and the title states it."""
    if not rows:
        return
    n, error = _column(rows, "n"), _column(rows, "relative_error")
    seen = error > LOWEST
    line(plot, n[seen], error[seen], color="black", linestyle="--", label="Bayes", marker="_", markersize=7)
    if not seen.all():
        where = "" if not seen.any() else f" from n = {int(n[~seen].min())}"
        plot.set_title(f"Bayes 0{where}", loc="right", fontsize=8)


def costs(rows: Records) -> Canvas:
    """Seconds and memory, one line for each learner."""
    names = list(dict.fromkeys(row["learner"] for row in rows))
    canvas, ((left, right),) = panels(1, 2, width=4.2, height=0.27 * len(names) + 1.2, sharey=True)
    for y, name in enumerate(names):
        mine = [row for row in rows if row["learner"] == name]
        left.plot([row["seconds"] for row in mine], [y] * len(mine), "o", color=COLORS[0], alpha=0.7)
        if mine[0]["memory_mb"] is not None:
            right.plot(mine[0]["memory_mb"], y, "o", color=COLORS[1])
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.set(xscale="log", xlabel="seconds a cell, one thread")
    right.set(xlabel="peak memory, MB")
    right.set_xlim(left=0)
    return canvas


def _blocks(table: Records) -> list[list[str]]:
    """Scalar tasks, then sequence tasks."""
    fitted = [row for row in table if row["status"] in ("done", "failed")]
    kinds = dict.fromkeys(row["kind"] for row in fitted)
    return [list(dict.fromkeys(row["task"] for row in fitted if row["kind"] == kind)) for kind in kinds]


def learners_on(table: Records, tasks: list[str]) -> list[str]:
    """The learners that were fitted to any of the tasks, in order, Bayes last."""
    found = {r["learner"] for r in table if r["task"] in tasks and r["status"] in ("done", "failed", "reference")}
    order = dict.fromkeys(row["learner"] for row in table)
    return sorted(found, key=lambda name: (name == "Bayes", list(order).index(name)))


def _sorted(table: Records, task: str, learner: str, status: str) -> list[Row]:
    found = [r for r in table if (r["task"], r["learner"], r["status"]) == (task, learner, status)]
    return sorted(found, key=lambda row: row["n"])


def _column(rows: list[Row], name: str) -> np.ndarray:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=float)
