"""E7, E8 and E9: the score function, the number of keys and the dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.drawing import COLORS, panels, style
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.rfa.figures.curves import (
    TITLES,
    attention,
    examples,
    feature_map,
    grams,
    planted,
    relative_errors,
    weight_seed,
)
from attnlab.rfa.figures.panels import MODEL_NAMES, draw_knob, legend_below, narrow_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PAPER = "arXiv:2307.11353"
SCORE_TARGETS = ("f1_p2", "f2_q1", "softmax_g1", "x0_p2")
SCORES = {
    "relu": ("relu", None),
    "relu + bias": ("relu", "identity"),
    "softmax": ("softmax", None),
    "softmax + bias": ("softmax", "identity"),
    "exp": ("exp", None),
    "exp + bias": ("exp", "identity"),
}
KEY_COUNT_TARGETS = ("f1_p2", "x0_p2")
DIMENSION_TARGETS = ("f2_q1", "softmax_g4")


def run_scores(params: Params, seed: np.random.SeedSequence) -> Record:
    """All targets for one score function."""
    tasks = planted(SCORE_TARGETS, params["d"], params["n_keys"], seed)
    n = params["n_max"]
    X = examples(tasks["f1_p2"], n + params["n_test"], seed)
    score, bias = SCORES[params["score"]]
    heads = attention(params["heads"], params["d"], weight_seed(seed), bias=bias, score=score)
    return {"rows": relative_errors(*grams(heads, X, n), tasks, X, [n // 4, n])}


def draw_scores(records: Records) -> Canvas:
    """Bars per score function and target, at two sample sizes."""
    sizes, names = records.values("n"), list(SCORES)
    with style():
        canvas, grid = panels(1, len(SCORE_TARGETS), width=3.0, height=3.2)
        for axes, target in zip(grid.flat, SCORE_TARGETS, strict=True):
            for j, n in enumerate(sizes):
                curves = [records.curve("n", "error", target=target, n=n, score=s) for s in names]
                axes.bar(
                    np.arange(len(names)) + 0.4 * (j - 0.5),
                    [c.mean[0] for c in curves],
                    0.38,
                    yerr=[np.nan_to_num(c.sem[0]) for c in curves],
                    color=COLORS[j],
                    capsize=2,
                    label=f"$n = {n}$",
                )
            axes.set(yscale="log", title=TITLES[target])
            narrow_ticks(axes)
            axes.set_xticks(range(len(names)), names, rotation=50, ha="right")
            axes.grid(visible=False, axis="x")
        grid[0, 0].set_ylabel("error / Var $f_*$")
        legend_below(canvas, grid[0, 0], 2)
    return canvas


def _score(records: Records, target: str, n: int, score: str) -> float:
    return records.mean("error", target=target, n=n, score=score)


SCORE = Figure(
    name="rfa.scores",
    title="Softmax and other scores",
    paper="our experiment on the model of arXiv:2307.11353 (its outlook on softmax attention)",
    shows="Softmax weights sum to one, so softmax heads cannot learn a function of the query alone; with a bias they "
    "are best on softmax targets.",
    scales={
        "quick": [
            Grid({"d": 16, "n_keys": 16, "heads": 400, "score": list(SCORES), "n_max": 1024, "n_test": 500}, seeds=5)
        ],
        "paper": [
            Grid({"d": 16, "n_keys": 16, "heads": 1000, "score": list(SCORES), "n_max": 1024, "n_test": 1000}, seeds=5)
        ],
    },
    run=run_scores,
    draw=draw_scores,
    shared=("score",),
    minutes={"quick": 0.1, "paper": 0.5},
    claims=(
        Claim(
            "rfa.softmax-query",
            "Softmax heads fail on a function of the query that ReLU heads learn (error ratio, n = 1024)",
            "derived here",
            lambda r: _score(r, "x0_p2", 1024, "softmax") / _score(r, "x0_p2", 1024, "relu"),
            at_least(3),
            "4.6 seen on two seeds of an independent prototype",
        ),
        Claim(
            "rfa.softmax-target",
            "Softmax heads with a bias learn softmax attention from few samples (n = 256)",
            "derived here",
            lambda r: _score(r, "softmax_g1", 256, "softmax + bias"),
            at_most(0.005),
            "0.0016 at n = 1024 seen in an independent prototype",
        ),
    ),
)


def run_models(params: Params, seed: np.random.SeedSequence) -> Record:
    """The cell of E8 and E9: one model at one number of keys and one dimension."""
    names = KEY_COUNT_TARGETS if params["sweep"] == "keys" else DIMENSION_TARGETS
    tasks = planted(names, params["d"], params["n_keys"], seed)
    n = params["n"]
    X = examples(next(iter(tasks.values())), n + params["n_test"], seed)
    maps = feature_map(params["model"], params["heads"], params["d"], params["n_keys"], weight_seed(seed))
    return {"rows": relative_errors(*grams(maps, X, n), tasks, X, [n])}


def draw_key_count(records: Records) -> Canvas:
    """Error against the number of keys."""
    return draw_knob(records, "n_keys", KEY_COUNT_TARGETS, "model", MODEL_NAMES, "keys $N$")


def draw_dimension(records: Records) -> Canvas:
    """Error against the dimension."""
    return draw_knob(records, "d", DIMENSION_TARGETS, "model", MODEL_NAMES, "dimension $d$")


def _keys(records: Records, target: str, model: str, n_keys: int) -> float:
    return records.mean("error", target=target, model=model, n_keys=n_keys)


KEY_COUNT = Figure(
    name="rfa.key-count",
    title="The number of keys",
    paper=f"{PAPER}, sample complexity free of the number of keys",
    shows="At fixed n the error of RFA on key averages barely depends on N, that of RFMLP grows; on functions of the "
    "query RFA even improves with N, and at N = 2 RFMLP wins.",
    scales={
        "quick": [
            Grid(
                {
                    "sweep": "keys",
                    "d": 16,
                    "heads": 300,
                    "n_keys": [2, 4, 8, 16, 32],
                    "model": ["rfa", "rfmlp"],
                    "n": 1024,
                    "n_test": 500,
                },
                seeds=5,
            )
        ],
        "paper": [
            Grid(
                {
                    "sweep": "keys",
                    "d": 16,
                    "heads": 1000,
                    "n_keys": [2, 4, 8, 16, 32],
                    "model": ["rfa", "brfa", "rfmlp"],
                    "n": 1024,
                    "n_test": 1000,
                },
                seeds=5,
            )
        ],
    },
    run=run_models,
    draw=draw_key_count,
    shared=("model",),
    shape=("n_keys",),
    minutes={"quick": 0.1, "paper": 0.6},
    claims=(
        Claim(
            "rfa.keys-free",
            "RFA's error on the quadratic average is nearly free of N (N = 32 over N = 2)",
            f"{PAPER}, abstract",
            lambda r: _keys(r, "f1_p2", "rfa", 32) / _keys(r, "f1_p2", "rfa", 2),
            at_most(1.5),
            "1.22 seen on two seeds of an independent prototype",
        ),
        Claim(
            "rfa.keys-mlp",
            "RFMLP's error grows with N (N = 32 over N = 2)",
            f"{PAPER}, abstract",
            lambda r: _keys(r, "f1_p2", "rfmlp", 32) / _keys(r, "f1_p2", "rfmlp", 2),
            at_least(2.5),
            "3.5 seen on two seeds of an independent prototype",
        ),
        Claim(
            "rfa.keys-query",
            "RFA is below RFMLP on functions of the query already at N = 2",
            f"{PAPER}, examples (gain ((N+2)/4)^p)",
            lambda r: _keys(r, "x0_p2", "rfmlp", 2) / _keys(r, "x0_p2", "rfa", 2),
            at_least(1.2),
            "a fifth; the predicted gain is one at N = 2",
            {"quick": "fails", "paper": "fails"},
            "RFMLP is lower at N = 2: it spreads its parameters over three tokens only, while RFA's finitely many "
            "heads see the query through random keys.",
        ),
    ),
)


def _dimension(records: Records, target: str, model: str, d: int) -> float:
    return records.mean("error", target=target, model=model, d=d)


DIMENSION = Figure(
    name="rfa.dimension",
    title="The dimension of the tokens",
    paper=f"{PAPER}, dimension-free cost of correlations under a bias",
    shows="At fixed n the correlation target is learned only while n exceeds the number of modes; the bias helps by a "
    "constant factor at every d.",
    scales={
        "quick": [
            Grid(
                {
                    "sweep": "dimension",
                    "n_keys": 16,
                    "heads": 300,
                    "d": [8, 16, 32],
                    "model": ["rfa", "brfa", "rfmlp"],
                    "n": 1024,
                    "n_test": 500,
                },
                seeds=5,
            ),
            Grid(
                {
                    "sweep": "dimension",
                    "n_keys": 16,
                    "heads": 150,
                    "d": 64,
                    "model": ["rfa", "brfa", "rfmlp"],
                    "n": 1024,
                    "n_test": 500,
                },
                seeds=5,
            ),
        ],
        "paper": [
            Grid(
                {
                    "sweep": "dimension",
                    "n_keys": 16,
                    "heads": 300,
                    "d": [8, 16, 32, 64],
                    "model": ["rfa", "brfa", "rfmlp"],
                    "n": 2048,
                    "n_test": 1000,
                },
                seeds=5,
            )
        ],
    },
    run=run_models,
    draw=draw_dimension,
    shared=("model",),
    shape=("d",),
    minutes={"quick": 0.3, "paper": 2.0},
    claims=(
        Claim(
            "rfa.dimension-softmax",
            "The bias helps on softmax attention at every dimension (largest BRFA/RFA)",
            "derived here",
            lambda r: max(
                _dimension(r, "softmax_g4", "brfa", d) / _dimension(r, "softmax_g4", "rfa", d) for d in (8, 32, 64)
            ),
            at_most(0.7),
            "0.53 to 0.57 seen on two seeds of an independent prototype",
        ),
        Claim(
            "rfa.dimension-free",
            "With the bias the error on <x_0,x_i><b,x_i> does not grow with d (d = 64 over d = 8)",
            f"{PAPER}, abstract (cost free of d)",
            lambda r: _dimension(r, "f2_q1", "brfa", 64) / _dimension(r, "f2_q1", "brfa", 8),
            at_most(2),
            "free of d up to a factor of two",
            {"quick": "fails", "paper": "fails"},
            "Freedom of d holds for the norms (figure rfa.complexity), not for errors at this n: near-ridgeless "
            "regression pays for all modes, whose number grows with d.",
        ),
    ),
)
