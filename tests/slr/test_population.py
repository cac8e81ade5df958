import numpy as np
import pytest

from attnlab.slr import Task, theory

# Excess risks of arXiv:2410.01537's law (gamma^2 = 1/2, no noise) at lam = (dL)^(-1/4) and at the best lam
REFERENCES = [
    (80, 10, 0.384241, 0.09248, 0.181841),
    (400, 10, 0.175748, 0.06377, 0.067102),
    (6400, 10, 0.044941, 0.02404, 0.008106),
    (1000, 30, 0.210895, 0.03808, 0.079683),
]


@pytest.mark.parametrize(("d", "L", "at_rule", "best_lam", "best_risk"), REFERENCES)
def test_oracle_risk_and_best_temperature(d, L, at_rule, best_lam, best_risk):
    assert theory.oracle_risk(d=d, L=L, lam=(d * L) ** -0.25) == pytest.approx(at_rule, abs=1e-6)
    best = theory.best_temperature(d=d, L=L)
    assert best.converged
    assert best.value == pytest.approx(best_lam, abs=1e-5)
    assert theory.oracle_risk(d=d, L=L, lam=best.value) == pytest.approx(best_risk, abs=1e-6)


# excess and its standard error from 10^6 draws
@pytest.mark.parametrize(("d", "excess", "error"), [(3, 0.3756, 7e-4), (10, 0.1091, 5e-4), (20, 0.01153, 1.6e-4)])
def test_bayes_risk(d, excess, error):
    estimate = theory.bayes_risk(d=d, L=10, n_draws=100_000, seed=1)
    # four standard errors of the difference
    assert abs(estimate - excess) < 4 * np.hypot(estimate.error, error)


def test_bayes_risk_is_that_of_the_posterior_mean():
    task = Task(d=6, L=4, gamma=0.6, noise_std=0.3)
    X, y = task.sample(60_000, seed=3)
    losses = (y - np.sum(task.posterior(X) * (X @ task.v_star), axis=1)) ** 2
    estimate = theory.bayes_risk(d=6, L=4, gamma=0.6, noise_std=0.3, n_draws=60_000)
    # four standard errors; those of the direct losses dominate
    assert abs(losses.mean() - estimate) < 4 * losses.std() / np.sqrt(len(losses)) + 2 * estimate.error


def test_linear_risk_is_that_of_the_stated_coefficients_and_tends_to_null():
    task = Task(d=5, L=4, noise_std=0.2)
    X, y = task.sample(200_000, seed=0)
    prediction = 0.5 / 3.5 * np.sum(X @ task.v_star, axis=1)
    losses = (y - prediction) ** 2
    assert abs(losses.mean() - theory.linear_risk(L=4, noise_std=0.2)) < 4 * losses.std() / np.sqrt(len(losses))
    assert theory.linear_risk(L=1e9) == pytest.approx(theory.null_risk().value, abs=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.risk(2.0, 0, 0, 0, 0, d=4, L=2, lam=0.1), "kappa must be in"),
        (lambda: theory.risk(np.nan, 0, 0, 0, 0, d=4, L=2, lam=0.1), "kappa contains NaN"),
        (lambda: theory.risk(0, 0, 0, 0, 0, d=4, L=0, lam=0.1), "L must be an integer >= 1"),
        (lambda: theory.risk(0, 0, 0, 0, 0, d=4, L=2, lam=0.0), "lam must be positive"),
        (lambda: theory.risk(0, 0, 0, 0, 0, d=4, L=2, lam=0.1, gamma=-1.0), "gamma must be"),
        (lambda: theory.linear_risk(L=0), "L must be an integer >= 1"),
        (lambda: theory.bayes_risk(d=4, L=2, n_draws=1), "n_draws must be"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
