from itertools import pairwise

import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.engine import normal_equations as gauss_newton
from attnlab.mha.engine import variable_projection as varpro
from attnlab.mha.engine.levenberg_marquardt import levenberg_marquardt
from attnlab.mha.layer import rows_of


@pytest.fixture(params=[(2, 4, 3, 3), (3, 3, 2, 5), (1, 5, 4, 1)], ids=str)
def problem(request):
    m, d, k, o = request.param
    task = mha.Task(d=d, k=k, n_heads=m, d_out=o, tokens_law="gaussian", rho=2.0)
    rows = rows_of(*task.sample(60))
    theta = task.Theta + 0.1 * np.random.default_rng(0).standard_normal(task.Theta.shape)
    return rows, theta


def jacobian(rows, theta, w):
    """Derivative of the outputs by finite differences, (rows, outputs, unknowns)."""
    step, columns = 1e-6, []
    for index in np.ndindex(theta.shape):
        moved = [theta.copy(), theta.copy()]
        moved[0][index] += step
        moved[1][index] -= step
        plus, minus = (rows.Y - varpro.residual(rows, t, w) for t in moved)
        columns.append((plus - minus) / (2 * step))
    return np.stack(columns, axis=-1)


def test_regression_is_least_squares(problem):
    rows, theta = problem
    fit = varpro.regress(rows, theta)
    w = np.linalg.lstsq(varpro.mean_keys(rows, theta), rows.Y, rcond=None)[0]
    assert np.abs(fit.W.reshape(w.shape) - w).max() < 1e-10
    assert np.abs(fit.residual - varpro.residual(rows, theta, fit.W)).max() < 1e-12


def test_normal_equations_are_the_projected_jacobian_product(problem):
    rows, theta = problem
    fit = varpro.regress(rows, theta)
    equations = gauss_newton.normal_equations(rows, theta, fit)
    J = jacobian(rows, theta, fit.W)
    Z = varpro.mean_keys(rows, theta)
    left = J - np.einsum("rq,qou->rou", Z @ np.linalg.pinv(Z), J)
    scale = np.abs(equations.H).max()
    # central differences of step 1e-6 are good to about 1e-9, and the ridge of 1e-10 enters H
    assert np.abs(equations.H - np.einsum("rou,rov->uv", left, left)).max() < 1e-7 * scale
    assert np.abs(equations.g - np.einsum("rou,ro->u", J, fit.residual)).max() < 1e-6


def test_equations_in_a_span_are_the_restriction(problem):
    rows, theta = problem
    m, d, _ = theta.shape
    basis = np.random.default_rng(1).standard_normal((2, d, d))
    fit = varpro.regress(rows, theta)
    full, small = (
        gauss_newton.normal_equations(rows, theta, fit),
        gauss_newton.normal_equations_in(rows, theta, fit, basis),
    )
    E = np.kron(np.eye(m), basis.reshape(2, -1).T)
    assert np.allclose(E.T @ full.H @ E, small.H, rtol=1e-8, atol=1e-8 * np.abs(small.H).max())
    assert np.allclose(E.T @ full.g, small.g, atol=1e-9)


def test_chunks_do_not_change_the_sums(problem, monkeypatch):
    rows, theta = problem
    fit = varpro.regress(rows, theta)
    whole = gauss_newton.normal_equations(rows, theta, fit)
    monkeypatch.setattr(gauss_newton, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(gauss_newton, "_CHUNK_ROWS", 7)
    parts = gauss_newton.normal_equations(rows, theta, fit)
    assert np.allclose(whole.H, parts.H, atol=1e-10 * np.abs(whole.H).max())


def test_threads_do_not_change_the_sums(problem, monkeypatch):
    rows, theta = problem
    fit = varpro.regress(rows, theta)
    monkeypatch.setattr(gauss_newton, "_ROWS_OF_A_THREAD", 10)
    sums = []
    for threads in (1, 3):
        monkeypatch.setattr(gauss_newton, "thread_count", lambda threads=threads: threads)
        sums.append(gauss_newton.normal_equations(rows, theta, fit))
    assert np.allclose(sums[0].H, sums[1].H, atol=1e-12 * np.abs(sums[0].H).max())
    assert np.allclose(sums[0].g, sums[1].g, atol=1e-12 * np.abs(sums[0].g).max())


@pytest.mark.parametrize("instance", range(5))
def test_levenberg_marquardt_recovers_a_generic_layer_in_few_steps(instance):
    task = mha.Task(d=8, k=4, n_heads=2, rho=4.0, seed=instance)
    rows = rows_of(*task.sample(300, seed=100 + instance))
    start = 0.5 * np.random.default_rng(instance).standard_normal((2, 8, 8)) / 8
    fit = levenberg_marquardt(rows, start)
    assert fit.n_iter <= 15
    assert fit.converged
    assert task.nmse(fit.theta, fit.w) < 1e-18


def test_the_error_never_rises(problem):
    rows, theta = problem
    history = levenberg_marquardt(rows, theta, max_iter=10).history
    assert all(b < a for a, b in pairwise(history))


def test_a_restricted_fit_stays_in_its_span():
    task = mha.Task(d=5, k=3, n_heads=2)
    rows = rows_of(*task.sample(200))
    basis = np.linalg.qr(task.Theta.reshape(2, -1).T)[0].T.reshape(2, 5, 5)
    fit = levenberg_marquardt(rows, 0.5 * task.Theta[::-1] + 0.7 * task.Theta, basis=basis)
    assert mha.span_error(basis, fit.theta) < 1e-7
    assert fit.nmse < 1e-16


def test_a_spent_budget_stops_the_fit():
    task = mha.Task(d=4, k=3, n_heads=1)
    rows = rows_of(*task.sample(100))
    fit = levenberg_marquardt(rows, np.ones((1, 4, 4)), deadline=0.0)
    assert fit.n_iter == 0
    assert not fit.converged
