"""One run of message passing, as the cells of several figures need it, and the laws that their lines are drawn for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.aim import theory
from attnlab.aim.learners.amp import AMP
from attnlab.aim.task import Task
from attnlab.common.drawing import line
from attnlab.common.figure import Params, Record
from attnlab.common.records import Records, Row
from attnlab.common.seeds import Seed, branch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER = "arXiv:2506.01582"
PAIR = {"tokens": 2, "rho": 0.5}  # the law of most figures
SAMPLES, ERROR = r"samples $\alpha = n/d^2$", r"estimation error $\|S - \hat S\|^2/d$"  # labels of axes
RECOVERED = 0.02  # error below which S counts as recovered
LAW = ("d", "tokens", "rho", "channel", "beta", "noise", "tied", "attention", "mask")


def task_of(params: Mapping[str, Any], seed: Seed = 0, **changed: Any) -> Task:
    """The task of a cell: those of its parameters that are a task's."""
    given = {name: params[name] for name in LAW if name in params} | changed
    if given.get("channel", "softmax") != "softmax":
        given.pop("beta", None)
    if isinstance(given.get("tokens"), list):
        given["tokens"] = tuple(given["tokens"])
    return Task(**given, seed=seed)


def law_of(records: Records, **changed: Any) -> Task:
    """The task of the first record, for the theory line of a panel; its planted matrix is never drawn."""
    return task_of(next(iter(records)), **changed)


def learner_of(task: Task, **options: Any) -> AMP:
    """AMP with the parameters of the law."""
    needed = {name: getattr(task, name) for name in AMP.needs}
    return AMP(**needed, **{"tol": 1e-6, "max_iter": 120, **options})


def solve(params: Params, seed: np.random.SeedSequence, **options: Any) -> tuple[Task, AMP]:
    """A planted instance and AMP on it; a run that does not settle says so in its record instead of warning."""
    task = task_of(params, branch(seed, "plant"))
    log = task.law.name == "softmax"  # exact where outputs underflow
    X, y = task.sample(task.n_samples(params["alpha"]), branch(seed, "data"), log=log)
    return task, learner_of(task, **options).fit(X, y, truth=task.S)


def run_amp(params: Params, seed: np.random.SeedSequence) -> Record:
    """Errors and overlaps of the last iterate, beside the state evolution's error."""
    task, model = solve(params, seed)
    return summary(model) | {"se": float(theory.mmse(task, params["alpha"]))}


def relative(row: Row) -> float | None:
    """AMP's error over the Bayes error, mean over the settings with a Bayes error above 0.05."""
    return float(row["mse"] / row["se"]) if row["se"] > 0.05 else None


def phase_plane(ax: Axes, records: Records, law: Callable[[float], Task], right: float, counts: Sequence[int]) -> Any:
    """Bayes error in the plane (alpha, rho) as colour, the recovery line, and where AMP recovers; returns the image."""
    widths, alphas = np.logspace(-1, np.log10(3), counts[0]), np.linspace(0, right, counts[1])
    error = np.array([error_along(alphas, law(float(rho))) for rho in widths])
    image = ax.pcolormesh(alphas, widths, error, cmap="viridis", vmin=0, vmax=1, shading="gouraud", gid="theory")
    fine = np.logspace(-1, np.log10(3), 100)
    ends = [float(theory.recovery_threshold(law(float(rho)))) for rho in fine]
    line(ax, ends, fine, color="white", linewidth=1.5, label="recovery threshold")
    for recovered, face, label in ((True, "white", "AMP recovers"), (False, "none", "AMP does not")):
        found = [(row["alpha"], row["rho"]) for row in records if (row["mse"] < RECOVERED) == recovered]
        x, y = zip(*found, strict=True) if found else ((), ())
        style: Any = {"markersize": 5, "markerfacecolor": face, "markeredgecolor": "white", "linestyle": ""}
        ax.plot(x, y, "o", **style, label=label, gid="simulation")
    ax.set(xlabel=SAMPLES, yscale="log", xlim=(0, right), ylim=(0.1, 3))
    ax.grid(False)
    ax.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    ax.yaxis.set_minor_formatter("")
    return image


def error_along(alphas: np.ndarray, law: Task) -> np.ndarray:
    """The Bayes error, interpolated between points of the parametric curve: a picture needs no more."""
    alpha, error = theory.parametric_curve(law, np.logspace(-4, 3, 40))
    end = float(theory.recovery_threshold(law))
    return np.asarray(np.interp(alphas, np.r_[0.0, alpha[::-1], end], np.r_[1.0, error[::-1], 0.0], right=0.0))


def summary(model: AMP) -> dict[str, Any]:
    """The last entries of the trace."""
    last = {name: model.trace_[name][-1] for name in ("mse", "overlap", "self_overlap")}
    return last | {"expected": model.predicted_mse_, "converged": model.converged_, "iterations": model.n_iter_}
