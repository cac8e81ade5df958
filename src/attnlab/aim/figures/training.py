"""What training with weight decay reaches: its error, its spectrum, and the best decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.aim import theory
from attnlab.aim.figures.simulate import law_of, task_of
from attnlab.aim.learners.gradient_descent import Adam, GradientDescent
from attnlab.aim.learners.nuclear_norm import NuclearNorm
from attnlab.aim.task import Task
from attnlab.common.advice import no_advice
from attnlab.common.claim import Claim, at_least, at_most, between
from attnlab.common.drawing import COLORS, line, panels, points
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records, Row
from attnlab.common.seeds import branch
from attnlab.common.statistics import Statistic, deterministic, largest, mean, of, ratio_of_means, shifted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PAPER = "arXiv:2509.24914"
NOISY = {"learner": "convex"}  # rows of the third panel
SHOWN = 0.12  # alpha of the spectrum


def run(params: Params, seed: np.random.SeedSequence) -> Record:
    """One data set: gradient descent with decay, the smallest trace (decay -> 0), or the convex problem with decay."""
    task = task_of(params, branch(seed, "plant"))
    X, y = task.sample(task.n_samples(params["alpha"]), branch(seed, "data"))
    with no_advice():
        model = learner(params, task, branch(seed, "learner")).fit(X, y)
    decay = 0.0 if params["learner"] == "smallest trace" else params["decay"]
    predicted = theory.erm(task, params["alpha"], weight_decay=decay)
    found = np.sort(np.linalg.eigvalsh(model.S_))
    rows = [
        {
            "error": float(((model.S_ - task.S) ** 2).sum() / task.d),
            "theory": float(predicted),
            "bayes": float(theory.mmse(task, params["alpha"])),
            "distance": distance(found, predicted, task) if decay else 0.0,
            "converged": model.converged_,
        }
    ]
    return {"eigenvalues": found, "rows": rows}


def learner(params: Params, task: Task, seed: Any) -> GradientDescent | NuclearNorm:
    """Gradient descent of full width, or the convex solver."""
    if params["learner"] == "gradient descent":
        adam, options = Adam(0.03, 1200), {"loss": "logits", "weight_decay": params["decay"]}
        return GradientDescent(task.d, channel=task.law, optimizer=adam, random_state=seed, **options)
    decay = 0.0 if params["learner"] == "smallest trace" else params["decay"]
    return NuclearNorm(decay, channel=task.law, tol=1e-4, max_iter=1000)


def distribution(x: np.ndarray, predicted: theory.ERM, task: Task) -> np.ndarray:
    """Predicted share of eigenvalues up to x >= 0; the atom at zero has the mass 1 - rank."""
    top = float(task.prior.edges(predicted.blur**2, task.rho)[-1]) - predicted.threshold
    grid = np.linspace(0, max(top, 1e-6), 2001)
    density = theory.erm_density(grid + 1e-12, predicted, task.rho)
    mass = np.r_[0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))]
    return np.asarray(1 - predicted.rank + np.interp(x, grid, mass))


def distance(found: np.ndarray, predicted: theory.ERM, task: Task) -> float:
    """Kolmogorov distance of the eigenvalues from their law, over x > 0."""
    x = found[found > 1e-3 * max(found[-1], 1e-12)]
    above = np.arange(len(found) - len(x), len(found)) / len(found)
    law = distribution(x, predicted, task)
    return float(np.maximum(np.abs(law - above), np.abs(law - above - 1 / len(found))).max()) if len(x) else 1.0


def draw(records: Records) -> Canvas:
    """Errors over alpha, the spectrum of trained weights, and the error against the decay."""
    canvas, axes = panels(1, 3, width=3.9, height=3.5)
    _draw_errors(axes[0, 0], records)
    _draw_spectrum(axes[0, 1], records)
    _draw_decay(axes[0, 2], records)
    return canvas


def _draw_errors(ax: Axes, records: Records) -> None:
    law = law_of(records, noise=0.0)
    alpha = np.linspace(0.02, 0.26, 13)
    known = [row["decay"] for row in records if row["learner"] == "gradient descent"]
    lines = [("Bayes (theory)", "black", np.asarray(theory.mmse(law, alpha)))]
    decays = [0.0, *known[:1]]
    for color, decay in zip(COLORS, decays, strict=False):
        label = rf"weight decay {decay:g} (theory)" if decay else r"weight decay $\to 0$ (theory)"
        lines.append((label, color, np.array([float(theory.erm(law, float(a), weight_decay=decay)) for a in alpha])))
    for label, color, values in lines:
        line(ax, alpha, values, color=color, label=label)
    shown = {"smallest trace": ("smallest trace, convex", "s"), "gradient descent": ("gradient descent", "o")}
    for color, (name, (label, marker)) in zip(COLORS, shown.items(), strict=False):
        if name in records.values("learner"):
            curve = records.curve("alpha", "error", learner=name)
            points(ax, curve, color=color, fmt=marker, label=f"{label}, $d = {records.values('d')[-1]}$")
    ax.set(xlabel=r"samples $\alpha = n/d^2$", ylabel=r"error $\|S - \hat S\|^2/d$", ylim=(-0.03, 1.5))
    ax.set_title("errors without noise", loc="left", fontsize=8)
    ax.legend(loc="upper right", fontsize=7)


def _draw_spectrum(ax: Axes, records: Records) -> None:
    trained = [r for r in records if r["learner"] == "gradient descent"]
    ax.set(xlabel="eigenvalue of the trained S", ylabel="density of the non-zero part")
    if not trained:
        return
    alpha = min({row["alpha"] for row in trained}, key=lambda a: abs(a - SHOWN))
    rows = [row for row in trained if row["alpha"] == alpha]
    law, decay = task_of(rows[0]), rows[0]["decay"]
    predicted = theory.erm(law, alpha, weight_decay=decay)
    found = np.concatenate([row["eigenvalues"] for row in rows])
    top = 1.15 * (float(law.prior.edges(predicted.blur**2, law.rho)[-1]) - predicted.threshold)
    edges = np.linspace(0.02 * top, top, 16)
    counts, _ = np.histogram(found, edges)
    height = counts / (len(found) * np.diff(edges))
    ax.bar((edges[1:] + edges[:-1]) / 2, height, np.diff(edges), color=COLORS[5], gid="simulation", label="trained")
    x = np.linspace(1e-3, top, 300)
    line(ax, x, theory.erm_density(x, predicted, law.rho), color="black", label="law (theory)")
    share = float((found > 1e-3 * found.max()).mean())
    ax.set_title(
        rf"$\alpha = {alpha:g}$, decay {decay:g}: rank {share:.2f}, theory {predicted.rank:.2f}", loc="left", fontsize=8
    )
    ax.legend(loc="upper right", fontsize=7)


def _draw_decay(ax: Axes, records: Records) -> None:
    ax.set(xlabel=r"weight decay $\lambda$", ylabel=r"error $\|S - \hat S\|^2/d$", xscale="log")
    if "convex" not in records.values("learner"):
        return
    noisy = records.where(**NOISY)
    law, alpha = law_of(noisy), noisy.values("alpha")[0]
    decays = np.geomspace(0.005, 0.8, 15)
    curve = [float(theory.erm(law, alpha, weight_decay=float(decay))) for decay in decays]
    line(ax, decays, curve, color=COLORS[2], label="theory")
    points(ax, noisy.curve("decay", "error"), color=COLORS[2], label=f"convex solver, $d = {noisy.values('d')[-1]}$")
    lowest = int(np.clip(np.argmin(curve), 1, len(curve) - 2))
    near = slice(lowest - 1, lowest + 2)
    bend, slope, _ = np.polyfit(np.log(decays[near]), curve[near], 2)  # the minimum of a parabola in log lambda
    best = float(np.exp(-slope / (2 * bend)))
    ax.axvline(best, color="gray", linestyle=":", gid="guide", label=rf"best, $\lambda \approx {best:.2g}$")
    ax.axhline(float(theory.mmse(law, alpha)), color="black", linestyle="--", gid="theory", label="Bayes")
    ax.set_title(rf"best decay: noise {law.law.noise:g}, $\alpha = {alpha:g}$", loc="left", fontsize=8)
    ax.legend(loc="upper left", fontsize=7)


def excess(name: str) -> Any:
    """Error over the theory's, for one learner, where the theory is above 0.05."""

    def value(row: Row) -> float | None:
        return float(row["error"] / row["theory"]) if row["learner"] == name and row["theory"] > 0.05 else None

    value.__doc__ = f"Error of {name} over that of the theory of empirical risk minimisation."
    return value


