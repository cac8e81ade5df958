"""Phase diagrams: where in a plane of two parameters learning succeeds, with most of the work near the transition."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attnlab.common.claim import Threshold, at_most
from attnlab.common.drawing import COLORS, line, panels, plain_log
from attnlab.common.figure import Grid, Params, Record
from attnlab.common.records import CONFIDENCE, Estimate, Records, proportion
from attnlab.common.seeds import generator
from attnlab.common.validation import integer
from attnlab.lab.describe import name_of
from attnlab.lab.engine import Engine
from attnlab.lab.measure import Measure, Notify, measuring, silent
from attnlab.lab.phases.squares import Axis, Node, Square, coarse, divided
from attnlab.lab.request import SIZES, Item, check, kind_of, owned, run_spec
from attnlab.lab.spec import Trials

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
        drawn.set_clim(0, 1)  # the colours of a share must not depend on which shares occur
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
    notify: Notify = silent,
) -> PhaseDiagram:
    """Map where learning succeeds over two parameters, refining near the transition.

    A coarse grid is computed first; then squares whose points disagree (by majority over seeds) are divided, down to
    ``2**-depth`` of their side. Decisions follow from stored cells alone: a stopped diagram goes on where it was.

    Parameters
    ----------
    x, y : the two parameters, :class:`Axis`.
    task, learner : what is tried at each point, names, types or objects as in :func:`attnlab.lab.plan`.
    cell : instead of both, a module-level function ``(params, seed) -> record`` of your own or around a theory.
    success : a column of the record and the values that count as success, as :func:`attnlab.lab.at_most` gives them.
    set : fixed parameters, ``task.x``, ``<learner>.x``, ``n_train``, ``n_test``, or those of ``cell``.
    lines : predictions to draw, functions of x.
    start, depth : squares along x and y to begin with, and how often a square may be divided.
    seeds : runs at each point.
    name : under which the cells are stored; by default that of the task, or of the function.
    engine, store, notify : as in :func:`attnlab.lab.plan`.
    """
    integer("depth", depth, low=0, high=8), integer("seeds", seeds, low=1)
    columns, rows = (integer("start", n, low=1) for n in start)
    fixed, default_name = _experiment(task, learner, cell, set or {}, (x, y))
    # counted in steps of the finest grid, so that corners of any size are whole numbers
    plane = _Plane(x, y, columns * 2**depth, rows * 2**depth, fixed, success, cell, seeds)
    if cell is None:
        # the corners of the plane alone: each check fits the learner to a few examples
        for corner in Square(0, 0, 1).corners():
            check(plane.params(Node(corner.i * plane.columns, corner.j * plane.rows)))
    with measuring(f"phase.{name or default_name}", store=store, engine=engine, notify=notify) as measure:
        final = plane.refine(coarse(columns, rows, depth), measure)
    return plane.diagram(final, lines or {})


def _experiment(
    task: Item, learner: Item, cell: Run | None, chosen: Mapping[str, Any], axes: tuple[Axis, Axis]
) -> tuple[dict[str, Any], str]:
    """The parameters that do not vary, and a name."""
    if (cell is None) == (task is None or learner is None):
        raise ValueError("give a task and a learner, or a cell function, and not both")
    if cell is not None:
        return dict(chosen), getattr(cell, "__name__", "own")
    sizes = {name: value for name, value in chosen.items() if name in SIZES}
    of_task, of_learner = owned({k: v for k, v in chosen.items() if k not in sizes}, {"learner": learner})
    for axis in axes:
        if axis.name.split(".")[0] not in ("task", "learner", *SIZES[:2]):
            raise ValueError(f"an axis must be task.x, learner.x, n_train or alpha, got {axis.name!r}")
    fixed = {"task": task, **of_task, "learner": learner, **of_learner["learner"], "compare": "nothing"}
    return {**fixed, "n_test": 1000, **sizes}, name_of(kind_of("task", task))


@dataclass
class _Plane:
    """The finest grid of the plane, and what is known at its points."""

    x: Axis
    y: Axis
    columns: int
    rows: int
    fixed: Mapping[str, Any]
    success: tuple[str, Threshold]
    cell: Run | None
    seeds: int
    found: dict[Node, list[bool]] = field(default_factory=dict)
    side_of: dict[Node, bool] = field(default_factory=dict)
    records: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def place(self, node: Node) -> tuple[float, float]:
        """The values of the two parameters."""
        return self.x.value(node.i, self.columns), self.y.value(node.j, self.rows)

    def params(self, node: Node) -> dict[str, Any]:
        """The parameters of a cell there."""
        x, y = self.place(node)
        return {**self.fixed, self.x.name: x, self.y.name: y}

    def compute(self, squares: list[Square], measure: Measure) -> None:
        """Compute the corners that are not known; a run that failed is no success."""
        column, wanted = self.success
        # neighbouring squares share corners; sorted, so that the order of cells does not depend on a set
        new = sorted({node for square in squares for node in square.corners()} - self.found.keys())
        # Trials name cells by all parameters of task and learner, which a function of the user's does not have
        kind = Trials if self.cell is None else Grid
        grids = [kind(self.params(node), self.seeds) for node in new]
        result = measure(grids, f"{len(new)} points", self.cell or run_spec)
        rows: dict[tuple[float, float], list[Mapping[str, Any]]] = {}
        for row in result.records:
            if column not in row:
                raise ValueError(f"success names the column {column!r}, the record has {', '.join(sorted(row))}")
            rows.setdefault((row[self.x.name], row[self.y.name]), []).append(row)
        for node in new:
            here = rows.get(self.place(node), [])
            hits = [wanted.contains(row[column]) for row in here]
            # failed cells have no row: the missing ones count against success
            self.found[node] = hits + [False] * (self.seeds - len(hits))
            self.side_of[node] = float(np.mean(self.found[node])) >= 0.5
            self.records |= {row["cell"]: row for row in here}

    def refine(self, squares: list[Square], measure: Measure) -> list[Square]:
        """Compute the corners and divide the squares that need it, until none does."""
        self.compute(squares, measure)
        finer = divided(squares, self.side_of)
        return squares if finer is None else self.refine(finer, measure)

    def diagram(self, squares: list[Square], lines: Mapping[str, Callable[[float], float]]) -> PhaseDiagram:
        """What is known, in the values of the parameters."""
        shares = {node: proportion(found) for node, found in self.found.items()}
        return PhaseDiagram(
            self.x,
            self.y,
            f"{self.success[0]} {self.success[1]}",
            tuple(Point(*self.place(node), share) for node, share in sorted(shares.items())),
            tuple(self.patch(square) for square in squares),
            tuple(_boundary(self, shares)),
            Records(tuple(self.records.values())),
            lines,
        )

    def patch(self, square: Square) -> tuple[float, float, float, float, float]:
        """Its place and size in the values of the parameters, and its mean share of successes."""
        corners = square.corners()
        (left, low), (right, high) = self.place(corners[0]), self.place(corners[-1])
        share = float(np.mean([np.mean(self.found[corner]) for corner in corners]))
        return left, low, right - left, high - low, share


def _boundary(plane: _Plane, shares: Mapping[Node, Estimate]) -> list[Crossing]:
    """In each column the neighbours that disagree; the interval holds 95 % of what the runs leave possible.

    The share of successes at a point, after s of m runs, is drawn from Beta(s + 1/2, m - s + 1/2) (Jeffreys).
    """
    rng = generator(0)  # fixed: the same cells give the same intervals
    crossings = []
    for i in sorted({node.i for node in shares}):
        column = sorted(node for node in shares if node.i == i)
        s = np.array([shares[node].value * shares[node].runs for node in column])
        m = np.array([shares[node].runs for node in column])
        # shares that the runs leave possible, by the same majority as side_of
        possible = rng.beta(s + 0.5, m - s + 0.5, (DRAWS, len(column))) >= 0.5
        sides = [plane.side_of[node] for node in column]
        y = [plane.place(node)[1] for node in column]
        for at in np.flatnonzero(np.diff(np.array(sides, dtype=int))):
            rising = sides[at + 1]
            low, high = _interval(possible, int(at), bool(rising))
            middle = _between(plane, column[at], column[at + 1])
            crossings.append(
                Crossing(plane.place(column[at])[0], Estimate(middle, y[low], y[high], int(m[at])), rising)
            )
    return crossings


def _interval(possible: np.ndarray, at: int, rising: bool) -> tuple[int, int]:
    """Indices below and above the transition nearest to ``at``, over the draws that have one."""
    # only crossings in the same direction: along y success may begin and end
    change = np.diff(possible.astype(int), axis=1) == (1 if rising else -1)
    places = [np.flatnonzero(row) for row in change]
    # a draw may cross several times: the crossing meant is the one nearest to what was observed
    nearest = [int(p[np.argmin(np.abs(p - at))]) for p in places if len(p)]
    tail = 50 * (1 - CONFIDENCE)
    # indices of points, between which there is nothing to interpolate
    low, high = np.percentile(nearest or [at], [tail, 100 - tail], method="nearest")
    return min(int(low), at), max(int(high), at) + 1  # holds what was observed in any case


def _between(plane: _Plane, below: Node, above: Node) -> float:
    """Where the share of successes, straight between two points, is one half."""
    first, last = (float(np.mean(plane.found[node])) for node in (below, above))
    # the two lie on different sides of one half, so that they differ
    part = (0.5 - first) / (last - first)
    position = below.j + part * (above.j - below.j)
    # the crossing may lie between two whole values
    return float(replace(plane.y, whole=False).value(position, plane.rows))
