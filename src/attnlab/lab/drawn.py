"""The table behind a picture: every point, line, band and pixel that is drawn, read from the drawing itself."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Prefix of the names that matplotlib gives to artists without a label.
UNNAMED = ("_child", "_container", "_nolegend")
UNNAMED_COLOR = "#808080"


class Mark(NamedTuple):
    """One point of a drawn series.

    ``kind`` is points, line, band, bars or image; ``low`` and ``high`` are the ends of an error bar or a band, ``z``
    the value of a pixel. ``source`` says what the series is: theory, simulation, published or guide. ``curve`` counts
    the artists of a panel: several runs may share the name of a series.
    """

    panel: str
    series: str
    curve: int
    kind: str
    source: str
    x_name: str
    y_name: str
    x: float
    y: float
    low: float = np.nan
    high: float = np.nan
    z: float = np.nan


def marks(canvas: Canvas) -> list[Mark]:
    """Everything that a canvas shows as data, panel by panel."""
    return [mark for name, axes in _panels(canvas).items() for mark in _panel(name, axes)]


def logarithmic(canvas: Canvas) -> dict[str, str]:
    """The axes of each panel that are logarithmic: ``"x"``, ``"y"``, ``"xy"`` or none."""
    scales = {name: (("x", axes.get_xscale()), ("y", axes.get_yscale())) for name, axes in _panels(canvas).items()}
    return {name: "".join(axis for axis, scale in pair if scale == "log") for name, pair in scales.items()}


def write(rows: Iterable[Mark], path: str | os.PathLike[str]) -> None:
    """Write the table as CSV; numbers in their shortest exact form, an absent one empty."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Mark._fields)
        for row in rows:
            writer.writerow(["" if isinstance(v, float) and np.isnan(v) else v for v in row])


