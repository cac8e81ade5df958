"""A score in one file outside the package: kernel, learners and sweep take it like attnlab's own."""

from pathlib import Path

import numpy as np
import pytest

from attnlab import lab, rfa
from attnlab.lab import own, sweep

FILE = Path(__file__).parents[2] / "examples" / "own_score.py"
LAW = rfa.Task("key_power", p=2, d=4, n_keys=3)


@pytest.fixture
def cosine(monkeypatch):
    monkeypatch.setattr(own, "things", own.nothing())
    own.load(FILE)
    return own.things["part"]["own.Cosine"]()


def test_the_kernel_is_the_limit_of_many_heads(cosine):
    X, y = LAW.sample(60, seed=1)
    X_test, _ = LAW.sample(200, seed=2)
    limit = rfa.AttentionKernelRidge(cosine, ridge=0.1).fit(X, y).predict(X_test)
    # heads scatter by 1/sqrt(heads): 4000 leave 2 % of the prediction's deviation
    heads = rfa.RandomFeatureAttention(4000, activation=cosine, ridge=0.1, random_state=0).fit(X, y).predict(X_test)
    assert np.std(heads - limit) < 0.1 * np.std(limit)


def test_pairs_are_the_mean_over_correlated_scores(cosine):
    m, s, m2, s2, rho = 0.3, 0.7, -0.4, 1.1, 0.6
    rng = np.random.default_rng(0)
    z = rng.standard_normal((2, 200_000))
    one, other = m + s * z[0], m2 + s2 * (rho * z[0] + (1 - rho**2) ** 0.5 * z[1])
    product = np.cos(one) * np.cos(other)
    exact = float(cosine.pairs(m, s, m2, s2, rho, 0))
    assert abs(product.mean() - exact) < 4 * product.std() / len(product) ** 0.5


SWEEP = """
name = "own-score"
n_train = 40
n_test = 50

[task]
name = "rfa.Task"
d = 4
n_keys = 3

[[learner]]
name = "rfa.RandomFeatureAttention"
n_heads = 20
activation = [{name = "own.Cosine", tau = 0.5}, {name = "own.Cosine", tau = 1.0}]
"""


def test_a_sweep_takes_it_by_name_with_its_parameters(cosine, tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    result = lab.run(*sweep.read(tmp_path / "sweep.toml"))
    assert not result.failed
    assert result.records.values("learner.activation.tau") == [0.5, 1.0]
