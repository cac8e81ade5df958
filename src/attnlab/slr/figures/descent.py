"""The experiments of arXiv:2410.01537, section 5: projected gradient descent from thirty initialisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.compute import Compute
from attnlab.common.drawing import COLORS, band, line, panels
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import Statistic, deterministic, known, median, of, proportion_of, ratio_of_means
from attnlab.slr import theory
from attnlab.slr.figures.cells import task_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from attnlab.slr.task import Task

PAPER = "arXiv:2410.01537, section 5"
RUN = ("seed", "run")  # the exact map has no planted instance: each random start is a replicate
SETTING = {"d": 400, "L": 10, "gamma": 2**-0.5, "runs": 10, "device": "auto"}


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """``runs`` initialisations through the exact map of the overlaps, with the risk at the current temperature."""
    start = theory.initial_overlaps(params["d"], params["runs"], start=params["start"], seed=seed)
    return followed(params, theory.gradient_descent(task_of(params), start, **options(params), check_step=False))


def options(params: Params) -> dict[str, Any]:
    """The options that all iterations of the overlaps share; the device changes no number beyond rounding."""
    named = {name: params[name] for name in ("lam", "decay", "step", "n_steps", "log_every")}
    return {**named, "compute": Compute(device=params["device"])}


def followed(params: Params, path: np.ndarray) -> Record:
    """A trajectory of the overlaps with its excess risk at the current temperature, and where each run ends."""
    task, step = task_of(params), np.minimum(np.arange(len(path)) * params["log_every"], params["n_steps"])
    lam = params["lam"] / (1 + params["decay"] * step)
    excess = np.asarray(theory.risk(task, *np.moveaxis(path, 2, 0), lam=lam[:, None])) - task.noise_std**2
    return {"step_number": step, "path": path, "excess": excess, "rows": final_rows(path[-1], excess[-1])}


def final_rows(overlaps: np.ndarray, excess: np.ndarray) -> list[dict[str, Any]]:
    """One row for each run: where it ended."""
    distance = np.sqrt(np.sum(overlaps[:, 2:] ** 2, axis=1))
    return [
        {"run": i, "kappa": float(x[0]), "nu": float(x[1]), "distance": float(far), "risk": float(r), "end": outcome(x)}
        for i, (x, far, r) in enumerate(zip(overlaps, distance, excess, strict=True))
    ]


def outcome(overlaps: np.ndarray, close: float = 0.9) -> str:
    """``oracle``: kappa and nu of one sign and beyond ``close``, 0.9; ``swapped``: k at ±v*; otherwise ``other``."""
    kappa, nu, _, eta, _ = overlaps
    if abs(kappa) > close and abs(nu) > 0.9 and kappa * nu > 0:
        return "oracle"
    return "swapped" if abs(eta) > 0.9 and abs(kappa) < 0.1 else "other"


def share(end: str) -> Statistic:
    """Share of the runs that end in a given way."""
    return proportion_of(of("end"), equals=end, unit=RUN)


def linear_risk(records: Records) -> float:
    """Risk of the best linear predictor."""
    return float(theory.linear_risk(_law(next(iter(records)))))


def _law(row: Any) -> Task:
    """The task of a row without noise. A row's ``nu`` is the overlap at the end, not the strength of the mark."""
    return task_of(row, nu=None, noise_std=0.0)


def farthest(records: Records) -> float:
    """Largest distance from M at the end of a run."""
    return float(np.max(records.column("distance")))


def draw(records: Records) -> Canvas:
    """Four panels: excess risk, |kappa| and |nu|, the (kappa, nu) plane, distance to the manifold M."""
    canvas, axes = panels(1, 4, width=3.4, height=3.1)
    chunks = list(records.where(run=0))
    step = np.asarray(chunks[0]["step_number"])
    thousands = step / 1000
    path = np.concatenate([row["path"] for row in chunks], axis=1)
    excess = np.concatenate([row["excess"] for row in chunks], axis=1)
    bimodal = len({row["end"] for row in records}) > 1
    _draw_risk(axes[0, 0], thousands, excess, _oracle(chunks[0], step))
    _draw_overlaps(axes[0, 1], thousands, path, bimodal)
    _draw_plane(axes[0, 2], path)
    _draw_distance(axes[0, 3], thousands, path, bimodal)
    return canvas


