"""Phase diagrams: where in a plane of two parameters learning succeeds, with most of the work near the transition."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attnlab.common.claim import Threshold, at_most
from attnlab.common.drawing import COLORS, line, panels, plain_log
from attnlab.common.figure import Params, Record
from attnlab.common.records import CONFIDENCE, Estimate, Records, proportion
from attnlab.common.seeds import generator
from attnlab.common.validation import integer
from attnlab.lab.engine import Engine
from attnlab.lab.lattice import Axis, Node, Square, coarse, divided
from attnlab.lab.plans.rounds import Rounds, Say, quietly, rounds
from attnlab.lab.plans.setting import Choice, Item, apply
from attnlab.lab.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Run = Callable[[Params, np.random.SeedSequence], Record]
DRAWS = 1000
# how the transition is drawn
TRANSITION: dict[str, Any] = {"color": "black", "ms": 4, "capsize": 2, "elinewidth": 1, "clip_on": False}


class Point(NamedTuple):
    """A point of the diagram: the share of its runs that succeed, with the exact interval."""

    x: float
    y: float
    share: Estimate


class Crossing(NamedTuple):
    """Where success begins or ends along y at a given x."""

    x: float
    y: Estimate
    rising: bool


@dataclass(frozen=True)
class PhaseDiagram:
    """The result of :func:`phase_diagram`.

    Attributes
    ----------
    x, y : the axes.
    success : when a run counts as one, in words.
    points : every point computed, with its share of successes.
    squares : (x, y, width, height, share) of the parts of the plane.
    boundary : the transition along y for each x, with its interval: the neighbouring points between which it lies,
        widened by what few runs leave open.
    lines : predictions ``y(x)`` by name.
    records : every run.
    """

    x: Axis
    y: Axis
    success: str
    points: tuple[Point, ...]
    squares: tuple[tuple[float, float, float, float, float], ...]
    boundary: tuple[Crossing, ...]
    records: Records
    lines: Mapping[str, Callable[[float], float]] = field(default_factory=dict)

    def draw(self, axes: Axes | None = None) -> Any:
        """Success in blue, failure in grey, the transition as points with intervals, predictions as lines."""
        axes = panels(width=5.0, height=4.0)[1][0, 0] if axes is None else axes
        self._draw_squares(axes)
        for name, prediction in self.lines.items():
            x = np.array([self.x.value(i, 200) for i in range(201)], dtype=float)
            line(axes, x, [prediction(float(v)) for v in x], color=COLORS[1], linewidth=2, label=name)
        if self.boundary:
            x, y, low, high = np.array([(c.x, c.y.value, c.y.low, c.y.high) for c in self.boundary]).T
            bars = [y - low, high - y]
            axes.errorbar(x, y, yerr=bars, fmt="o", label="transition", **TRANSITION)
        axes.set(xlabel=self.x.label or self.x.name, ylabel=self.y.label or self.y.name)
        axes.set(xscale="log" if self.x.log else "linear", yscale="log" if self.y.log else "linear")
        axes.set(xlim=(self.x.low, self.x.high), ylim=(self.y.low, self.y.high), title=f"success: {self.success}")
        if self.x.log:
            plain_log(axes)
        if self.boundary or self.lines:
            axes.legend(loc="best", fontsize=8, framealpha=0.9)
        return axes.figure

    def _draw_squares(self, axes: Axes) -> None:
        from matplotlib.collections import PatchCollection
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.patches import Rectangle

        shades = LinearSegmentedColormap.from_list("success", ["#E5E5E5", "#7FB8D8"])
        patches = [Rectangle((x, y), width, height) for x, y, width, height, _ in self.squares]
        shares = np.array([share for *_, share in self.squares])
        drawn = PatchCollection(patches, cmap=shades, edgecolor="white", linewidth=0.5, zorder=0)
        drawn.set_array(shares)
        drawn.set_clim(0, 1)
        axes.add_collection(drawn)
        axes.grid(False)


def phase_diagram(
    x: Axis,
    y: Axis,
    *,
    task: Item = None,
    learner: Item = None,
    cell: Run | None = None,
    success: tuple[str, Threshold] = ("relative_error", at_most(0.05)),
    set: Mapping[str, Any] | None = None,
    lines: Mapping[str, Callable[[float], float]] | None = None,
    start: tuple[int, int] = (4, 4),
    depth: int = 2,
    seeds: int = 3,
    name: str = "",
    engine: Engine | None = None,
    store: str | os.PathLike[str] | None = None,
    say: Say = quietly,
) -> PhaseDiagram:
    """Map where learning succeeds over two parameters, refining near the transition.

    A coarse grid is computed first; then squares whose points disagree (by majority over seeds) are divided, down to
    ``2**-depth`` of their side. Decisions follow from stored cells alone: a stopped diagram goes on where it was.

    Parameters
    ----------
    x, y : the two parameters, :class:`Axis`.
    task, learner : what is tried at each point, names, types or objects as in :func:`attnlab.lab.plan`.
    cell : instead of both, a module-level function ``(params, seed) -> record`` of your own or around a theory.
    success : a column of the record and the values that count as success, by :func:`attnlab.lab.at_most` and its kin.
    set : fixed parameters, ``task.x``, ``<learner>.x``, ``n_train``, ``n_test``, or those of ``cell``.
    lines : predictions to draw, functions of x.
    start, depth : squares along x and y to begin with, and how often a square may be divided.
    seeds : runs at each point.
    name : under which the cells are stored; by default that of the task, or of the function.
    engine, store, say : as in :func:`attnlab.lab.plan`.
    """
    integer("depth", depth, low=0, high=8), integer("seeds", seeds, low=1)
    columns, rows = (integer("start", n, low=1) for n in start)
    run, fixed, default_name = _experiment(task, learner, cell, set or {}, (x, y))
    grid = _Grid(x, y, columns * 2**depth, rows * 2**depth, fixed, success)
    if isinstance(run, Trial):
        for corner in Square(0, 0, 1).corners():
            run.check(grid.params(Node(corner.i * grid.columns, corner.j * grid.rows)))
    stored_as = f"phase.{name or default_name}"
    with rounds(stored_as, run, seeds=seeds, shared=["learner"], store=store, engine=engine, say=say) as ask:
        squares: list[Square] | None = coarse(columns, rows, depth)
        while squares is not None:
            final = squares
            grid.look(final, ask)
            squares = divided(final, grid.side_of)
    shares = {node: proportion(found) for node, found in grid.found.items()}
    return PhaseDiagram(
        x,
        y,
        f"{success[0]} {success[1]}",
        tuple(Point(*grid.place(node), share) for node, share in sorted(shares.items())),
        tuple(grid.patch(square) for square in final),
        tuple(_boundary(grid, shares)),
        Records(tuple(grid.records.values())),
        lines or {},
    )


def _experiment(
    task: Item, learner: Item, cell: Run | None, settings: Mapping[str, Any], axes: tuple[Axis, Axis]
) -> tuple[Run, dict[str, Any], str]:
    """The function of a cell, the parameters that do not vary, and a name."""
    if (cell is None) == (task is None or learner is None):
        raise ValueError("give a task and a learner, or a cell function, and not both")
    if cell is not None:
        return cell, dict(settings), getattr(cell, "__name__", "own")
    own = {name: value for name, value in settings.items() if name in ("n_train", "n_test", "alpha")}
    rest = {name: value for name, value in settings.items() if name not in own}
    chosen, (contestant,) = apply(rest, Choice.of("task", task), [Choice.of("learner", learner)])
    for axis in axes:
        owner, _, option = axis.name.rpartition(".")
        if owner in ("task", "learner"):
            # checks the name; the value is the axis'
            {"task": chosen, "learner": contestant}[owner].with_options(**{option: axis.low})
        elif axis.name not in ("n_train", "alpha"):
            raise ValueError(f"an axis must be task.x, learner.x, n_train or alpha, got {axis.name!r}")
    trial = Trial({chosen.name: chosen.type}, {contestant.name: contestant.type}, theory=False)
    return trial, {**chosen.params(), **contestant.params(), "n_test": 1000, **own}, chosen.name


class _Grid:
    """The finest grid, and what is known at its points."""

    def __init__(
        self, x: Axis, y: Axis, columns: int, rows: int, fixed: Mapping[str, Any], success: tuple[str, Threshold]
    ) -> None:
        self.x, self.y, self.columns, self.rows = x, y, columns, rows
        self.fixed, self.success = fixed, success
        self.found: dict[Node, list[bool]] = {}
        self.side_of: dict[Node, bool] = {}
        self.records: dict[str, Mapping[str, Any]] = {}

    def place(self, node: Node) -> tuple[float, float]:
        """The values of the two parameters."""
        return self.x.value(node.i, self.columns), self.y.value(node.j, self.rows)

    def params(self, node: Node) -> dict[str, Any]:
        """The parameters of a cell there."""
        x, y = self.place(node)
        return {**self.fixed, self.x.name: x, self.y.name: y}

    def look(self, squares: list[Square], ask: Rounds) -> None:
        """Compute the corners that are not known; a run that failed is no success."""
        column, wanted = self.success
        new = sorted({node for square in squares for node in square.corners()} - self.found.keys())
        result = ask([self.params(node) for node in new], f"{len(new)} points")
        rows: dict[tuple[float, float], list[Mapping[str, Any]]] = {}
        for row in result.records:
            if column not in row:
                raise ValueError(f"success names the column {column!r}, the record has {', '.join(sorted(row))}")
            rows.setdefault((row[self.x.name], row[self.y.name]), []).append(row)
        for node in new:
            here = rows.get(self.place(node), [])
            hits = [wanted.contains(row[column]) for row in here]
            self.found[node] = hits + [False] * (ask.seeds - len(hits))
            self.side_of[node] = float(np.mean(self.found[node])) >= 0.5
            self.records |= {row["cell"]: row for row in here}

    def patch(self, square: Square) -> tuple[float, float, float, float, float]:
        """Its place and size in the values of the parameters, and its mean share of successes."""
        corners = square.corners()
        (left, low), (right, high) = self.place(corners[0]), self.place(corners[-1])
        share = float(np.mean([np.mean(self.found[corner]) for corner in corners]))
        return left, low, right - left, high - low, share


def _boundary(grid: _Grid, shares: Mapping[Node, Estimate]) -> list[Crossing]:
    """In each column the neighbours that disagree; the interval holds 95 % of what the runs leave possible.

    The share of successes at a point, after s of m runs, is drawn from Beta(s + 1/2, m - s + 1/2) (Jeffreys).
    """
    rng = generator(0)
    crossings = []
    for i in sorted({node.i for node in shares}):
        column = sorted(node for node in shares if node.i == i)
        s = np.array([shares[node].value * shares[node].runs for node in column])
        m = np.array([shares[node].runs for node in column])
        possible = rng.beta(s + 0.5, m - s + 0.5, (DRAWS, len(column))) >= 0.5
        sides = [grid.side_of[node] for node in column]
        y = [grid.place(node)[1] for node in column]
        for at in np.flatnonzero(np.diff(np.array(sides, dtype=int))):
            rising = sides[at + 1]
            low, high = _interval(possible, int(at), bool(rising))
            middle = _between(grid, column[at], column[at + 1])
            crossings.append(Crossing(grid.place(column[at])[0], Estimate(middle, y[low], y[high], int(m[at])), rising))
    return crossings


def _interval(possible: np.ndarray, at: int, rising: bool) -> tuple[int, int]:
    """Indices below and above the transition nearest to ``at``, over the draws that have one."""
    change = np.diff(possible.astype(int), axis=1) == (1 if rising else -1)
    places = [np.flatnonzero(row) for row in change]
    nearest = [int(p[np.argmin(np.abs(p - at))]) for p in places if len(p)]
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(nearest or [at], [tail, 100 - tail], method="nearest")
    return min(int(low), at), max(int(high), at) + 1


def _between(grid: _Grid, below: Node, above: Node) -> float:
    """Where the share of successes, straight between two points, is one half."""
    first, last = (float(np.mean(grid.found[node])) for node in (below, above))
    part = (0.5 - first) / (last - first)
    position = below.j + part * (above.j - below.j)
    return float(Axis(grid.y.name, grid.y.low, grid.y.high, grid.y.log).value(position, grid.rows))
