"""E8 and E9: the number of keys and the dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.common.claim import Claim, at_least, at_most
from attnlab.common.figure import Figure, Grid, Params, Record
from attnlab.common.records import Records
from attnlab.common.statistics import Column, largest, of, ratio_of_means
from attnlab.rfa.figures.curves import INFINITE, learner, measure, planted, predictable, prediction, with_theory
from attnlab.rfa.figures.panels import CAPTION, MODEL_NAMES, draw_knob, task_of
from attnlab.rfa.figures.theory_claims import theory_claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PAPER = "arXiv:2307.11353"
KEY_COUNT_TARGETS = ("f1_p2", "x0_p2")
DIMENSION_TARGETS = ("f2_q1", "softmax_g4")
ALL_MODELS = ["rfa", "brfa", "rfmlp"]
KEY_COUNTS = {"sweep": "keys", "d": 16, "n_keys": [2, 4, 8, 16, 32], "n": 1024, "n_test": 1000}
DIMENSIONS = {"sweep": "dimension", "n_keys": 16, "model": ALL_MODELS}


def run_models(params: Params, seed: np.random.SeedSequence) -> Record:
    """The cell of E8 and E9: one model at one number of keys and one dimension."""
    names = KEY_COUNT_TARGETS if params["sweep"] == "keys" else DIMENSION_TARGETS
    tasks, model = planted(names, params, seed), params["model"]
    rows = measure(learner(model, params, seed), tasks, params, [params["n"]], seed)
    return {"rows": with_theory(rows, tasks, model, params["heads"])}


def _predicted(records: Records, knob: str, target: str, model: str) -> tuple[np.ndarray, np.ndarray] | None:
    """The learning curve at the cells' settings, along the knob; None where there is no prediction."""
    if not predictable(task_of(records.rows[0], target), model):
        return None
    rows = [records.where(**{knob: value}).rows[0] for value in records.values(knob)]
    tasks = [task_of(row, target) for row in rows]
    finite, limit = (
        np.array(
            [
                prediction(task, row["n"], model, row["heads"] if some else INFINITE).value
                for task, row in zip(tasks, rows, strict=True)
            ]
        )
        for some in (True, False)
    )
    return finite, limit


def draw_key_count(records: Records) -> Canvas:
    """Error against the number of keys."""
    return draw_knob(records, "n_keys", KEY_COUNT_TARGETS, "model", MODEL_NAMES, "keys $N$", theory=_predicted)


def draw_dimension(records: Records) -> Canvas:
    """Error against the dimension."""
    return draw_knob(records, "d", DIMENSION_TARGETS, "model", MODEL_NAMES, "dimension $d$", theory=_predicted)


def _keys(target: str, model: str, n_keys: int) -> Column:
    return of("error", target=target, model=model, n_keys=n_keys)


