import jax
import numpy as np

from attnlab import mha
from attnlab.mha.engine import device
from attnlab.mha.engine import variable_projection as varpro
from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.normal_equations import normal_equations
from attnlab.mha.layer import rows_of


def test_the_compiled_equations_are_those_of_blas():
    task = mha.Task(d=4, k=3, n_heads=2, d_out=3, tokens_law="gaussian")
    rows = rows_of(*task.sample(50))
    theta = task.Theta + 0.1
    fit = varpro.regress(rows, theta)
    expected = normal_equations(rows, theta, fit)
    with jax.enable_x64(True):
        placed = device.place(rows, 2)
        w, factor, error = device.regress(placed, theta)
        H, g = device.normal_equations(placed, theta, w, factor)
    assert abs(float(error) - fit.nmse(rows.Y)) < 1e-12
    assert np.abs(np.asarray(H) - expected.H).max() < 1e-9 * np.abs(expected.H).max()
    assert np.abs(np.asarray(g) - expected.g).max() < 1e-9


def test_padding_adds_nothing():
    task = mha.Task(d=3, k=2, n_heads=1, tokens_law="gaussian")
    rows = rows_of(*task.sample(20))
    with jax.enable_x64(True):
        whole = device.place(rows, 1)
        padded = device.Chunked(*(np.concatenate([part, 0 * part]) for part in map(np.asarray, whole)))
        a, b = (device.regress(part, task.Theta + 0.1) for part in (whole, padded))
        first, second = (device.normal_equations(p, task.Theta + 0.1, r[0], r[1]) for p, r in ((whole, a), (padded, b)))
    assert np.allclose(first[0], second[0])


def test_a_layer_is_recovered_on_the_device():
    task = mha.Task(d=6, k=3, n_heads=2, rho=2.0)
    start = 0.5 * np.random.default_rng(0).standard_normal((2, 6, 6)) / 6
    fit = device.levenberg_marquardt_on_device(rows_of(*task.sample(300)), start)
    assert fit.converged
    assert mha.align(fit.theta, fit.w, task.Theta, task.W).theta_error < 1e-8


def test_compilation_moves_the_deadline():
    rows = rows_of(*mha.Task(d=5, k=3, n_heads=2, rho=2.0).sample(100))  # a shape that no other test compiles
    start = 0.5 * np.random.default_rng(1).standard_normal((2, 5, 5)) / 5
    moved = []
    for _ in range(2):
        budget = Budget.of(100.0)
        before = budget.deadline
        device.levenberg_marquardt_on_device(rows, start, budget=budget, max_iter=2)
        moved.append(budget.deadline - before)
    assert moved[0] > 10 * moved[1]