def _oracle(row: Any, step: np.ndarray) -> np.ndarray:
    """Risk of the planted pair at the temperature of each step."""
    lam = row["lam"] / (1 + row["decay"] * step)
    return np.asarray(theory.oracle_risk(_law(row), lam=lam))


def _draw_risk(axes: Axes, step: np.ndarray, excess: np.ndarray, oracle: np.ndarray) -> None:
    band(axes, step, excess.T, color=COLORS[0], label="mean, 95 % of runs")
    line(axes, step, oracle, color=COLORS[6], linestyle="--", linewidth=1, label="$(k^*, v^*)$")
    axes.set(xlabel="step / 1000", ylabel=r"excess risk $R - \epsilon^2$")
    axes.set_ylim(bottom=0)
    axes.legend()


def _draw_overlaps(axes: Axes, step: np.ndarray, path: np.ndarray, bimodal: bool) -> None:
    for i, name in enumerate((r"$|\kappa|$", r"$|\nu|$")):
        value = np.abs(path[:, :, i])
        if bimodal:
            axes.plot(step, value, color=COLORS[i], linewidth=0.5, alpha=0.6, gid="simulation")
            axes.plot([], [], color=COLORS[i], label=name)
        else:
            band(axes, step, value.T, color=COLORS[i], label=name)
    axes.set(xlabel="step / 1000", ylabel="overlap", ylim=(-0.03, 1.05))
    axes.legend(loc="center right")


