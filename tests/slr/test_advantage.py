import numpy as np
import pytest
from scipy import integrate, special

from attnlab.slr import theory

# Monte Carlo values with three digits: spiked law, columns L, nu, softmax, softplus, erf
SPIKED = [(2, 1.0, 0.3249, 0.329, 0.398), (3, 5.0, 0.1452, 0.195, 0.262), (5, 10.0, 0.0625, 0.182, 0.160)]


@pytest.mark.parametrize(("L", "nu", "softmax", "softplus", "erf"), SPIKED)
def test_best_attention_of_each_kind(L, nu, softmax, softplus, erf):
    for kind, known in (("softmax", softmax), ("softplus", softplus), ("offset_erf", erf)):
        found = theory.attention_risk(kind, nu=nu, L=L)
        assert found.converged
        assert found == pytest.approx(known, abs=2e-3)


def test_bayes_risk_of_two_tokens_is_a_one_dimensional_integral():
    for nu in (1.0, 5.0, 12.0):

        def integrand(g, nu=nu):
            return special.expit(-(nu + np.sqrt(2 * nu) * g)) * np.exp(-0.5 * g * g) / np.sqrt(2 * np.pi)

        direct = integrate.quad(integrand, -12, 12, epsabs=1e-12, limit=200)[0]
        assert theory.bayes_attention_risk(nu=nu, L=2) == pytest.approx(direct, abs=1e-9)


def test_bayes_risk_decays_exponentially_in_the_strength():
    nu, L = 150.0, 4
    asymptotic = (L - 1) * np.sqrt(np.pi) / (2 * np.sqrt(nu)) * np.exp(-nu / 4)
    # relative corrections are of order 1/nu
    assert theory.bayes_attention_risk(nu=nu, L=L) == pytest.approx(asymptotic, rel=0.05)


@pytest.mark.parametrize("law", ["spiked", "max"])
@pytest.mark.parametrize("nu", [0.7, 3.0])
def test_softmax_at_the_bayes_scale_and_linear_against_monte_carlo(law, nu):
    rng = np.random.default_rng(0)
    chi = rng.standard_normal((300_000, 4))
    if law == "spiked":
        chi[:, 0] += np.sqrt(nu)
        place = np.zeros(len(chi), dtype=int)
    else:
        place = np.argmax(nu * chi + rng.gumbel(size=chi.shape), axis=1)
    rows = np.arange(len(chi))
    p = special.softmax((np.sqrt(nu) if law == "spiked" else nu) * chi, axis=1)
    # E[1 - p_eps] is the Bayes risk; its draws lie in [0, 1]: four standard errors are below 4 * 0.5 / sqrt(3e5)
    assert theory.bayes_attention_risk(nu=nu, L=4, law=law) == pytest.approx(1 - p[rows, place].mean(), abs=4e-3)
    m = theory.attention_risk("linear", nu=nu, L=4, law=law).detail["scale"]
    sigma = 1 + m * chi
    direct = 1 - sigma[rows, place].mean() ** 2 / np.sum(sigma**2, axis=1).mean()
    assert theory.linear_attention_risk(nu=nu, L=4, law=law) == pytest.approx(direct, abs=6e-3)


def test_linear_attention_knows_only_the_mean_length_and_loses_on_the_max_law():
    assert theory.linear_attention_risk(nu=5.0, lengths=(1, 2, 3)) == pytest.approx(2 / 9)
    for L, known in ((2, 0.340845), (3, 0.427934), (5, 0.529503), (10, 0.663224)):
        assert theory.linear_attention_risk(nu=np.inf, L=L, law="max") == pytest.approx(known, abs=1e-6)
        assert theory.bayes_attention_risk(nu=np.inf, L=L, law="max") == 0


def test_softmax_keeps_the_average_over_random_lengths():
    mixed = theory.bayes_attention_risk(nu=5.0, lengths=(1, 2, 3))
    each = [theory.bayes_attention_risk(nu=5.0, L=L) for L in (2, 3)]
    assert mixed == pytest.approx(sum(each) / 3)


def test_erf_under_the_max_law():
    for L, known in ((2, 0.333), (5, 0.445)):
        assert theory.attention_risk("offset_erf", nu=np.inf, L=L, law="max") == pytest.approx(known, abs=2e-3)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="activation must be one of"):
        theory.attention_risk("hardmax", nu=1.0)
    with pytest.raises(ValueError, match="nu must be"):
        theory.bayes_attention_risk(nu=-1.0)
    with pytest.raises(ValueError, match="nu must be inf for normalised weights"):
        theory.attention_risk("softplus", nu=1.0, law="max")
