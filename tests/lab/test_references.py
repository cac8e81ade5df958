"""What the references say, against simulated trials."""

import math

import numpy as np
import pytest

from attnlab import aim, mha, rfa, slr
from attnlab.lab import registry
from attnlab.lab.request import spec
from attnlab.lab.spec import Spec

SLR = {"task": "slr.Task", "task.d": 20, "task.L": 5}
# the laws of arXiv:2509.21936, for which the state evolutions are written
UNIT = {"task": "slr.Task", "task.d": 100, "task.L": 3, "task.gamma": 1.0, "task.nu": 4.0, "task.noise_std": 0.1}
MAX = {**SLR, "task.law": "max", "task.gamma": 1.0, "task.nu": 2.0, "task.noise_std": 0.3}
RFA = {"task": "rfa.Task", "task.d": 8, "task.n_keys": 8}
NOISY = {**RFA, "task.target": "corr_power", "task.noise_std": 0.02}
AIM = {"task": "aim.Task", "task.d": 40}
MHA = {"task": "mha.Task", "task.d": 6, "task.k": 3, "task.n_heads": 2, "task.noise_std": 0.1}


def predictions(task, learner, n):
    found = Spec(task, learner, n, needs={}, plant=False).theory(task, learner)
    return {name.removeprefix("theory."): value for name, value in found.items()}


def trial(setting, learner, n_train, seed, **options):
    params = {**setting, "learner": learner, "n_train": n_train, "n_test": 2000}
    params |= {f"learner.{name}": value for name, value in options.items()}
    return spec({**params, "seed": seed}).run()


# (setting, learner, n, parameters of the learner, relative error that the asymptotics may have at this size)
SIMULATED = [
    (SLR, "slr.LinearPredictor", 50, {}, 0.10),
    (SLR, "slr.LinearPredictor", 400, {}, 0.05),
    (SLR, "slr.LinearPredictor", 120, {"ridge": 0.3}, 0.05),
    (MAX, "slr.LinearPredictor", 400, {}, 0.05),
    (UNIT, "slr.AMP", 200, {"nu": 4.0, "noise_std": 0.1, "damping": 0.7}, 0.05),
    (UNIT, "slr.AMP", 300, {"nu": 4.0, "noise_std": 0.1}, 0.05),
    (RFA, "rfa.AttentionKernelRidge", 400, {"ridge": 1e-4}, 0.15),
    (NOISY, "rfa.AttentionKernelRidge", 300, {"ridge": 1e-3}, 0.1),
    (RFA, "rfa.RandomFeatureAttention", 100, {"n_heads": 1000}, 0.15),
    (RFA, "rfa.RandomFeatureMLP", 300, {"width": 9000}, 0.10),
    (AIM, "aim.AMP", 80, {}, 0.10),
    (AIM, "aim.AMP", 80, {"prediction": "bayes"}, 0.10),
    (MHA, "mha.AttentionLearner", 300, {"n_heads": 2}, 0.03),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "learner", "n", "options", "finite_size"), SIMULATED)
def test_the_prediction_for_a_learner_is_what_a_trial_measures(setting, learner, n, options, finite_size, seed):
    rows = [trial(setting, learner, n, s, **options) for s in range(6 * seed, 6 * seed + 6)]
    measured = np.array([row["mse"] for row in rows])
    # four standard errors over six seeds (for any seed) beside what the theory leaves out at this size
    noise = 4 * measured.std(ddof=1) / math.sqrt(len(rows))
    predicted = rows[0]["theory.theory"]
    assert abs(measured.mean() - predicted) < noise + finite_size * predicted


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["Softmax", "Linear", "Softplus"])
def test_the_prediction_for_empirical_risk_minimisation_is_what_a_trial_measures(attention, seed):
    rows = [trial(UNIT, f"slr.{attention}Attention", 600, s) for s in range(6 * seed, 6 * seed + 6)]
    measured = np.array([row["mse"] for row in rows])
    noise = 4 * measured.std(ddof=1) / math.sqrt(len(rows))
    assert abs(measured.mean() - rows[0]["theory.theory"]) < noise + 0.05 * rows[0]["theory.theory"]


