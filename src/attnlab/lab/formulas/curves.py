"""A table of theory as a picture: one varied parameter is a curve, two are a family of curves or a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.drawing import COLORS, line, panels
from attnlab.common.validation import one_of
from attnlab.lab.formulas.tabulate import Request, Table, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FAMILY = 7
GREEK = ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "nu", "rho", "sigma", "tau", "theta", "eta", "epsilon")
SYMBOLS = {name: rf"$\{name}$" for name in GREEK} | {"lam": r"$\lambda$", "eps": r"$\epsilon$", "q_hat": r"$\hat q$"}


def check(asked: Request) -> None:
    """Whether the request can be drawn: one or two varied parameters, at least one of them a number."""
    if not 1 <= len(asked.varied) <= 2 or not _numeric(asked):
        varied = ", ".join(asked.varied) or "none"
        raise ValueError(f"--plot needs one or two parameters with several values, one numeric; varied: {varied}")


def curves(table: Table, show: str = "") -> Canvas:
    """The picture of one result (``show``; the first if not named) against what was varied."""
    asked = table.request
    check(asked)
    column, rows = chosen(table, show), [spread(row) for row in table.rows]
    other = [name for name in asked.varied if name not in _numeric(asked)]
    # the longer axis becomes x: the other is a family of few curves
    x, *rest = sorted(_numeric(asked), key=lambda name: -len(asked.axes[name]))
    second = next(iter([*other, *rest]), None)
    short = asked.formula.name.split(".")[-1]
    label = short if column == "value" else f"{short}: {column}"
    canvas, ((axes,),) = panels(width=5.4, height=3.9)
    # many curves become a map, whose second axis must be a number
    if second is not None and second in _numeric(asked) and len(asked.axes[second]) > FAMILY:
        canvas.colorbar(_map(axes, rows, x, second, column), ax=axes, label=label)
    else:
        _family(axes, rows, x, second, column)
        axes.set_ylabel(label)
    fixed = ", ".join(f"{symbol(n)} = {_short(v[0])}" for n, v in asked.axes.items() if n not in asked.varied)
    axes.set_title(f"{asked.formula.name} ({asked.formula.status})" + (f"\n{fixed}" if fixed else ""), fontsize=9)
    return canvas


def chosen(table: Table, show: str) -> str:
    """The column to draw; a wrong name is answered with those there are."""
    names = list(dict.fromkeys(k for row in table.rows for k, v in spread(row).items() if _drawable(k, v, table)))
    if not names:
        raise ValueError(f"{table.request.formula.name} returns no number that could be drawn")
    return one_of("--show", show, names) if show else names[0]


def symbol(name: str) -> str:
    """The mathematical letter of a parameter, or its name."""
    return f"${name}$" if len(name) == 1 else SYMBOLS.get(name.split(".")[-1], name)


def _drawable(name: str, value: Any, table: Table) -> bool:
    # an entry of an array is called name[i]; True would be drawn as 1
    return name.split("[")[0] not in table.parameters and isinstance(value, int | float) and not isinstance(value, bool)


def _numeric(asked: Request) -> list[str]:
    return [
        n for n in asked.varied if all(isinstance(v, int | float) and not isinstance(v, bool) for v in asked.axes[n])
    ]


def _family(axes: Axes, rows: list[dict[str, Any]], x: str, second: str | None, column: str) -> None:
    groups = list(dict.fromkeys(row[second] for row in rows)) if second else [None]
    for i, group in enumerate(groups):
        mine = [row for row in rows if second is None or row[second] == group]
        xs, ys = (np.array([row.get(name, np.nan) for row in mine], dtype=float) for name in (x, column))
        ys[~np.isfinite(ys)] = np.nan
        label = None if second is None else f"{symbol(second)} = {_short(group)}"
        line(axes, xs, ys, color=COLORS[i % len(COLORS)], linestyle="-" if i < len(COLORS) else "--", label=label)
        # a result that does not say so has nothing to converge
        loose = np.array([not row.get("converged", True) for row in mine])
        if loose.any():
            axes.plot(xs[loose], ys[loose], "x", color=COLORS[i % len(COLORS)], label="not converged")
    axes.set_xlabel(symbol(x))
    _scale(axes, "x", [row[x] for row in rows])
    values = [float(row[column]) for row in rows if np.isfinite(row.get(column, np.nan))]
    if values and min(values) > 0 and max(values) > 100 * min(values):
        axes.set_yscale("log")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _map(axes: Axes, rows: list[dict[str, Any]], x: str, y: str, column: str) -> Any:
    xs, ys = sorted({row[x] for row in rows}), sorted({row[y] for row in rows})
    # what no row has stays without colour
    grid = np.full((len(ys), len(xs)), np.nan)
    for row in rows:
        grid[ys.index(row[y]), xs.index(row[x])] = row.get(column, np.nan)
    grid[~np.isfinite(grid)] = np.nan
    wide = np.nanmin(grid) > 0 and np.nanmax(grid) > 100 * np.nanmin(grid)
    norm = "log" if wide else "linear"
    axes.grid(False)
    # nearest: values belong to points, which become the middles of their fields
    mesh = axes.pcolormesh(xs, ys, grid, cmap="viridis", shading="nearest", rasterized=True, norm=norm)
    axes.set(xlabel=symbol(x), ylabel=symbol(y))
    _scale(axes, "x", xs)
    _scale(axes, "y", ys)
    return mesh


def _scale(axes: Axes, which: str, values: list[float]) -> None:
    """Logarithmic when the values are spaced by equal ratios rather than by equal steps."""
    grid = np.array(sorted(set(values)), dtype=float)
    if len(grid) > 2 and grid[0] > 0 and np.isfinite(grid).all():
        # spread over mean is zero for exactly equal ratios, or for exactly equal steps
        ratios, steps = np.diff(np.log(grid)), np.diff(grid)
        # over less than a factor of five a logarithmic axis has hardly a tick
        if grid[-1] > 5 * grid[0] and np.std(ratios) / np.mean(ratios) < np.std(steps) / np.mean(steps):
            getattr(axes, f"set_{which}scale")("log")


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value).replace("\n", "")
    return text if len(text) <= 24 else text[:22] + "…"
