"""A learner of one's own, in one file outside the package, in sweeps, arena and planner."""

import pytest

from attnlab import lab
from attnlab.lab import own
from attnlab.lab.engine import SerialEngine
from attnlab.lab.own import load
from attnlab.lab.sweep import read

FILE = '''
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from attnlab import lab, mha

@lab.add
class Told(RegressorMixin, BaseEstimator):
    """Knows the attention matrices; the projections are a regression."""

    needs = {"theta": "Theta"}
    takes = "sequence"  # one output for each token

    def __init__(self, theta=None):
        self.theta = theta

    def fit(self, X, y):
        keys = self._keys(X)
        self.w_ = np.linalg.lstsq(keys.reshape(-1, keys.shape[-1]), y.reshape(-1, y.shape[-1]), rcond=None)[0]
        return self

    def predict(self, X):
        return self._keys(X) @ self.w_

    def _keys(self, X):
        means = mha.patterns(X, self.theta) @ X[:, None]
        return means.transpose(0, 2, 1, 3).reshape(*X.shape[:2], -1)
'''

SWEEP = """
name = "told"
n_train = 40
n_test = 50
seeds = 2
[task]
name = "mha.Task"
d = 4
k = 3
n_heads = 2
[[learner]]
name = "own.Told"
"""


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.setattr(own, "things", own.nothing())
    (tmp_path / "told.py").write_text(FILE)
    load(tmp_path / "told.py")
    (tmp_path / "told.toml").write_text(SWEEP)
    return tmp_path


def test_a_learner_of_ones_own_is_told_the_heads_in_a_sweep(told):
    figure, scale = read(told / "told.toml")
    records = lab.run(figure, scale, engine=SerialEngine()).records
    assert len(records) == 2
    # the projections of a noise-free layer follow exactly from its heads, of which each replicate has its own
    assert records.column("relative_error").max() < 1e-20
    assert {row["learner.theta"] for row in records} == {"task.Theta"}


def test_it_enters_the_arena_and_the_planner(told):
    comparison = lab.arena(["mha.layer"], ["own.Told"], n=[100], seeds=1, engine=SerialEngine())
    assert comparison.error("mha.layer", "own.Told").value < 1e-20
    law = {"task.d": 4, "task.k": 3, "task.n_heads": 2}
    found = lab.plan("mha.Task", 1e-6, learners=["own.Told"], set=law, seeds=2, engine=SerialEngine())
    assert found.needs[0].measured.value <= 16
