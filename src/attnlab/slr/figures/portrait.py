"""The phase portrait of training on the invariant manifold: the (kappa, nu) plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.claim import Claim, at_least
from attnlab.common.drawing import COLORS, panels
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records, Row
from attnlab.common.seeds import stream
from attnlab.common.statistics import of, proportion_of
from attnlab.slr import theory
from attnlab.slr.figures.cells import task_of
from attnlab.slr.figures.descent import outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """Gradient descent from a jittered ``side`` x ``side`` grid of starts on the manifold."""
    side = params["side"]
    ticks = (np.arange(side) + 0.5) / side * 2 - 1
    kappa, nu = np.meshgrid(ticks, ticks)
    jitter = stream(seed, "learner", "slr", "portrait").uniform(-0.5, 0.5, (2, side * side)) / side
    start = np.zeros((side * side, 5))
    start[:, 0], start[:, 1] = kappa.ravel() + jitter[0], nu.ravel() + jitter[1]
    task, options = task_of(params), {"lam": params["lam"], "step": params["step"]}
    # logged densely at first: the flow is fast away from the critical points
    head = theory.gradient_descent(task, start, **options, n_steps=2000, log_every=40)
    tail = theory.gradient_descent(task, head[-1], **options, n_steps=params["n_steps"], log_every=2000)
    arrived = [outcome(end) == "oracle" for end in tail[-1]]
    path = np.concatenate([head, tail[1:]])[:, :, :2]
    return {"path": path.astype(np.float32), "rows": [{"start": i, "arrived": a} for i, a in enumerate(arrived)]}


def arrived_in_time(row: Row) -> bool | None:
    """Whether kappa and nu are both within 0.1 of the planted pair, at lambda <= 0.1.

    At larger lambda kappa approaches 1 at a rate of about exp(-2 c^2), c^2 = lambda^2 d/2: no run is long enough.
    """
    return bool(row["arrived"]) if row["lam"] <= 0.1 else None


def draw(records: Records) -> Canvas:
    """One panel for each temperature: risk as colour, trajectories, critical points."""
    temperatures = records.values("lam")
    canvas, axes = panels(1, len(temperatures), width=4.4, height=4.0)
    for ax, lam in zip(axes[0], temperatures, strict=True):
        _draw_plane(ax, next(iter(records.where(lam=lam))))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3)
    return canvas


def _draw_plane(axes: Axes, row: Row) -> None:
    grid = np.linspace(-1, 1, 101)
    value = np.asarray(theory.manifold_risk(task_of(row), grid[None, :], grid[:, None], lam=row["lam"]))
    shade = axes.pcolormesh(grid, grid, value, shading="gouraud", cmap="Blues", alpha=0.8, gid="theory")
    axes.figure.colorbar(shade, ax=axes, label="risk $R$", shrink=0.85)
    path = np.asarray(row["path"])
    shown = range(0, path.shape[1], 8)
    for i in shown:
        axes.plot(path[:, i, 0], path[:, i, 1], color=COLORS[6], linewidth=0.6, alpha=0.7, gid="simulation")
    axes.plot(path[0, shown, 0], path[0, shown, 1], ".", color=COLORS[6], markersize=3)
    style: dict[str, Any] = {
        "linestyle": "none",
        "markersize": 8,
        "markeredgecolor": "white",
        "clip_on": False,
        "zorder": 3,
        "gid": "guide",  # the stationary points have their place in the plane whatever the law
    }
    axes.plot([1, -1], [1, -1], marker="o", color=COLORS[2], label="minima $\\pm(k^*, v^*)$", **style)
    axes.plot([0], [0], marker="s", color=COLORS[4], label="saddle", **style)
    axes.plot([1, -1], [-1, 1], marker="^", color=COLORS[1], label="maxima", **style)
    axes.set(xlabel=r"$\kappa = k\cdot k^*$", ylabel=r"$\nu = v\cdot v^*$", title=f"$\\lambda = {row['lam']:g}$")
    axes.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal")
    axes.grid(False)


def _grid(lam: list[float], side: int, step: float, n_steps: int) -> Grid:
    setting = {"d": 400, "L": 10, "gamma": 2**-0.5, "side": side, "step": step, "n_steps": n_steps}
    return Grid({"lam": lam, **setting}, seeds=1)


PORTRAIT = Figure(
    name="slr.portrait",
    title="Phase portrait on the invariant manifold",
    paper="arXiv:2410.01537, section 4 (the landscape on M)",
    shows="All starts but the saddle's stable curve flow to one of two equivalent minima; a large lambda slows kappa.",
    scales={
        "quick": [_grid([0.05, 0.1, 0.2], 21, 3.2e-3, 12_000)],
        "paper": [_grid([0.05, 0.1, 0.2, 0.5], 41, 2e-3, 20_000)],
    },
    run=run,
    draw=draw,
    independent_of=("side", "step", "n_steps"),
    claims=(
        Claim(
            id="slr.portrait",
            says="On M there is a saddle at the origin and no attractor but the planted pair and its negative",
            source="arXiv:2410.01537, theorem 5; derived here",
            statistic=proportion_of(of(arrived_in_time), unit=("lam", "seed", "start")),
            holds=at_least(0.99),
            because="starts fill the whole square; 882 successes of 882 have an exact 95 % interval from 0.996",
        ),
    ),
)
