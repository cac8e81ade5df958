"""Weak recovery and staircases against closed forms and bounds."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import ndtr
from scipy.optimize import brentq

from attnlab.smi import Link, theory
from attnlab.smi.links import as_link
from attnlab.smi.theory.stability import stability

CLOSED = [
    ("phase_retrieval", 1 / 2),
    ("attention(tokens=2)", 1 / 6),
    ("attention(tokens=3)", 1 / 12),
    ("attention(tokens=4)", 1 / 20),
    ("door", 1.360459),  # p (1 - p) / (2 kappa phi(kappa))^2
    ("sign_product", np.pi**2 / 4),
]


@pytest.mark.parametrize(("link", "alpha"), CLOSED)
def test_weak_recovery_of_closed_links(link, alpha):
    found = theory.weak_recovery(link)
    assert found.converged
    assert abs(float(found) - alpha) < 1e-3 * alpha
    assert found > theory.recovery_bound(link) - 3 * found.error


@pytest.mark.parametrize(
    ("link", "alpha"),
    [
        ("product", 0.593751),  # 1 / (1 + E a^2) with Bessel functions
        ("causal_attention", 0.339398),  # quadrature
        pytest.param("untied_attention", np.sqrt(5) - 2, marks=pytest.mark.slow),  # inverse-Gaussian moments
    ],
)
def test_weak_recovery_of_level_sets(link, alpha):
    found = theory.weak_recovery(link)
    assert abs(float(found) - alpha) < 2e-3 * alpha
    assert abs(float(found) - alpha) < 3 * found.error
    assert found > theory.recovery_bound(link)


@pytest.mark.slow
@pytest.mark.parametrize(("skip", "alpha"), [(4.0, 0.16915), (2.0, 0.17428), (1.0, 0.18548)])
def test_weak_recovery_of_the_second_layer(skip, alpha):
    found = theory.weak_recovery(f"deep_attention(skip={skip})")
    assert abs(float(found) - alpha) < 5e-4
    np.testing.assert_array_equal(found.detail["directions"], [[0, 1]])
    assert found > theory.recovery_bound("deep_attention")  # exactly 1/6, which published values break


def test_draws_without_a_posterior_count_as_not_resolved():
    # 1/0 far out, as where an output of steep attention rounds to 0
    def broken(y, z):
        return -0.5 * (y - z[0, 0]) ** 2 / 0.25 + jnp.where(y > 4.0, jnp.nan, 0.0)

    link = Link(1, 1, sample=lambda z, e: z[0, 0] + 0.5 * e[0], log_density=broken, noise=1)
    found = stability(link, np.zeros((1, 1)), np.eye(1), 2**9, 4)
    assert np.isfinite(found.eigenvalue)
    assert np.isfinite(found.error)


def sum_of_tokens(z, e):
    return jnp.abs(z.sum()) + 0.05 * e[0]


def sum_density(y, z):
    return -0.5 * ((y - jnp.abs(z.sum())) / 0.05) ** 2


@pytest.mark.slow
def test_weak_recovery_where_the_nodes_miss_a_ridge():
    # |x| of x = (z_1 + z_2) / sqrt 2 with noise 0.05^2 / 2 is noisy phase retrieval.
    link = Link(2, 1, noise=1, sample=sum_of_tokens, log_density=sum_density)
    found, exact = (theory.weak_recovery(x) for x in (link, "phase_retrieval(noise=0.00125)"))
    assert abs(float(found) - float(exact)) < 3 * np.hypot(found.error, exact.error) + 1e-3


@pytest.mark.slow
def test_the_error_bar_of_the_operator_covers_the_truth():
    link, exact = as_link("causal_attention"), 0.339398
    found = [stability(link, np.zeros((1, 1)), np.eye(1), 2**11, 4, None, "cover", i) for i in range(20)]
    covered = [abs(1 / s.eigenvalue - exact) < 3 * s.error / s.eigenvalue**2 for s in found]
    assert sum(covered) >= 18


def test_a_staircase_of_two_steps():
    found = theory.thresholds("sign_committee")
    assert [step.kind for step in found.steps] == ["trivial", "weak"]
    np.testing.assert_allclose(found.steps[0].directions[0], np.sqrt([0.5, 0.5]), atol=1e-6)
    # Where q_- of the public data of arXiv:1806.05451 vanishes.
    assert abs(found[1] - 2.0524) < 0.01


@pytest.mark.slow
def test_specialisation_of_the_erf_committee():
    found = theory.thresholds("committee", draws=2**12)
    assert [step.kind for step in found.steps] == ["trivial", "weak"]
    assert 5.5 < found[1] < 5.9


@pytest.mark.slow
@pytest.mark.parametrize(("skip", "alpha"), [(1.0, 0.718), (2.0, 0.720)])
def test_layers_are_learned_in_order(skip, alpha):
    found = theory.thresholds(f"deep_attention(skip={skip})", replicates=4)
    assert [step.kind for step in found.steps] == ["weak", "weak"]
    np.testing.assert_allclose([abs(step.directions[0]) for step in found.steps], [[0, 1], [1, 0]], atol=1e-6)
    assert abs(found[1] - alpha) < 0.012


@pytest.mark.slow
def test_coupled_directions():
    found = theory.thresholds("single_location(law='max')", draws=2**8, replicates=4)
    assert [step.kind for step in found.steps] == ["trivial", "coupled"]
    np.testing.assert_array_equal(found.steps[0].directions, [[0, 1]])
    assert (found.value == 0).all()


NEAR, FAR = 0.5, brentq(lambda x: x * np.exp(-(x**2) / 2) - 0.5 * np.exp(-1 / 8), 1.0, 5.0)


def window(z, e):
    return jnp.where((jnp.abs(z[0, 0]) > NEAR) & (jnp.abs(z[0, 0]) < FAR), 1.0, -1.0)


def window_partition(y, omega, V):
    below = [ndtr((end - omega[0, 0]) / jnp.sqrt(V[0, 0])) for end in (-FAR, -NEAR, NEAR, FAR)]
    inside = below[1] - below[0] + below[3] - below[2]
    return jnp.log(jnp.where(y > 0, inside, 1 - inside))


def test_an_output_without_first_and_second_moments_is_hard():
    # E[z | y] = 0 by symmetry, E[z^2 - 1 | y] = 0 since x phi(x) is the same at both ends of the window.
    link = Link(1, 1, sample=window, log_partition=window_partition, symmetry="sign")
    found = theory.thresholds(link, draws=2**9)
    assert [step.kind for step in found.steps] == ["hard"]
    assert np.isinf(found[0])


def parity(z, e):
    return jnp.sign(z[0].prod())


def parity_density(y, z):
    return jnp.where(y * z[0].prod() > 0, 0.0, -40.0)


@pytest.mark.slow
def test_parity_is_never_learned_weakly():
    link = Link(1, 3, sample=parity, log_density=parity_density, smooth=False)
    found = theory.thresholds(link, draws=2**8, replicates=4)
    assert [step.kind for step in found.steps] == ["hard"]
    assert np.isinf(found[0])
    assert found.steps[0].directions.shape == (3, 3)


@pytest.mark.parametrize(
    ("link", "bound"),
    [("attention", 1 / 2), ("attention(tokens=3)", 1 / 3), ("deep_attention", 1.0), ("product", 2.0), ("sign", np.inf)],
)
def test_counting_bound(link, bound):
    assert float(theory.counting_bound(link)) == bound


def test_noise_forbids_exact_recovery():
    assert np.isinf(float(theory.counting_bound("committee")))


def test_bounds_follow_the_symmetry():
    # T (T r + 1) in general, T (T + 1) if the sign of each direction is free.
    assert 1 / float(theory.recovery_bound("untied_attention")) == pytest.approx(10)
    assert 1 / float(theory.recovery_bound("deep_attention")) == pytest.approx(6)