def _draw_plane(axes: Axes, path: np.ndarray) -> None:
    for run in range(path.shape[1]):
        axes.plot(path[:, run, 0], path[:, run, 1], color=COLORS[0], linewidth=0.7, alpha=0.5, gid="simulation")
    axes.plot(path[0, :, 0], path[0, :, 1], ".", color=COLORS[6], markersize=3)
    axes.plot(path[-1, :, 0], path[-1, :, 1], "o", color=COLORS[1], markersize=4)
    axes.set(xlabel=r"$\kappa = k\cdot k^*$", ylabel=r"$\nu = v\cdot v^*$", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
    axes.set_aspect("equal")


def _draw_distance(axes: Axes, step: np.ndarray, path: np.ndarray, bimodal: bool) -> None:
    distance = np.sqrt(np.sum(path[:, :, 2:] ** 2, axis=2))
    axes.set(xlabel="step / 1000", ylabel="distance to $M$", yscale="log", ylim=(1e-8, 2))
    if not distance.any():
        axes.set_xlim(0, step[-1])
        axes.text(0.5, 0.5, "exactly 0 in every run", transform=axes.transAxes, ha="center")
    elif bimodal:
        axes.plot(step, distance, color=COLORS[2], linewidth=0.5, alpha=0.6, gid="simulation")
    else:
        band(axes, step, distance.T, color=COLORS[2])


def experiment(
    name: str,
    title: str,
    shows: str,
    setting: dict[str, Any],
    claims: tuple[Claim, ...],
    *,
    run: Callable[[Params, np.random.SeedSequence], Record] = run,
    independent_of: tuple[str, ...] = (),
) -> Figure:
    """Thirty runs at the published settings, in three cells; in the overlaps the full scale takes seconds."""
    both = ("quick", "paper")
    return Figure(
        name=name,
        title=title,
        paper=PAPER,
        shows=shows,
        scales={scale: [Grid(setting, seeds=3)] for scale in both},
        run=run,
        draw=draw,
        shared=("device",),
        independent_of=("runs", "step", *independent_of),
        claims=claims,
    )


MANIFOLD = experiment(
    "slr.manifold",
    "Gradient descent from the invariant manifold",
    "Started on the manifold M, all runs find the planted pair (k*, v*) up to a common sign.",
    {**SETTING, "start": "manifold", "lam": 0.1, "decay": 0.0, "step": 4e-3, "n_steps": 20_000, "log_every": 200},
    (
        Claim(
            id="slr.manifold",
            says="From almost every start on the manifold, gradient descent converges to (k*, v*) or (-k*, -v*)",
            source="arXiv:2410.01537, theorem 5",
            statistic=share("oracle"),
            holds=at_least(0.85),
            because="the lower end of the exact 95 % interval for 30 successes of 30 is 0.884",
        ),
        Claim(
            id="slr.signs",
            says="From a random start on the manifold, (k*, v*) and (-k*, -v*) are found equally often",
            source="arXiv:2410.01537, theorem 5",
            statistic=proportion_of(of("kappa"), above=0.0, unit=RUN),
            holds=between(0.15, 0.85),
            because="of 30 tosses of a fair coin 98 % have their exact 95 % interval inside",
        ),
        Claim(
            id="slr.invariant",
            says="Gradient descent started on the manifold M stays on M",
            source="arXiv:2410.01537, section 4",
            statistic=deterministic(farthest, why="the map keeps M exactly from every start, up to rounding"),
            holds=at_most(1e-12),
            because="the derivatives off M vanish on M exactly; only rounding could build up over 20 000 steps",
        ),
        Claim(
            id="slr.trained",
            says="Trained from the manifold, attention has a far smaller risk than any linear predictor",
            source="arXiv:2410.01537, abstract",
            statistic=ratio_of_means(of("risk"), known(linear_risk), unit=RUN),
            holds=at_most(0.3),
            because="the exact ratio at the planted pair is 0.1135 / 0.4737 = 0.24",
        ),
    ),
)

SMALL = experiment(
    "slr.small",
    "Gradient descent from random starts at a small inverse temperature",
    "About half of the runs find (k*, v*); the others end at a swapped minimum where k = ±v*.",
    {**SETTING, "start": "sphere", "lam": 0.1, "decay": 0.0, "step": 4e-3, "n_steps": 20_000, "log_every": 200},
    (
        Claim(
            id="slr.small",
            says="Off the manifold and at small lambda, a sizeable share of the runs fails, at a swapped minimum",
            source="arXiv:2410.01537, section 5 (failure); the swapped minimum is derived here",
            statistic=share("swapped"),
            holds=at_least(0.2),
            because="half of 30 runs has an exact 95 % interval from 0.31; a fifth is no accident of a few runs",
        ),
    ),
)

LARGE = experiment(
    "slr.large",
    "Gradient descent from random starts at a large inverse temperature",
    "Above lambda = sqrt(3)/2 the planted pair is unstable: the runs approach M, then leave it again.",
    {**SETTING, "start": "sphere", "lam": 0.9, "decay": 0.0, "step": 1e-3, "n_steps": 120_000, "log_every": 300},
    (
        Claim(
            id="slr.large",
            says="Off the manifold and at large lambda, no run finds the planted pair",
            source="arXiv:2410.01537, section 5",
            statistic=share("oracle"),
            holds=at_most(0.15),
            because="the upper end of the exact 95 % interval for 0 successes of 30 is 0.116",
        ),
        Claim(
            id="slr.large_leaves",
            says="At large lambda the runs end far from the manifold M",
            source="derived here: instability of (k*, v*) above sqrt(3)/2",
            statistic=median(of("distance"), unit=RUN),
            holds=at_least(0.5),
            because="far is of order one: the runs came within 0.1 of M before they left it",
        ),
    ),
)

SCHEDULE = experiment(
    "slr.schedule",
    "Gradient descent with a decaying inverse temperature",
    "Starting at lambda = 1 and lowering it, nearly all runs find (k*, v*).",
    {**SETTING, "start": "sphere", "lam": 1.0, "decay": 1e-4, "step": 4e-3, "n_steps": 120_000, "log_every": 300},
    (
        Claim(
            id="slr.schedule",
            says="Lowering lambda during training leads most random starts to the planted pair",
            source="arXiv:2410.01537, section 5",
            statistic=share("oracle"),
            holds=at_least(0.65),
            because="well above the half that succeeds at fixed small lambda; 27 of 30 has a 95 % interval from 0.73",
        ),
    ),
)