def above_bayes(records: Records) -> float:
    """Smallest theoretical error of training minus the Bayes error."""
    return min(float(row["theory"] - row["bayes"]) for row in records)


def others(records: Records) -> Sequence[Statistic]:
    """Mean error at decay 0.1 over that at each other decay."""
    best = of("error", learner="convex", decay=0.1)
    decays = [v for v in records.where(**NOISY).values("decay") if v != 0.1]
    return [ratio_of_means(best, of("error", learner="convex", decay=v)) for v in decays]


def grids(d: int, seeds: int) -> list[Grid]:
    """Two learners without noise along alpha, and the convex solver with noise along the decay."""
    law = {"d": d, "tokens": 2, "rho": 0.5}
    clean = {**law, "noise": 0.0, "decay": 0.1, "alpha": [0.06, 0.12, 0.18, 0.24]}
    noisy = {**law, "noise": 0.25, "decay": [0.01, 0.03, 0.1, 0.4], "alpha": 0.3}
    return [
        Grid({"learner": ["gradient descent", "smallest trace"], **clean}, seeds=seeds),
        Grid({"learner": "convex", **noisy}, seeds=seeds),
    ]


TRAINING = Figure(
    name="aim.weight_decay",
    title="What training with weight decay reaches",
    paper=f"{PAPER}; solution derived here",
    shows=(
        "Left: Bayes error and the two laws of training (lines, theory) with gradient descent and the convex solver "
        "(points, simulation). Middle: eigenvalues of trained weights and their law. Right: the best decay with noise."
    ),
    scales={"quick": grids(48, 4), "paper": grids(96, 8)},
    run=run,
    draw=draw,
    shape=("d", "learner", "alpha"),
    independent_of=(
        "d",
        "noise: errors without noise",
        "alpha: errors without noise",
        "decay: Bayes",
        r"decay: \to 0",
        "decay: best decay",
    ),
    claims=(
        Claim(
            id="aim.decay-descent",
            says="Gradient descent with weight decay has the error of the theory of empirical risk minimisation",
            source=f"{PAPER}, claim 3.1; solution derived here",
            statistic=shifted(mean(of(excess("gradient descent"))), -1),
            holds=between(-0.05, 0.15),
            because="the theory is approached from above, by 2 to 8 % at d = 50 to 80; fixed before the first run",
        ),
        Claim(
            id="aim.decay-trace",
            says="The interpolator of smallest trace has the error of its law",
            source=f"{PAPER}; derived here",
            statistic=shifted(mean(of(excess("smallest trace"))), -1),
            holds=between(-0.05, 0.15),
            because="6 % above at d = 48, alpha = 0.1 in an independent simulation; fixed before the first run",
        ),
        Claim(
            id="aim.decay-recovery",
            says="Beyond alpha = 0.2111 (rho = 0.5, two tokens) the smallest trace is S itself",
            source="derived here; D. Amelunxen et al. (2014)",
            statistic=mean(of("error", learner="smallest trace", alpha=0.24)),
            holds=at_most(5e-3),
            because="14 % above the threshold; the bound is that of aim.recovery, fixed before the first run",
        ),
        Claim(
            id="aim.decay-spectrum",
            says="The eigenvalues of trained weights follow the thresholded Marchenko-Pastur + semicircle law",
            source=f"{PAPER}, claim 3.1",
            statistic=mean(of("distance", learner="gradient descent", alpha=0.12)),
            holds=at_most(0.1),
            because="0.02 to 0.03 at d = 80 in an independent simulation; one eigenvalue is 1/48 = 0.02; fixed before",
        ),
        Claim(
            id="aim.decay-best",
            says="With noise a finite weight decay is best: 0.1 at alpha = 0.3, noise 0.25",
            source="derived here",
            statistic=largest(others),
            holds=at_most(1.0),
            because="theory: 0.217 at 0.1 and at least 0.24 at the other decays; fixed before the first run",
        ),
        Claim(
            id="aim.decay-bayes",
            says="Training is never better than Bayes",
            source="definition",
            statistic=deterministic(above_bayes, why="two theories without data"),
            holds=at_least(0.0),
            because="the Bayes error is the smallest of any estimator",
        ),
    ),
)
