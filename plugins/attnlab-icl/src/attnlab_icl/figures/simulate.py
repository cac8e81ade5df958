"""One pretrained layer: the cell of most figures, and the law that its parameters mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.figure import Params, Record
from attnlab.common.prediction import Prediction
from attnlab.common.records import Records
from attnlab.common.seeds import Seed
from attnlab_icl import theory
from attnlab_icl.learners.linear_attention import LinearAttention
from attnlab_icl.moments import exact_error
from attnlab_icl.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER = "arXiv:2405.11751"


def law(params: Params, seed: Seed = 0) -> Task:
    """The task with these ratios; kappa=None is a new task for every context. k is kappa d rounded down, at least 1."""
    d = params["d"]
    k = None if params["kappa"] is None else max(1, int(params["kappa"] * d + 1e-9))
    return Task(d, max(1, round(params["alpha"] * d)), k, float(np.sqrt(params["rho"])), seed)


def contexts(params: Params) -> int:
    """n = tau d^2."""
    return int(max(1, round(params["tau"] * params["d"] ** 2)))


def run(params: Params, seed: np.random.SeedSequence, *, gcv: bool = False) -> Record:
    """Pretrain a layer; its exact errors beside the finite-size theory of its own tasks."""
    task, n = law(params, seed), contexts(params)
    layer = LinearAttention(params["ridge"], gcv=gcv).fit_features(*task.features(n, seed))
    icl, idg = exact_error(layer, task, "new"), exact_error(layer, task, "pretraining")
    finite = theory.finite_size_errors(task, n, params["ridge"])
    return {
        "icl": icl,
        "idg": idg,
        "g_task": icl - idg,
        "finite_icl": finite.detail["icl"],
        "finite_idg": finite.detail["idg"],
        "finite_g_task": finite.detail["g_task"],
        "ratio": icl / finite.detail["icl"],
        "scaled_ratio": task.d * icl / finite.detail["icl"],
        "gcv": layer.gcv_,
        "converged": layer.converged_ and bool(finite.converged),
    }


def limit(params: Params, **ratios: Any) -> Prediction:
    """The errors as d grows, at the ratios of a cell, some of them replaced by arrays to draw a line."""
    point = {name: params[name] for name in ("alpha", "kappa", "tau", "rho", "ridge")} | ratios
    return theory.errors(**{**point, "kappa": np.inf if point["kappa"] is None else point["kappa"]})


def finite_line(ax: Axes, records: Records, over: str, name: str, color: str) -> None:
    """The finite-size theory of the planted tasks, averaged over replicates, as a dotted line."""
    curve = records.curve(over, f"finite_{name}")
    # an underscore keeps a label out of the legend; the table behind the picture has it
    label = f"_theory at $d = {records.values('d')[0]}$"
    ax.plot(curve.x, curve.mean, color=color, linestyle=":", linewidth=1.2, label=label)
