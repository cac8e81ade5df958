"""Overlaps against closed forms and independent values."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import slr
from attnlab.smi import Link
from attnlab.smi.links import named
from attnlab.smi.theory import generalization_error, state_evolution


def linear_overlap(alpha, delta):
    b = 1 + delta + alpha
    return (b - np.sqrt(b**2 - 4 * alpha)) / 2


def noisy(z, e):
    return z[0, 0] + np.sqrt(0.1) * e[0]


def noisy_density(y, z):
    return -0.5 * (y - z[0, 0]) ** 2 / 0.1


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_linear_link_by_two_routes(alpha):
    exact = linear_overlap(alpha, 0.1)
    closed = state_evolution("linear(noise=0.1)", alpha, tol=1e-12)
    assert closed.converged
    assert abs(closed.Q[0, 0] - exact) < 1e-9
    loose = state_evolution("linear(noise=0.1)", alpha)
    assert abs(loose.Q[0, 0] - exact) < 3 * loose.Q_error[0, 0]  # the error of an early stop is in the error bar
    grid = state_evolution(Link(1, 1, noise=1, sample=noisy, log_density=noisy_density), alpha, draws=2**10)
    assert grid.resolved
    assert abs(grid.Q[0, 0] - exact) < 2e-3


@pytest.mark.parametrize(
    ("link", "alpha", "overlap"),
    [
        ("phase_retrieval", 0.9, 0.33077),
        ("attention", 0.3, 0.26801),
        ("attention(tokens=3)", 0.2, 0.43701),
        ("sign", 1.0, 0.486264),
    ],
)
def test_overlaps_computed_by_quadrature_elsewhere(link, alpha, overlap):
    found = state_evolution(link, alpha, draws=2**12)
    assert found.converged
    assert found.resolved
    # Three standard errors over eight scrambles; 5e-4 where these happen to agree.
    assert abs(found.Q[0, 0] - overlap) < 3 * found.Q_error[0, 0] + 5e-4


def test_an_unlearned_direction_is_reported_as_zero():
    found = state_evolution("attention", 0.1)
    assert found.converged
    assert found.Q[0, 0] == 0


def test_starts_end_apart_where_the_problem_is_hard():
    hard = 1.05  # between the statistical threshold 1 and the algorithmic one 1.128 of phase retrieval
    assert state_evolution("phase_retrieval", hard, draws=2**12).Q[0, 0] < 0.8
    assert state_evolution("phase_retrieval", hard, "informed").Q[0, 0] > 1 - 1e-6


def test_exact_recovery_above_the_counting_bound():
    found = state_evolution("attention", 0.7, draws=2**10)
    assert found.converged
    assert found.V[0, 0] < 1e-6


def test_single_location_against_its_own_theory():
    found = state_evolution("single_location(tokens=3, nu=4.0, noise=0.1)", 2.0, draws=2**12)
    assert found.converged
    other = slr.theory.bayes_state_evolution(
        slr.Task(d=1000, L=3, gamma=1.0, nu=4.0, noise_std=np.sqrt(0.1)), 2.0
    ).detail
    np.testing.assert_allclose(np.diag(found.Q), [other["q_k"], other["q_v"]], atol=2e-3)


@pytest.mark.slow
def test_single_location_by_importance_sampling():
    link = replace(named("single_location(tokens=3, nu=4.0, noise=0.1)"), log_partition=None, name="", parameters=())
    found = state_evolution(link, 2.0, np.diag([0.8, 0.8]), draws=2**8, replicates=4, tol=1e-3)
    assert link.route == "points"
    assert found.converged
    np.testing.assert_allclose(np.diag(found.Q), [0.87457, 0.88317], rtol=0.02)  # of the closed form


def test_generalization_error_of_two_layers():
    for Q, plugin, bayes in [((0, 0), 0.3870, 0.3024), ((0, 0.2), 0.3504, 0.2947)]:
        for predictor, value in (("plug-in", plugin), ("bayes", bayes)):
            found = generalization_error("deep_attention", np.diag(Q), predictor=predictor)
            assert abs(found - value) < 4 * found.error + 3e-4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0.0,), "alpha must be a number in"),
        ((float("nan"),), "alpha must be a number in"),
        ((1.0, "begin"), "start must be 'uninformed', 'informed' or a matrix"),
        ((1.0, [[1.0]]), "eigenvalues in \\[0, 1\\)"),
        ((1.0, [[0.2, 0.0]]), "start must have shape"),
    ],
)
def test_bad_input_is_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        state_evolution("sign", *arguments)


@pytest.mark.parametrize("link", ["sign", "deep_attention"])
def test_a_rule_of_two_nodes_is_refused(link):
    with pytest.raises(ValueError, match="nodes must be an integer >= 3, got 2"):
        state_evolution(link, 1.0, nodes=2)


@pytest.mark.parametrize("damping", [-0.1, 1.0])
def test_a_damping_outside_its_range_is_refused(damping):
    with pytest.raises(ValueError, match="damping must be"):
        state_evolution("sign", 1.0, damping=damping)


def test_draws_are_rounded_up():
    with pytest.warns(UserWarning, match="rounded up to 128"):
        state_evolution("sign", 1.0, draws=100)


def narrow(y, z):
    return -0.5 * (y - jnp.sin(40 * z[0, 0])) ** 2 / 1e-8


def sine(z, e):
    return jnp.sin(40 * z[0, 0]) + 1e-4 * e[0]


def test_a_posterior_too_narrow_for_the_grid_is_not_a_number():
    link = Link(1, 1, noise=1, sample=sine, log_density=narrow)
    with pytest.warns(UserWarning, match="not resolved"):
        found = state_evolution(link, 1.0, draws=64)
    assert not found.resolved
    assert np.isnan(found.Q).all()


@pytest.mark.slow
def test_two_layers():
    below = state_evolution("deep_attention", 0.5, draws=2**9, replicates=4)
    assert below.converged
    assert below.Q[0, 0] == 0  # layer 1 is not learned
    assert abs(below.Q[1, 1] - 0.771) < 3 * below.Q_error[1, 1] + 5e-3
    between = state_evolution("deep_attention", 0.9, draws=2**10, replicates=4)
    assert 0.54 < between.Q[0, 0] < 0.65  # lost to underflow without the side information
    above = state_evolution("deep_attention", 1.2, draws=2**9, replicates=4)
    assert np.diagonal(above.V).max() < 1e-3


@pytest.mark.slow
def test_importance_sampling_ends_at_its_noise():
    """Its map jumps with the modes: residuals of 1e-3 remain, which are part of the error."""
    found = state_evolution("single_location(law='max', nu=2.0)", 0.5, draws=2**6, replicates=4, tol=1e-4)
    assert found.converged
    assert found.residual > 1e-4
    assert found.Q_error[1, 1] > found.residual
    assert abs(found.Q[1, 1] - 0.16) < 4 * found.Q_error[1, 1]  # .159 at tol = 1e-3


@pytest.mark.slow
def test_specialised_sign_committee():
    # The public data of arXiv:1806.05451 at alpha = 2.5.
    found = state_evolution("sign_committee", 2.5, draws=2**13)
    np.testing.assert_allclose(found.Q, [[0.5004, 0.2653], [0.2653, 0.5004]], rtol=0, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "plus"), [(1.0, 0.479897), (2.0, 0.703517)])
def test_unspecialised_sign_committee(alpha, plus):
    # Quadrature; the public data of arXiv:1806.05451 have 0.47990 and 0.70352.
    found = state_evolution("sign_committee", alpha, draws=2**13)
    np.testing.assert_allclose(found.Q, np.full((2, 2), plus / 2), rtol=0, atol=1e-3)  # q+ to 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "plus"), [(1.0, 0.555), (4.0, 0.9014), (12.0, 0.9717)])
def test_erf_committee(alpha, plus):
    found = state_evolution("committee", alpha, draws=2**10, replicates=4, tol=1e-4)
    u = np.sqrt([0.5, 0.5])
    assert abs(u @ found.Q @ u - plus) < 3e-3


def test_exact_recovery_has_a_rate():
    found = state_evolution("phase_retrieval", 1.5, draws=2**10)
    assert found.exact
    # One smooth equation a sequence: S_0 = 1.
    assert found.detail["rate"] == pytest.approx(1 / 1.5, rel=0.02)
