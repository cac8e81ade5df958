"""An activation that the library does not know, in this one file: learner, kernel, theory, trial and figure take it."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from attnlab.common.claim import Claim, between
from attnlab.common.drawing import line, panels, points
from attnlab.common.figure import Figure, Grid
from attnlab.common.records import Records
from attnlab.common.statistics import of, ratio_of_means
from attnlab.rfa import (
    Activation,
    AttentionKernelRidge,
    Exponential,
    RandomFeatureAttention,
    SoftmaxWeights,
    Task,
    theory,
)

SMALL = {"n_heads": 40, "random_state": 0}


@dataclass(frozen=True)
class Cubic(Activation):
    """z^3, with its kernel."""

    name = "cubic"

    def weights(self, xp, S):
        return S**3

    def pairs(self, m, s, m2, s2, rho, nodes):
        # E z^3 z'^3 of centred scores, by Wick's theorem
        return (s * s2) ** 3 * (9 * rho + 6 * rho**3)


def run(params, seed):
    task = Task("key_power", p=1, d=4, n_keys=3, seed=seed.spawn(1)[0])
    (X, y), (X_test, f) = task.sample(params["n"], seed=seed.spawn(1)[0]), task.sample(500, seed=seed.spawn(1)[0])
    learner = RandomFeatureAttention(params["heads"], activation=Cubic(), random_state=0).fit(X, y)
    predicted = theory.sampled_learning_curve(task, params["n"], Cubic(), units=params["heads"], size=128)
    return {"error": float(np.mean((learner.predict(X_test) - f) ** 2) / task.variance), "theory": float(predicted)}


def draw(records):
    canvas, grid = panels()
    points(grid[0, 0], records.curve("n", "error"), color="k", fmt="o")
    curve = records.curve("n", "theory")
    line(grid[0, 0], curve.x, curve.mean, color="k")
    return canvas


OWN = Figure(
    name="own.cubic",
    title="Cubic scores",
    paper="none",
    shows="Simulation and prediction of an own activation.",
    scales={"quick": [Grid({"n": [20, 40], "heads": 30}, seeds=4)]},
    run=run,
    draw=draw,
    claims=(
        Claim(
            "own.cubic",
            "The prediction for an own activation is near the simulation",
            "this test",
            ratio_of_means(of("theory"), of("error")),
            between(0.55, 1.25),
            "the band of the known activations",
        ),
    ),
)


@pytest.fixture(scope="module")
def data():
    return Task(d=4, n_keys=3).sample(120, seed=1)


def test_an_activation_is_a_name_or_an_object(data):
    X, y = data
    model = RandomFeatureAttention(**SMALL, activation="exp").fit(X, y)
    same = RandomFeatureAttention(**SMALL, activation=Exponential()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.score(X, y) == pytest.approx(1 - np.mean((model.predict(X) - y) ** 2) / np.var(y))
    for other in ("relu", Exponential(tau=0.2)):
        assert not np.allclose(model.predict(X), clone(model).set_params(activation=other).fit(X, y).predict(X))


def test_an_own_activation_fits_and_has_its_limit(data):
    X, y = data
    limit = AttentionKernelRidge(Cubic(), ridge=1e-2).fit(X, y).predict(X)
    many = RandomFeatureAttention(20_000, activation=Cubic(), ridge=1e-2, random_state=0).fit(X, y).predict(X)
    assert np.sqrt(np.mean((many - limit) ** 2)) < 0.1 * y.std()
    with pytest.raises(ValueError, match="has no closed-form kernel"):
        AttentionKernelRidge(SoftmaxWeights()).fit(X, y)


def test_an_own_activation_is_predicted_drawn_and_judged():
    records = Records.of({**cell.params, **cell()} for cell in OWN.cells("quick"))
    ratio = np.exp(np.mean(np.log(records.column("theory") / records.column("error"))))
    assert 0.55 < ratio < 1.25
    assert len(OWN.draw(records).axes) == 1
    (verdict,) = OWN.decide(records, "quick")
    assert verdict.status in ("holds", "undecided")
