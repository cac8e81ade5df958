"""An activation in one file outside the package: learner, theory and sweep take it like attnlab's own."""

from pathlib import Path

import numpy as np
import pytest

from attnlab import lab, slr
from attnlab.lab import own, sweep

FILE = Path(__file__).parents[2] / "examples" / "own_activation.py"
LAW = slr.Task(d=12, L=3, gamma=1.0, nu=4.0, noise_std=0.1)


@pytest.fixture
def quadratic(monkeypatch):
    monkeypatch.setattr(own, "things", own.nothing())
    own.load(FILE)
    return own.things["part"]["own.Quadratic"]


def test_the_risk_is_that_of_its_weights_on_tokens_of_the_law(quadratic):
    activation = quadratic(curvature=0.4)
    found = slr.theory.attention_risk(LAW, activation)
    X, _, location = LAW.sample_with_location(100_000, seed=1)
    weights = activation.g(found.detail["scale"] * (X @ LAW.k_star), np)
    hit, square = np.take_along_axis(weights, location.reshape(len(X), -1), 1)[:, 0], np.sum(weights**2, axis=1)
    risk = 1 - hit.mean() ** 2 / square.mean()
    # the delta method: the influence of one sequence on the risk
    influence = (1 - risk) * (2 * hit / hit.mean() - square / square.mean())
    assert found.converged
    assert abs(risk - float(found)) < 4 * influence.std() / len(X) ** 0.5


def test_a_quadratic_without_curvature_is_linear_attention(quadratic):
    flat = quadratic(curvature=0.0)
    assert float(slr.theory.attention_risk(LAW, flat)) == pytest.approx(
        float(slr.theory.attention_risk(LAW, "linear")), abs=1e-7
    )
    X, y = LAW.sample(300, seed=1)
    mine, theirs = (slr.Attention(a, random_state=0).fit(X, y) for a in (flat, "linear"))
    np.testing.assert_allclose(mine.predict(X), theirs.predict(X), rtol=1e-6, atol=1e-8)


SWEEP = """
name = "own-activation"
n_train = [100, 200]
n_test = 200

[task]
name = "slr.Task"
d = 8
L = 2

[[learner]]
name = "slr.Attention"
activation = [{name = "own.Quadratic", curvature = 0.0}, {name = "own.Quadratic", curvature = 0.4}]
"""


def test_a_sweep_takes_it_by_name_with_its_parameters(quadratic, tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    figure, scale = sweep.read(tmp_path / "sweep.toml")
    result = lab.run(figure, scale)
    assert not result.failed
    assert result.records.values("learner.activation.curvature") == [0.0, 0.4]
    assert len(set(result.records.column("mse"))) == 4
