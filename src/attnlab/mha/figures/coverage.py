"""Coverage of the certificate: how often its statements are wrong, each on a layer of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.figure import Canvas, Figure, Grid, Params
from attnlab.common.records import Records, proportion
from attnlab.common.seeds import branch
from attnlab.common.statistics import FEWEST, MOST, of, proportion_of, ratio_of_means
from attnlab.mha.figures.instances import planted
from attnlab.mha.figures.ticks import log_values, shares
from attnlab.mha.learners.attention_learner import AttentionLearner
from attnlab.mha.learners.holdout import Holdout

_FITTED, _FRESH = 60, 20_000


def run(params: Params, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Fit noisy labels of a new layer, and hold the certificate that the learner ships against many fresh examples."""
    n = params["n"]
    fitted = max(_FITTED, n // 8)
    task, (X, y), start = planted(seed, n + fitted, params)
    holdout = Holdout(0.0, n / (n + fitted))
    learner = AttentionLearner(params["n_heads"], starts=("random",), n_starts=1, holdout=holdout, random_state=start)
    made = learner.fit(X, y).certificate_
    assert made is not None
    tokens, labels = task.sample(_FRESH, branch(seed, "test"))
    errors = learner.predict(tokens) - labels
    losses = np.minimum(np.mean(errors**2, axis=(1, 2)), made.cut)
    exceeded = np.mean(np.abs(errors).max(axis=(1, 2)) > made.largest_error)
    mean_true, tail_true = made.loss_bound >= losses.mean(), exceeded <= made.tail_probability
    return {
        "loss_covered": bool(mean_true),
        "tail_covered": bool(tail_true),
        "both_covered": bool(mean_true and tail_true),
        "bound": float(made.loss_bound),
        "loss": float(losses.mean()),
        "converged": learner.converged_,
    }


def draw(records: Records) -> Canvas:
    """Share of true statements, and how loose the bound on the loss is."""
    from attnlab.common.drawing import COLORS, MARKERS, line, panels, points

    canvas, axes = panels(1, 2)
    ns = records.values("n")
    names = {"loss_covered": "mean of the cut loss", "tail_covered": "tail", "both_covered": "both together"}
    for i, (name, text) in enumerate(names.items()):
        stated = [proportion(records.where(n=n).column(name)) for n in ns]
        shares(axes[0, 0], np.array(ns) * (1 + 0.04 * i), stated, fmt=MARKERS[i], color=COLORS[i], label=text)
    line(axes[0, 0], [min(ns), max(ns)], [0.95, 0.95], color="0.3", linestyle="--", label="stated for both, 1 − δ")
    axes[0, 0].set(xlabel="certificate examples n", ylabel="share of true statements", ylim=(0.88, 1.005))
    for i, (name, text) in enumerate((("bound", "bound"), ("loss", "true mean of the cut loss"))):
        points(axes[0, 1], records.curve("n", name), color=COLORS[i], fmt=MARKERS[i], label=text)
    axes[0, 1].set(yscale="log", xlabel="certificate examples n", ylabel="squared error per output number")
    for ax in axes[0]:
        log_values(ax, ns)
        ax.legend(loc="best")
    return canvas


_LAYER = {"d": 4, "k": 3, "n_heads": 2, "rho": 4.0, "noise_std": 0.5}

COVERAGE = Figure(
    name="mha.coverage",
    title="How often the certificate is right",
    paper="arXiv:0907.3740",
    shows=(
        "The two statements of a learner's certificate are true together with at least the stated probability, over "
        "noisy layers drawn anew for each; the bound on the mean is safe, the tail statement tight."
    ),
    scales={
        "quick": [Grid({**_LAYER, "n": [100, 1000]}, seeds=150)],
        "paper": [Grid({**_LAYER, "d": 6, "n": [100, 1000, 5000]}, seeds=400)],
    },
    run=run,
    draw=draw,
    independent_of=("d", "k", "n_heads", "rho", "noise_std"),
    shape=("n",),
    claims=(
        Claim(
            id="mha.certificate.loss",
            says="the mean of the cut squared error is below its certified bound at least 95 % of the time",
            source="arXiv:0907.3740, theorem 4",
            statistic=proportion_of(of("loss_covered")),
            holds=at_least(0.95),
            because="the promise is 0.975 (half of delta); fixed before the run",
        ),
        Claim(
            id="mha.certificate.tail",
            says="the tail statement is true at least 93 % of the time",
            source="derived here: (1 - p)^n <= delta / 2",
            statistic=proportion_of(of("tail_covered")),
            holds=at_least(0.93),
            because=(
                "the statement is tight at 0.975; the exact interval of 292 in 300 begins at 0.948, and 0.93 leaves "
                "room for judging by 20000 examples; fixed before the run"
            ),
        ),
        Claim(
            id="mha.certificate.width",
            says="the bound comes down to the true loss as examples are added",
            source="arXiv:0907.3740",
            statistic=ratio_of_means(of("bound", n=MOST), of("bound", n=FEWEST)),
            holds=at_most(0.6),
            because="the range term falls tenfold from n = 100 to 1000, down to the loss itself; fixed before the run",
        ),
    ),
)
