"""First-order transitions and the free entropy behind them."""

import numpy as np
import pytest

from attnlab.smi import theory
from attnlab.smi.links import as_link
from attnlab.smi.theory.free_entropy import log_evidence
from attnlab.smi.theory.gains import points_of


def test_phase_retrieval_has_a_hard_phase():
    found = theory.transitions("phase_retrieval")
    assert found.converged
    assert abs(found.alg - 1.12847) < 2e-3  # quadrature
    assert abs(found.it - 1) < 3e-3  # counting: as many equations as unknowns


def test_noisy_phase_retrieval_has_three_transitions():
    found = theory.transitions("phase_retrieval(noise=0.001)")
    # Closed form of the branch and Maxwell's rule, computed independently.
    assert (np.abs(found - [1.1241, 1.1302, 1.1375]) < [2e-3, 3e-3, 2e-3]).all()


@pytest.mark.parametrize("link", ["attention", pytest.param("phase_retrieval(noise=0.01)", marks=pytest.mark.slow)])
def test_a_monotone_branch_has_none(link):
    with pytest.warns(UserWarning, match="no first-order transition"):
        found = theory.transitions(link, draws=2**11)
    assert not found.converged
    assert np.isnan(found).all()


@pytest.mark.slow
def test_the_free_entropy_jumps_at_the_transition():
    # Both stable branches at alpha_IT of the noisy link: equal free entropy.
    found = theory.transitions("phase_retrieval(noise=0.001)")
    link, alpha = "phase_retrieval(noise=0.001)", found.it
    low, high = (theory.state_evolution(link, alpha, q, draws=2**12).Q for q in ([[0.6]], [[0.99]]))
    assert high - low > 0.05
    one, two = (theory.free_entropy(link, alpha, Q, draws=2**12) for Q in (low, high))
    assert abs(float(one) - float(two)) < 4 * np.hypot(one.error, two.error)


def test_free_entropy_of_the_linear_link():
    q, delta = 0.729844, 0.1
    exact = 0.5 * (q + np.log(1 - q)) + 0.5 * np.log((1 + delta) / (1 - q + delta))
    assert float(theory.free_entropy("linear(noise=0.1)", 1.0, q)) == pytest.approx(exact, abs=1e-8)
    entropy = -0.5 * np.log(2 * np.pi * np.e * (1 + delta))
    absolute = theory.free_entropy("linear(noise=0.1)", 1.0, q, absolute=True)
    assert float(absolute) == pytest.approx(exact + entropy, abs=1e-8)


@pytest.mark.parametrize(
    ("link", "Q"),
    [
        ("sign_committee", [[0.5, 0.26], [0.26, 0.5]]),
        ("attention", [[0.7]]),
        pytest.param("deep_attention", [[0.3, 0.0], [0.0, 0.6]], marks=pytest.mark.slow),
        pytest.param("product", [[0.3, 0.1], [0.1, 0.6]], marks=pytest.mark.slow),
    ],
)
def test_the_path_integral_is_the_mean_log_evidence(link, Q):
    """Two ways for several directions: the gradient along a path, and E log Z at its ends."""
    Q, alpha = np.array(Q), 0.8
    points = points_of(as_link(link), 2**10, 8, "direct")
    direct = log_evidence(as_link(link), Q, points) - log_evidence(as_link(link), 0 * Q, points)
    path = theory.free_entropy(link, alpha, Q, draws=2**10, steps=12)
    prior = 0.5 * (np.trace(Q) + np.linalg.slogdet(np.eye(len(Q)) - Q)[1])
    error = np.hypot(path.error, alpha * direct.std(ddof=1) / np.sqrt(8))
    assert abs(float(path) - prior - alpha * direct.mean()) < 4 * error


def test_a_fixed_point_is_stationary():
    at = theory.state_evolution("attention", 0.4)
    values = [float(theory.free_entropy("attention", 0.4, at.Q + h, steps=12)) for h in (-0.1, 0.0, 0.1)]
    assert values[1] > max(values[0], values[2])


@pytest.mark.parametrize("bounds", [(0.5, 0.2), (0.0, 0.5), (0.1, 1.0)])
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="bounds must be overlaps"):
        theory.transitions("sign", bounds)


def test_several_directions_need_a_branch():
    with pytest.raises(ValueError, match="direction must be a vector"):
        theory.transitions("sign_committee")