@pytest.mark.parametrize(
    ("setting", "learner", "options"),
    [
        (SLR, "slr.NullPredictor", {}),
        (MAX, "slr.NullPredictor", {}),
        (RFA, "rfa.AttentionKernelRidge", {}),
        (AIM, "aim.AMP", {}),
        ({**AIM, "task.tokens": 3, "task.rho": 1.0}, "aim.AMP", {"rho": 1.0}),
    ],
)
def test_the_null_error_is_the_variance_of_the_output(setting, learner, options, seed):
    rows = [trial(setting, learner, 100, s, **options) for s in range(4 * seed, 4 * seed + 4)]
    measured = np.array([row["null"] for row in rows])
    # the trial's null predictor is the mean of 100 outputs (1 % more), and d = 40 is 3 % from its limit; and noise
    noise = 4 * measured.std(ddof=1) / math.sqrt(len(rows))
    assert abs(measured.mean() - rows[0]["theory.null"]) < noise + 0.04 * rows[0]["theory.null"]


@pytest.mark.parametrize("setting", [SLR, MAX, UNIT])
def test_the_bayes_error_of_slr_is_that_of_the_bayes_predictor(setting, seed):
    given = {name.removeprefix("task."): value for name, value in setting.items() if name != "task"}
    task = slr.Task(**given)
    X, y = task.sample(20_000, seed)
    squares = (slr.BayesPredictor(task).fit(X[:2], y[:2]).predict(X) - y) ** 2
    predicted = predictions(task, slr.NullPredictor(), 10)["Bayes"]
    # Monte Carlo on both sides: 20 000 sequences here, 50 000 draws there
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(len(squares))


def test_the_oracle_of_slr_is_predicted(seed):
    task = slr.Task(d=40, L=5, noise_std=0.1)
    X, y = task.sample(20_000, seed)
    oracle = slr.OraclePredictor(task)
    squares = (oracle.fit(X[:2], y[:2]).predict(X) - y) ** 2
    assert abs(squares.mean() - predictions(task, oracle, 1)["theory"]) < 5 * squares.std() / math.sqrt(len(squares))


@pytest.mark.parametrize(
    ("task", "learner", "n"),
    [
        (slr.Task(d=10, L=3), slr.AMP(), 50),  # gamma is not 1
        (slr.Task(d=10, L=3, gamma=1.0, nu=2.0, noise_std=0.3), slr.AMP(nu=2.0), 50),  # it assumes another noise
        (slr.Task(d=10, L=3), slr.SoftmaxAttention(), 50),
        (rfa.Task(), rfa.RandomFeatureAttention(bias="identity"), 50),
        (rfa.Task(), rfa.RandomFeatureAttention(activation="exp"), 500),
        (rfa.Task(target="softmax"), rfa.AttentionKernelRidge(), 50),
        (rfa.Task(), rfa.AttentionKernelRidge(kernel="exp"), 50),
        (rfa.Task(token_law="gaussian"), rfa.AttentionKernelRidge(), 50),
        (aim.Task(d=20), aim.AMP(rho=0.7), 50),
        (aim.Task(d=20), aim.GradientDescent(10), 50),
        (mha.Task(d=6, k=3, n_heads=2), mha.AttentionLearner(), 20),  # counting alone asks for 16
        (mha.Task(d=6, k=3, n_heads=2), mha.MomentLearner(), 500),
    ],
)
def test_where_the_theory_does_not_reach_nothing_is_said_of_the_learner(task, learner, n):
    assert "theory" not in predictions(task, learner, n)


def test_the_bayes_error_is_below_null_and_below_every_prediction():
    for setting, learner, n, options, _ in SIMULATED:
        params = {**setting, "learner": learner} | {f"learner.{name}": value for name, value in options.items()}
        found = predictions(*spec({**params, "n_train": n}).build(), n)
        assert found["Bayes"] <= found["theory"] * (1 + 1e-9)
        assert found["Bayes"] < found.get("null", math.inf)


def test_every_reference_says_what_it_is():
    for reference in registry.references():
        assert reference.status in ("exact", "asymptotic", "bound", "heuristic")
        assert reference.error.__doc__
