"""The scalar branch alpha(q) against independent values."""

import numpy as np
import pytest
from scipy import stats

from attnlab.smi import theory


def known_up_to_a_sign(q, tokens):
    """alpha(q) where y shows z up to one sign: an integral over |z| and the noise of the estimate along z.

    V^2 E|g|^2 = E|z|^2 tanh^2(z.omega / V) - T q, since E z.omega tanh(z.omega / V) = E|omega|^2 = T q.
    """
    noise, weight = np.polynomial.hermite_e.hermegauss(120)
    r = np.linspace(0, 12, 4001)[:, None]
    V = 1 - q
    square = (r * np.tanh((q * r**2 + np.sqrt(q * V) * r * noise) / V)) ** 2
    mean = stats.chi(tokens).pdf(r[:, 0]) @ (square @ weight) * (r[1, 0] - r[0, 0]) / weight.sum()
    return q * V / (mean - tokens * q)


@pytest.mark.parametrize(("link", "tokens"), [("phase_retrieval", 1), ("attention", 2), ("attention(tokens=3)", 3)])
def test_the_branch_is_an_integral_in_two_variables(link, tokens):
    q = [0.04515, 0.12412, 0.59201]  # the first two had been computed in one way only
    found = theory.curve(link, q, draws=2**12)
    exact = np.array([known_up_to_a_sign(x, tokens) for x in q])
    assert (np.abs(found - exact) < 4 * found.error + 2e-4 * exact).all()


@pytest.mark.parametrize(("q", "tokens", "alpha"), [(0.12412, 1, 0.7), (0.04515, 2, 0.2), (0.59201, 2, 0.4)])
def test_reference_overlaps_in_a_second_way(q, tokens, alpha):
    assert known_up_to_a_sign(q, tokens) == pytest.approx(alpha, abs=2e-5)


@pytest.mark.parametrize(
    ("link", "q", "alpha"),
    [
        # Quadrature and Monte Carlo of E g^2, independent of this package.
        ("phase_retrieval", 0.8466, 1.12847),
        ("phase_retrieval", 1 - 1e-6, 1.0006),
        ("attention", 0.268, 0.3),
        ("attention", 0.592, 0.4),
        ("attention", 1 - 1e-6, 0.5),
        ("sign", 0.728298, 2.0),
    ],
)
def test_one_direction(link, q, alpha):
    found = theory.curve(link, q)
    assert found.converged
    assert abs(float(found) - alpha) < 3 * found.error + 5e-4


@pytest.mark.parametrize(("q", "alpha"), [(0.479897, 1.0), (0.703517, 2.0)])
def test_unspecialised_committee(q, alpha):
    # Quadrature; the public data of arXiv:1806.05451 have 0.47990 and 0.70352.
    found = theory.curve("sign_committee", q, [1, 1])
    assert abs(float(found) - alpha) < 3 * found.error + 2e-3 * alpha


@pytest.mark.slow
def test_second_layer_while_the_first_is_unknown():
    found = theory.curve("deep_attention", [0.2, 0.5, 0.8, 0.9], [0, 1], replicates=4)
    error = np.hypot(found.error, [5e-4, 6e-4, 4e-4, 2e-3])
    assert (np.abs(found - [0.2965, 0.4042, 0.5122, 0.573]) < 3 * error).all()


def test_a_coarse_grid_is_reported():
    with pytest.warns(UserWarning, match="not resolved"):
        found = theory.curve("deep_attention(skip=0.0001)", 0.2, [0, 1], nodes=41, replicates=4)
    assert not found.converged
    assert np.isnan(float(found))


def test_a_direction_that_state_evolution_leaves_is_reported():
    with pytest.warns(UserWarning, match="not a branch"):
        found = theory.curve("sign_committee", [0.3], [1, 0], draws=2**9)
    assert not found.converged


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("attention", 1.0), "overlaps in \\(0, 1\\)"),
        (("attention", [0.2, 0.0]), "overlaps in \\(0, 1\\)"),
        (("sign_committee", 0.3), "direction must be a vector of length 2"),
        (("sign_committee", 0.3, [0, 0]), "not zero"),
        (("sign_committee", 0.3, [1, 0, 0]), "vector of length 2"),
    ],
)
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        theory.curve(*arguments)
