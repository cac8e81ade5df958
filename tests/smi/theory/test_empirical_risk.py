"""Empirical risk: ridge in closed form, logistic regression by simulation, positional against semantic attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from attnlab.smi import Task, theory


def square(y, x):
    return 0.5 * jnp.sum((y - x) ** 2)


def sum_square(y, x):
    return 0.5 * jnp.sum((y[:, 0] - x.sum(axis=1)) ** 2)


def logistic(y, x):
    return jax.nn.softplus(-y * x[0, 0])


def test_ridge_with_the_noise_as_penalty_is_bayes_optimal():
    found = theory.erm_state_evolution("linear(noise=0.1)", square, 1.0, 0.1, tol=1e-9)
    assert found.converged
    assert found.value[0, 0] == pytest.approx(0.7298437881, abs=1e-6)
    assert found.q[0, 0] == pytest.approx(0.7298437881, abs=1e-6)


def test_a_student_of_another_rank():
    # The sum of two directions is fitted: the ridge makes them equal, and their sum is ridge with half the penalty.
    options = {"draws": 2**9, "replicates": 2, "tol": 1e-8}
    found = theory.erm_state_evolution("linear(noise=0.1)", sum_square, 1.0, 0.2, rank=2, **options)
    alone = theory.erm_state_evolution("linear(noise=0.1)", square, 1.0, 0.1, **options)
    np.testing.assert_allclose(found, alone.value[0, 0] / 2, atol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("ridge", 0.0), ("damping", 1.0), ("draws", 0)])
def test_bad_input_is_refused(name, value):
    options = {"alpha": 1.0, "ridge": 0.1} | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be"):
        theory.erm_state_evolution("linear", square, **options)


def test_logistic_regression_against_a_fit():
    alpha, ridge, d = 2.0, 0.1, 400
    found = theory.erm_state_evolution("sign", logistic, alpha, ridge, draws=2**10, replicates=4)
    assert found.converged
    overlaps = []
    for seed in range(4):
        task = Task("sign", d=d, seed=seed)
        X, y = task.sample(task.n_samples(alpha), seed)
        A = X[:, 0] / np.sqrt(d)

        def risk(w, A=A, y=y):
            margin = y * (A @ w)
            slope = -A.T @ (y * expit(-margin)) + ridge * w
            return np.logaddexp(0, -margin).sum() + 0.5 * ridge * w @ w, slope

        w = minimize(risk, np.zeros(d), jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "maxiter": 2000}).x
        overlaps.append([w @ task.W[0] / d, w @ w / d])
    mean, error = np.mean(overlaps, axis=0), np.std(overlaps, axis=0, ddof=1) / 2
    # Four standard errors of the mean over four fits, which themselves are known to 40 %; a shift of order 1/d.
    assert (np.abs(mean - [found.value[0, 0], found.q[0, 0]]) < 6 * error + 5 / d).all()


def test_a_loss_of_several_numbers_is_refused():
    with pytest.raises(ValueError, match="loss must return a scalar"):
        theory.erm_state_evolution("linear", lambda y, x: (y - x) ** 2, 1.0, 0.1)


def test_a_loss_of_one_argument_is_named():
    with pytest.raises(ValueError, match=r"loss fails on one sequence.*takes 1 positional argument"):
        theory.erm_state_evolution("linear", lambda y: y, 1.0, 0.1)


def test_a_tilted_link_is_refused():
    with pytest.raises(ValueError, match="needs Gaussian tokens"):
        theory.erm_state_evolution("single_location", square, 1.0, 0.1)


ROWS = [
    # start, alpha, half the squared error of an entry, overlaps; 12^4 Gauss-Hermite nodes, an independent program
    ("semantic", 2.0, 0.00141, {"q": 0.1147, "V": 12.71, "theta": 0.1580}, 0.02),
    ("semantic", 1.679, 0.00180, {"q": 0.0999, "theta": 0.1413}, 0.04),
    ("positional", 2.0, 0.00347, {"q": 0.0510, "m": 0.2583, "V": 11.34}, 0.02),
]


@pytest.mark.parametrize(("start", "alpha", "half", "overlaps", "tolerance"), ROWS[:1])
def test_semantic_minimum(start, alpha, half, overlaps, tolerance):
    found = theory.positional_semantic(alpha, start, nodes=6, tol=1e-4)
    assert found.converged
    assert float(found) / 2 == pytest.approx(half, rel=tolerance)
    for name, value in overlaps.items():
        assert getattr(found, name) == pytest.approx(value, rel=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(("start", "alpha", "half", "overlaps", "tolerance"), ROWS)
def test_semantic_and_positional_minima(start, alpha, half, overlaps, tolerance):
    found = theory.positional_semantic(alpha, start, tol=1e-4)
    assert float(found) / 2 == pytest.approx(half, rel=tolerance)
    for name, value in overlaps.items():
        assert getattr(found, name) == pytest.approx(value, rel=tolerance)


def test_positions_must_be_probabilities():
    with pytest.raises(ValueError, match="rows that are probabilities"):
        theory.positional_semantic(1.0, positions=[[0.5, 0.4], [0.5, 0.5]])