def read(path: str | os.PathLike[str]) -> list[Mark]:
    """The table that :func:`write` wrote."""
    with open(path, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    if tuple(head) != Mark._fields:
        raise ValueError(f"{os.fspath(path)} is not the table of a figure: its columns are {', '.join(head)}")
    return [_parsed(row) for row in rows]


def _parsed(row: list[str]) -> Mark:
    panel, series, curve, kind, source, x_name, y_name, *numbers = row
    values = (float(v) if v else np.nan for v in numbers)
    return Mark(panel, series, int(curve), kind, source, x_name, y_name, *values)


def redraw(rows: Iterable[Mark]) -> Canvas:
    """A plain picture of a table: the same points, lines, bands and images, panel by panel.

    >>> from attnlab.common.drawing import line, panels
    >>> canvas, axes = panels()
    >>> line(axes[0, 0], [1, 2], [3, 4], label="theory")
    >>> [(m.x, m.y) for m in marks(redraw(marks(canvas)))]
    [(1.0, 3.0), (2.0, 4.0)]
    """
    from attnlab.common.drawing import panels

    found: dict[str, dict[int, list[Mark]]] = {}
    for row in rows:
        found.setdefault(row.panel, {}).setdefault(row.curve, []).append(row)
    canvas, axes = panels(1, max(1, len(found)))
    for a, (panel, curves) in zip(axes[0], found.items(), strict=False):
        a.set_title(panel, loc="left")
        for curve in curves.values():
            _redraw_series(a, curve)
    return canvas


def _redraw_series(axes: Axes, rows: list[Mark]) -> None:
    first = rows[0]
    x, y, low, high, z = (np.array([getattr(row, name) for row in rows]) for name in ("x", "y", "low", "high", "z"))
    axes.set(xlabel=first.x_name, ylabel=first.y_name)
    options: dict[str, Any] = {"label": first.series or None, "gid": first.source}
    if not first.series and first.kind != "image":
        options["color"] = UNNAMED_COLOR  # no series of the cycle's colours gives it its name
    if first.kind == "image":
        shape = (len(np.unique(y)), len(np.unique(x)))
        grids = (v.reshape(shape) for v in (x, y, z))
        axes.pcolormesh(*grids, shading="gouraud", **options)
    elif first.kind == "band":
        axes.fill_between(x, low, high, alpha=0.3, **options)
    elif first.kind == "bars":
        axes.bar(x, y, **options)
    elif first.kind == "line" or np.isnan(low).all():
        axes.plot(x, y, "-" if first.kind == "line" else "o", **options)
    else:
        axes.errorbar(x, y, yerr=(y - low, high - y), fmt="o", **options)


def _panels(canvas: Canvas) -> dict[str, Axes]:
    """The panels of a canvas by title; a number tells apart those whose titles are equal or empty."""
    axes = [a for a in canvas.axes if a.get_label() != "<colorbar>"]
    titles = [next(filter(None, (a.get_title(loc) for loc in ("left", "center", "right"))), "") for a in axes]
    names = [t if t and titles.count(t) == 1 else f"{i + 1}: {t}".rstrip(": ") for i, t in enumerate(titles)]
    return dict(zip(names, axes, strict=True))


class Series(NamedTuple):
    """A drawn artist, what kind of series it is and its numbers, a row for each point."""

    artist: Any
    kind: str
    values: np.ndarray


def _panel(name: str, axes: Axes) -> Iterator[Mark]:
    drawn = [series for series in _drawn(axes) if len(series.values)]
    named = {_color(s.artist): label for s in reversed(drawn) if (label := _label(s.artist))}
    for number, (artist, kind, values) in enumerate(drawn):
        # Theory and simulation of one setting share a colour, and often only one of them has a label.
        series = _label(artist) or named.get(_color(artist), "")
        head = (name, series, number, kind, _source(artist, kind, axes), axes.get_xlabel(), axes.get_ylabel())
        for row in values.tolist():
            yield Mark(*head, *row)


def _source(artist: Any, kind: str, axes: Axes) -> str:
    """What an artist shows: its group id, or what its form means in all figures.

    Theory is a line, simulation is points, bars and pixels, and a line across the whole panel guides the eye.
    """
    first = _first(artist)
    if gid := first.get_gid():
        return str(gid)
    if kind != "line":
        return "simulation"
    across = not all(first.get_transform().contains_branch_seperately(axes.transData))
    marked = getattr(first, "get_marker", lambda: "None")() not in ("None", "", " ")
    return "guide" if across else "simulation" if marked else "theory"


def _drawn(axes: Axes) -> Iterator[Series]:
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
    from matplotlib.container import ErrorbarContainer
    from matplotlib.patches import StepPatch

    inside: set[int] = set()
    for container in axes.containers:
        # lines and collections of a container are also listed as the panel's own
        inside |= {id(artist) for artist in _artists(container)}
        if isinstance(container, ErrorbarContainer):
            yield Series(container, "points", _with_bars(container))
        else:
            yield Series(container, "bars", _bars(container))
    for artist in axes.lines:
        if id(artist) not in inside:
            kind = "line" if artist.get_linestyle() not in ("None", "", " ") else "points"
            yield Series(artist, kind, _line(artist, axes))
    for group in axes.collections:
        if id(group) in inside:
            continue
        if isinstance(group, QuadMesh):
            yield Series(group, "image", _mesh(group))
        elif isinstance(group, PolyCollection):
            yield Series(group, "band", _band(group))
        elif isinstance(group, LineCollection):
            yield Series(group, "line", _segments(group))
        elif isinstance(group, PathCollection):
            yield Series(group, "points", np.asarray(group.get_offsets(), dtype=np.float64))
        else:
            raise TypeError(f"a {type(group).__name__} has no table: draw it with lines, points, bars, bands or a mesh")
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            yield Series(patch, "line", _stairs(patch))
    for picture in axes.images:
        yield Series(picture, "image", _image(picture))


def _label(artist: Any) -> str:
    label = str(artist.get_label() or "")
    return "" if label.startswith(UNNAMED) else label.removeprefix("_")


def _first(artist: Any) -> Any:
    """The artist itself, or the first one of a container, which has the container's options."""
    return artist if hasattr(artist, "get_gid") else next(_artists(artist))


def _color(artist: Any) -> str:
    from matplotlib.colors import to_hex

    first = _first(artist)
    color = first.get_facecolor() if hasattr(first, "get_facecolor") else getattr(first, "get_color", lambda: "none")()
    color = color[0] if np.ndim(color) == 2 and len(color) else color
    return str(to_hex(color)) if np.size(color) else ""


def _artists(container: Any) -> Iterator[Any]:
    """The artists of a container, however deep."""
    for item in container:
        if isinstance(item, tuple | list):
            yield from _artists(item)
        elif item is not None:
            yield item


def _line(artist: Any, axes: Axes) -> np.ndarray:
    """Points of a line; one that crosses the whole panel ends at its limits."""
    x, y = (np.asarray(v, dtype=float) for v in artist.get_data())
    in_data = artist.get_transform().contains_branch_seperately(axes.transData)
    x, y = (
        v if own else np.array(lim)
        for v, own, lim in zip((x, y), in_data, (axes.get_xlim(), axes.get_ylim()), strict=True)
    )
    return np.column_stack([x, y])


def _with_bars(container: Any) -> np.ndarray:
    line, _, bars = container.lines
    if line is None:
        return np.empty((0, 4))
    x, y = (np.asarray(v, dtype=float) for v in line.get_data())
    low, high = np.full_like(y, np.nan), np.full_like(y, np.nan)
    if container.has_yerr:
        # a sample for the legend has no points, and a mean of one run no error: its bar is an empty segment
        bar = [segment[:, 1] if len(segment) else [np.nan, np.nan] for segment in bars[-1].get_segments()]
        ends = np.array(bar).reshape(-1, 2)
        if len(ends) == len(y):
            low, high = ends.min(axis=1), ends.max(axis=1)
    return np.column_stack([x, y, low, high])


def _bars(container: Any) -> np.ndarray:
    return np.array(
        [
            [p.get_x() + p.get_width() / 2, p.get_height(), p.get_y(), p.get_y() + p.get_height()]
            for p in container.patches
        ]
    )


def _band(artist: Any) -> np.ndarray:
    """Middle, lower and upper edge at every x of a shaded band."""
    vertices = np.concatenate([path.vertices for path in artist.get_paths()] or [np.empty((0, 2))])
    xs = np.unique(vertices[:, 0])
    edges = np.array([[vertices[vertices[:, 0] == x, 1].min(), vertices[vertices[:, 0] == x, 1].max()] for x in xs])
    edges = edges.reshape(-1, 2)
    return np.column_stack([xs, edges.mean(axis=1), edges])


def _stairs(artist: Any) -> np.ndarray:
    """Corners of a histogram's outline, from left to right."""
    heights, edges, _ = artist.get_data()
    return np.column_stack([np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)])


def _segments(artist: Any) -> np.ndarray:
    return np.concatenate([np.asarray(s, dtype=float) for s in artist.get_segments()] or [np.empty((0, 2))])


def _mesh(artist: Any) -> np.ndarray:
    """Centres (or nodes, where the mesh is shaded between them) and values of a mesh."""
    corners, values = np.asarray(artist.get_coordinates()), np.asarray(artist.get_array(), dtype=float)
    if values.shape != corners.shape[:2]:
        corners = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    return _pixels(corners[..., 0], corners[..., 1], values.reshape(corners.shape[:2]))


def _image(artist: Any) -> np.ndarray:
    values = np.asarray(artist.get_array(), dtype=float)
    if values.ndim != 2:  # colours, not values
        return np.empty((0, 5))
    places = np.indices(values.shape)
    return _pixels(places[1], places[0], values)


def _pixels(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    empty = np.full(z.size, np.nan)
    return np.column_stack([x.ravel(), y.ravel(), empty, empty, z.ravel()])
