"""Steps by conjugate gradients against the equations that they never write."""

import time

import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.engine import iterated, variable_projection
from attnlab.mha.engine.levenberg_marquardt import levenberg_marquardt
from attnlab.mha.engine.normal_equations import normal_equations
from attnlab.mha.layer import rows_of


def near(m, d, k, n, seed=0):
    task = mha.Task(d=d, k=k, n_heads=m, tokens_law="gaussian", seed=seed)
    rows = rows_of(*task.sample(n))
    theta = task.Theta + 0.1 * np.random.default_rng(seed).standard_normal(task.Theta.shape)
    return task, rows, theta


def test_products_are_those_of_the_dense_equations(monkeypatch):
    monkeypatch.setattr(variable_projection, "_CHUNK_BYTES", 8000)  # several chunks
    m, d = 2, 5
    _, rows, theta = near(m, d, 3, 80)
    fit = variable_projection.regress(rows, theta)
    dense, at = normal_equations(rows, theta, fit), iterated.Linearised(rows, theta, fit)
    v = np.random.default_rng(1).standard_normal((m, d, d))
    image = at.product(v.transpose(1, 0, 2).reshape(d, m * d)).reshape(d, m, d).transpose(1, 0, 2)
    expected = (dense.H @ v.ravel()).reshape(m, d, d)
    assert len(at.parts) > 1
    assert np.abs(image - expected).max() < 1e-10 * np.abs(expected).max()
    slope = at.slope.reshape(d, m, d).transpose(1, 0, 2).ravel()
    assert np.abs(slope - dense.g).max() < 1e-9 * np.abs(dense.g).max()


def test_both_ways_find_the_same_layer():
    _, rows, theta = near(2, 8, 4, 300)
    dense, ours = levenberg_marquardt(rows, theta), iterated.iterated_levenberg_marquardt(rows, theta)
    assert ours.converged
    assert ours.nmse < 1e-20
    assert np.abs(ours.theta - dense.theta).max() < 1e-8


def test_the_size_of_the_layer_decides(monkeypatch):
    _, rows, theta = near(2, 4, 3, 60)
    chosen = []
    for name in ("levenberg_marquardt", "iterated_levenberg_marquardt"):
        original = getattr(iterated, name)
        monkeypatch.setattr(iterated, name, lambda *a, n=name, f=original, **b: chosen.append(n) or f(*a, **b))
    for large in (theta.size + 1, theta.size):
        monkeypatch.setattr(iterated, "LARGE", large)
        assert iterated.fit_rows(rows, theta, max_iter=2).n_iter == 2
    assert chosen == ["levenberg_marquardt", "iterated_levenberg_marquardt"]


@pytest.mark.slow
def test_two_heads_of_width_48_are_recovered_in_two_minutes():
    task = mha.Task(d=48, k=4, n_heads=2)
    begun = time.process_time()
    learner = mha.AttentionLearner(2, starts=("random",), random_state=0).fit(*task.sample(1000))
    assert time.process_time() - begun < 120
    assert learner.converged_
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-8
