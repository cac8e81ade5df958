import pytest

from attnlab.slr import theory

# an independent evaluation with 2e4 to 4e4 random draws (L = 3, noise variance 0.01)
BAYES = [
    (1.0, 1.0, 0.335, 0.450, 0.818),
    (2.0, 2.0, 0.784, 0.986, 0.411),
    (5.0, 1.0, 0.817, 0.806, 0.347),
    (2.0, 20.0, 0.974, 0.999, 0.359),
]
ERM = [
    ("softmax", 2.0, 5.0, 0.496, 0.402, 0.801, 0.743, 0.552),
    ("linear", 2.0, 10.0, 0.509, 0.420, 0.305, 0.103, 0.592),
]


@pytest.mark.parametrize(("nu", "alpha", "q_k", "q_v", "error"), BAYES)
def test_bayes_optimal_fixed_points(nu, alpha, q_k, q_v, error):
    found = theory.bayes_state_evolution(alpha, nu=nu, L=3, noise_std=0.1)
    assert found.converged
    assert (found.detail["q_k"], found.detail["q_v"], found.value) == pytest.approx((q_k, q_v, error), abs=3e-3)


def test_two_fixed_points_in_the_hard_phase_and_one_beyond():
    low, high = theory.bayes_fixed_points(1.2, nu=1.0, L=3, noise_std=0.01)
    assert (low.value, high.value) == pytest.approx((0.754, 0.558), abs=5e-3)
    low, high = theory.bayes_fixed_points(1.6, nu=1.0, L=3, noise_std=0.01)
    assert low == pytest.approx(high.value, abs=1e-3)


def test_bayes_learning_tends_to_the_population_risk():
    limit = theory.bayes_attention_risk(nu=2.0, L=3)
    errors = [float(theory.bayes_state_evolution(alpha, nu=2.0, L=3, noise_std=0.1)) for alpha in (5.0, 50.0, 500.0)]
    # the excess over the limit falls like 1/alpha
    assert [alpha * (e - limit) for alpha, e in zip((50, 500), errors[1:], strict=True)] == pytest.approx(
        [5 * (errors[0] - limit)] * 2, rel=0.3
    )


@pytest.mark.slow
def test_hard_phase_lies_between_the_spinodals():
    found = theory.hard_phase(nu=1.0, L=3, noise_std=0.01)
    assert found.converged
    assert found.value[0] < 1.2 < 1.4 < found.value[1] + 0.05
    assert found.value[1] < 1.6


@pytest.mark.parametrize(("attention", "nu", "alpha", "m_k", "q_k", "m_v", "q_v", "error"), ERM)
def test_empirical_risk_minimisation(attention, nu, alpha, m_k, q_k, m_v, q_v, error):
    found = theory.erm_state_evolution(attention, alpha, nu=nu, L=3, noise_std=0.1, n_draws=2**12)
    assert found.converged
    # Monte Carlo error of both evaluations; the k-overlaps are the noisier
    assert (found.detail["m_v"], found.detail["q_v"], found.value) == pytest.approx((m_v, q_v, error), abs=0.015)
    assert (found.detail["m_k"], found.detail["q_k"]) == pytest.approx((m_k, q_k), abs=0.03)
    stopped = theory.erm_state_evolution(attention, alpha, nu=nu, L=3, noise_std=0.1, n_draws=2**12, max_iter=2)
    assert not stopped.converged
    assert stopped.detail["residual"] > 1e-5


@pytest.mark.parametrize("law_nu", [("max", 3.0), ("max", float("inf"))])
def test_erm_state_evolution_of_the_max_law_lies_between_bayes_and_null(law_nu):
    law, nu = law_nu
    found = theory.erm_state_evolution("softmax", 10.0, nu=nu, L=3, law=law, noise_std=0.1, n_draws=2**11)
    assert found.converged
    assert theory.bayes_attention_risk(nu=nu, L=3, law=law) < found < 1


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="alpha must be"):
        theory.bayes_state_evolution(0.0, nu=1.0, L=3, noise_std=0.1)
    with pytest.raises(ValueError, match="start must be one of"):
        theory.bayes_state_evolution(1.0, nu=1.0, L=3, noise_std=0.1, start="middle")
    with pytest.raises(ValueError, match="ridge_k must be"):
        theory.erm_state_evolution("softmax", 1.0, nu=1.0, L=3, noise_std=0.1, ridge_k=0.0)