KEY_COUNT = Figure(
    name="rfa.key-count",
    title="The number of keys",
    paper=f"{PAPER}, sample complexity free of the number of keys",
    shows="At fixed n the error of RFA on key averages barely depends on N, that of RFMLP grows; on functions of the "
    "query RFA improves with N, and at N = 2 RFMLP is better. " + CAPTION,
    scales={
        "quick": [Grid({**KEY_COUNTS, "heads": 600, "model": ["rfa", "rfmlp"]}, seeds=5)],
        "paper": [Grid({**KEY_COUNTS, "heads": 1000, "model": ALL_MODELS}, seeds=5)],
    },
    run=run_models,
    draw=draw_key_count,
    independent_of=("heads: infty", "n_test"),
    shared=("model",),
    shape=("n_keys",),
    claims=(
        *theory_claims("rfa.key-count", "at every number of keys", "target", "model", "n_keys"),
        Claim(
            id="rfa.keys-free",
            says="RFA's error on the quadratic average is nearly free of N (N = 32 over N = 2)",
            source=f"{PAPER}, abstract",
            statistic=ratio_of_means(_keys("f1_p2", "rfa", 32), _keys("f1_p2", "rfa", 2)),
            holds=at_most(1.5),
            because="the ratio 1.22 of two seeds of an independent prototype with 300 heads, and a margin",
            registered={"quick": "undecided", "paper": "undecided"},
            note=(
                "Nearly, not wholly: infinitely many heads are predicted to give 1.62 for sixteen times the keys "
                "(RFMLP: 4.0), and fewer heads less, so the value lies at the threshold. 3000 heads and 30 seeds "
                "would decide it, as fails."
            ),
            kind="exploratory",
        ),
        Claim(
            id="rfa.keys-slower",
            says=(
                "RFA's error on the quadratic average grows far less with N than RFMLP's (N = 32 over N = 2, as a "
                "ratio)"
            ),
            source=f"{PAPER}, abstract",
            statistic=ratio_of_means(
                [_keys("f1_p2", "rfmlp", 32), _keys("f1_p2", "rfa", 2)],
                [_keys("f1_p2", "rfmlp", 2), _keys("f1_p2", "rfa", 32)],
            ),
            holds=at_least(1.7),
            because="half the predicted advantage: the learning curves give 4.0 / 1.62 = 2.5",
        ),
        Claim(
            id="rfa.keys-mlp",
            says="RFMLP's error grows with N (N = 32 over N = 2)",
            source=f"{PAPER}, abstract",
            statistic=ratio_of_means(_keys("f1_p2", "rfmlp", 32), _keys("f1_p2", "rfmlp", 2)),
            holds=at_least(2.5),
            because="3.5 seen on two seeds of an independent prototype",
            kind="exploratory",
        ),
        Claim(
            id="rfa.keys-query",
            says="RFA is below RFMLP on functions of the query already at N = 2",
            source=f"{PAPER}, examples (gain ((N+2)/4)^p)",
            statistic=ratio_of_means(_keys("x0_p2", "rfmlp", 2), _keys("x0_p2", "rfa", 2)),
            holds=at_least(1.2),
            because="a fifth; the predicted gain is one at N = 2",
            registered={"quick": "fails", "paper": "fails"},
            note=(
                "RFMLP is lower at N = 2, and infinitely many heads would not change it: the learning curves predict "
                "0.36 for RFMLP and 0.73 for RFA, and cross between N = 2 and N = 3. No scale would change it."
            ),
        ),
    ),
)


def _dimension(target: str, model: str, d: int) -> Column:
    return of("error", target=target, model=model, d=d)


DIMENSION = Figure(
    name="rfa.dimension",
    title="The dimension of the tokens",
    paper=f"{PAPER}, dimension-free cost of correlations under a bias",
    shows="At fixed n the correlation target is learned only while n exceeds the number of modes; the bias helps by a "
    "constant factor at every d. " + CAPTION,
    scales={
        "quick": [
            Grid({**DIMENSIONS, "heads": heads, "d": d, "n": 1024, "n_test": 500}, seeds=5)
            for heads, d in ((300, [8, 16, 32]), (150, 64))
        ],
        "paper": [Grid({**DIMENSIONS, "heads": 300, "d": [8, 16, 32, 64], "n": 2048, "n_test": 1000}, seeds=5)],
    },
    run=run_models,
    draw=draw_dimension,
    independent_of=("heads: infty", "n_test"),
    shared=("model",),
    shape=("d",),
    claims=(
        *theory_claims("rfa.dimension", "at every dimension", "target", "model", "d"),
        Claim(
            id="rfa.dimension-softmax",
            says="The bias helps on softmax attention at every dimension (largest BRFA/RFA)",
            source="derived here",
            statistic=largest(
                [
                    ratio_of_means(*(_dimension("softmax_g4", model, d) for model in ("brfa", "rfa")))
                    for d in (8, 32, 64)
                ]
            ),
            holds=at_most(0.7),
            because="0.53 to 0.57 seen on two seeds of an independent prototype",
            kind="exploratory",
        ),
        Claim(
            id="rfa.dimension-free",
            says="With the bias the error on <x_0,x_i><b,x_i> does not grow with d (d = 64 over d = 8)",
            source=f"our reading of {PAPER}: a complexity free of d",
            statistic=ratio_of_means(_dimension("f2_q1", "brfa", 64), _dimension("f2_q1", "brfa", 8)),
            holds=at_most(2),
            because="free of d up to a factor of two",
            registered={"quick": "fails", "paper": "fails"},
            note=(
                "Freedom of d holds for the norms (figure rfa.complexity), not for errors at this n: near-ridgeless "
                "regression pays for all modes, whose number grows with d. n above the 130 000 modes of the target "
                "at d = 64, or a ridge matched to the norm, would be needed to see it."
            ),
        ),
    ),
)
