"""The ends of the parameters' ranges, where a formula is easily wrong."""

import numpy as np
import pytest
from scipy import integrate, special

from attnlab import slr
from attnlab.slr import theory
from attnlab.slr.laws.integrals import Exponential


@pytest.mark.parametrize("nu", [0.3, 0.99, 1.0, 20.0, 200.0, 800.0, 1e6])
def test_bayes_risk_of_the_max_law_for_two_tokens_at_every_strength(nu):
    # p_1 p_2 = sigma(y) sigma(-y), y = nu (chi_1 - chi_2): one dimension, on the scale of y
    def integrand(y):
        density = np.exp(-((y / nu) ** 2) / 4) / np.sqrt(4 * np.pi) / nu
        return 2 * special.expit(y) * special.expit(-y) * density

    exact = integrate.quad(integrand, -60, 60, epsabs=0, epsrel=1e-11, limit=300, points=[-5, 0, 5])[0]
    found = theory.bayes_attention_risk(nu=nu, L=2, law="max")
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert found.error <= 1e-9 * exact * 1.01


def test_bayes_risk_of_the_max_law_tends_to_its_asymptote():
    # the density at zero of the gap between the two largest of L Gaussians, over nu
    L, nu = 5, 1e5
    x = np.arange(-9, 9, 0.01)
    phi = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    gap = L * (L - 1) * 0.01 * np.sum(phi**2 * special.ndtr(x) ** (L - 2))
    assert theory.bayes_attention_risk(nu=nu, L=L, law="max").value == pytest.approx(gap / nu, rel=1e-4)


def test_the_grid_does_not_grow_with_the_strength():
    assert Exponential(1e6).nodes.size <= Exponential(1.0).nodes.size


@pytest.mark.parametrize("nu", [150.0, 600.0])
def test_exponentially_small_bayes_risk_keeps_its_relative_accuracy(nu):
    centre = -np.sqrt(nu / 2)

    def integrand(g):
        return special.expit(-(nu + np.sqrt(2 * nu) * g)) * np.exp(-0.5 * g * g) / np.sqrt(2 * np.pi)

    exact = integrate.quad(integrand, centre - 12, centre + 30, epsabs=0, epsrel=1e-11, limit=500)[0]
    assert theory.bayes_attention_risk(nu=nu, L=2).value == pytest.approx(exact, rel=1e-9)


def test_the_flow_refuses_times_that_are_not_in_order():
    start = theory.initial_overlaps(50, 1, seed=0)
    with pytest.raises(ValueError, match="times must be non-negative and increasing"):
        theory.gradient_flow(start, [2.0, 1.0], d=50, L=4, lam=0.2)
    flow = theory.gradient_flow(start, [0.0, 1.0], d=50, L=4, lam=0.2)
    assert 0 < flow.error < 1e-4


@pytest.mark.parametrize("overlaps", [[1, 1, 1, 1, 1], [0.9, 0, 0, 0.9, 0], [0.9, 0.9, 0, 0, 0.9]])
def test_overlaps_that_no_vectors_have_are_refused(overlaps):
    law = {"d": 50, "L": 4, "lam": 0.2, "step": 1e-3, "n_steps": 1}
    for iterate in (theory.gradient_descent, slr.simulate_sgd):
        with pytest.raises(ValueError, match="overlaps must be those of unit vectors"):
            iterate(overlaps, **law)


def test_overlaps_of_vectors_pass_in_single_precision_too():
    start = theory.initial_overlaps(50, 200, seed=0).astype(np.float32)
    planted = np.array([[1, 1, 0, 0, 0], [-1, -1, 0, 0, 0], [0, 0, 1, 1, 0]], dtype=np.float32)
    path = theory.gradient_descent(np.concatenate([start, planted]), d=50, L=4, lam=0.2, step=1e-3, n_steps=1)
    assert path.dtype == np.float64


def test_single_precision_overlaps_are_computed_in_double_precision():
    state = np.array([0.3, 0.4, 0.1, 0.2, 0.05], dtype=np.float32)
    exact = theory.risk(*map(float, state), d=100, L=10, lam=0.3)
    found = theory.risk(*state, d=100, L=10, lam=0.3)
    assert found.value == exact.value
    gradient = theory.risk_gradient(*state, d=100, L=10, lam=np.float32(0.25))
    assert all(np.asarray(part).dtype == np.float64 for part in gradient)


def test_one_token_is_a_law():
    task = slr.Task(30, 1, noise_std=0.1, seed=2)
    X, y = task.sample(100_000, seed=0)
    k, v = task.k_star, task.v_star
    losses = (y - special.erf(0.3 * (X @ k)[:, 0]) * (X @ v)[:, 0]) ** 2
    assert abs(losses.mean() - theory.oracle_risk(task, lam=0.3)) < 4 * losses.std() / np.sqrt(len(y))
    # the only token is read exactly by a linear predictor, and by Bayes
    assert theory.linear_risk(task) == pytest.approx(0.01)
    assert theory.bayes_risk(task, n_draws=10) == pytest.approx(0.01)
    assert theory.linear_risk(L=1, gamma=0.7) == pytest.approx(0.0)
