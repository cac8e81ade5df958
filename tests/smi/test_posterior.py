"""Posterior moments: the routes against each other, resolution, and the bias of one set of points."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.smi import Link, links, theory
from attnlab.smi.posterior.moments import first_rule, posterior
from attnlab.smi.theory.gains import above_noise, draw, gain, points_of, roots

QS = (0.3, 0.6, 0.9)


def alone(link, route):
    """The link with one description of p(y|z) only."""
    names = ("log_partition", "solve", "log_density")
    return replace(link, **{name: None for name in names if name != route}, name="", parameters=())


def information(link, Q, draws=2**9, replicates=8):
    V = np.repeat(np.eye(link.rank)[None] - Q, replicates, axis=0)
    return gain(link, V, points_of(link, draws, replicates, "routes"))


def agree(one, two):
    """Whether two gains on the same draws are equal within three errors of their difference, or to the rule's 1e-4.

    Both are below a tenth of the error of S itself.
    """
    gap = one.product - two.product
    error = gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
    return bool((np.abs(gap.mean(axis=0)) < 3 * error + 1e-4 * one.size).all())


def near(closed, points):
    """Whether the noisy gain of points is that of the closed form, within three errors of S and 1e-3 of its size.

    Normalised weights have a bias of order S/ESS, which the error of the difference does not contain: 0.6(2) % in
    six dimensions at q = 0.3 and a sample size of 21, 0.2(1) % with four times the points. It is below that of S.
    """
    error = closed.product.std(axis=0, ddof=1) / np.sqrt(len(closed.product))
    gap = np.abs((points.product - closed.product).mean(axis=0))
    return bool((gap < 3 * error + 1e-3 * closed.size).all())  # the linear link has no error


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("link", [links.phase_retrieval(noise=0.05), links.linear()], ids=str)
def test_closed_form_and_density(link, q):
    closed, grid = (information(alone(link, route), q * np.eye(1)) for route in ("log_partition", "log_density"))
    assert grid.resolved
    assert agree(closed, grid)


def solve_abs(y, s):
    """|z_1| with the second direction free: a level set of one coordinate."""
    return jnp.stack([jnp.stack([y, s[0]])[None], jnp.stack([-y, s[0]])[None]]), jnp.zeros(2)


def closed_abs(y, omega, V):
    w, v = omega[0, 0], V[0, 0]
    return jnp.logaddexp(-0.5 * (y - w) ** 2 / v, -0.5 * (y + w) ** 2 / v) - 0.5 * jnp.log(v)


def first_abs(z, e):
    return jnp.abs(z[0, 0])


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("free", [((0, 1),), ((-8.0, 8.0),)], ids=["position", "range"])
def test_closed_form_and_level_set(q, free):
    Q = np.array([[q, 0.1 * q], [0.1 * q, 0.5 * q]])
    one = Link(1, 2, sample=first_abs, log_partition=closed_abs)
    two = Link(1, 2, sample=first_abs, solve=solve_abs, free=free)
    assert agree(information(one, Q), information(two, Q))


def solve_first(y, s):
    """|z_1| with four other directions free, which are too many for a grid."""
    return jnp.stack([jnp.concatenate([jnp.array([side * y]), s])[None] for side in (1, -1)]), jnp.zeros(2)


@pytest.mark.slow
@pytest.mark.parametrize("q", QS)
def test_closed_form_and_level_set_by_points(q):
    Q = q * (0.5 * np.eye(5) + 0.1)
    one = Link(1, 5, sample=first_abs, log_partition=closed_abs)
    two = Link(1, 5, sample=first_abs, solve=solve_first, free=tuple((0, a) for a in range(1, 5)))
    closed, points = (information(link, Q, 2**7) for link in (one, two))
    assert two.route == "points"
    assert points.resolved
    assert near(closed, points)


def sign_density(y, z):
    return jnp.where(y * z[0, 0] > 0, 0.0, -40.0)


@pytest.mark.parametrize("q", QS)
def test_closed_form_and_a_density_that_jumps(q):
    jumps = Link(1, 1, sample=links.sign().sample, log_density=sign_density, smooth=False)
    closed, points = (information(link, q * np.eye(1)) for link in (links.sign(), jumps))
    assert jumps.route == "points"
    assert points.resolved
    assert agree(closed, points)


@pytest.mark.slow
@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("link", [links.linear(tokens=2, rank=2), links.single_location(tokens=3)], ids=str)
def test_closed_form_and_points(link, q):
    """The importance-sampling route in four and six dimensions against the closed form of the same law."""
    closed, points = (
        information(alone(link, route), q * np.eye(2), 2**8) for route in ("log_partition", "log_density")
    )
    assert points.resolved
    assert near(closed, points)


@pytest.mark.slow
def test_single_location_by_points():
    """At the fixed point of alpha = 2, to 2 %."""
    link = links.single_location(tokens=3, nu=4.0, noise=0.1)
    Q = np.diag([0.8746, 0.8831])
    closed = information(alone(link, "log_partition"), Q, draws=2**8, replicates=4)
    points = information(alone(link, "log_density"), Q, draws=2**8, replicates=4)
    assert points.resolved
    np.testing.assert_allclose(
        np.diagonal(points.product.mean(axis=0)), np.diagonal(closed.product.mean(axis=0)), rtol=0.02
    )


@pytest.mark.slow
@jax.enable_x64(True)
def test_one_set_of_points_is_biased():
    link, V = links.single_location(tokens=3, nu=2.0, noise=0.1, law="max"), np.diag([0.6, 0.3])
    root, moments = roots(V), jax.jit(jax.vmap(posterior(link, 32), in_axes=(0, 0, None, 0)))
    x = jnp.asarray(points_of(link, 512, 2, "bias").normals.reshape(1024, -1))
    drawn = jax.vmap(lambda one: draw(link, one, root))(x)
    found = moments(drawn.y, drawn.omega, root.L, jnp.arange(1024))
    single, double = (np.asarray(jnp.einsum("nta,nta->na", found.mean, m)) for m in (found.mean, found.mean_again))
    cross = np.asarray(jnp.einsum("nta,nta->na", found.mean, drawn.s))
    assert single[:, 0].mean() > 1.03 * double[:, 0].mean()
    gap = double[:, 0] - cross[:, 0]
    assert abs(gap.mean()) < 3 * gap.std() / np.sqrt(len(gap))


def test_a_finer_rule_is_taken_where_it_is_needed():
    link = alone(links.phase_retrieval(noise=1e-4), "log_density")
    found = information(link, 0.5 * np.eye(1), draws=2**6, replicates=2)
    assert found.resolved
    assert found.rule.size > first_rule(link).size


def ridge(z, e):
    return z.sum() + 0.05 * e[0]


def ridge_density(y, z):
    return -0.5 * ((y - z.sum()) / 0.05) ** 2


def ridge_partition(y, omega, V):
    v = 2 * V[0, 0] + 0.05**2
    return -0.5 * ((y - omega.sum()) ** 2 / v + jnp.log(v))


def test_a_straight_ridge_between_the_nodes_is_found():
    """Of two tokens y shows the sum: the sample size is large on nodes that miss the width of the ridge."""
    closed, grid = (
        information(Link(2, 1, noise=1, sample=ridge, **density), 0.3 * np.eye(1))
        for density in ({"log_partition": ridge_partition}, {"log_density": ridge_density})
    )
    assert grid.resolved
    assert abs(grid.size - closed.size) < 1e-4  # 6e-3 on the first nodes


@pytest.mark.slow
def test_importance_sampling_in_twelve_dimensions_ends():
    """Four threads with eigenvalue problems of this size waited for each other for ever."""
    found = information(links.single_location(tokens=6, nu=2.0, law="max"), 0.2 * np.eye(2), draws=2**4, replicates=4)
    assert found.resolved
    # At most the information of six whole tokens, and some of the value's.
    assert 0 < found.product.mean(axis=0)[1, 1] < 6


def test_information_below_the_noise_is_zero(seed):
    rng = np.random.default_rng(seed)
    noise = 0.01 * rng.standard_normal((8, 2, 2))
    S, floor = above_noise(noise + noise.swapaxes(1, 2) + np.diag([0.0, 1.0]))
    assert abs(S[:, 0, 0]).max() < 1e-3
    assert S[:, 1, 1].mean() > 0.9
    assert 0 < floor < 0.1


def test_weights_integrate_quadratic_functions():
    found = points_of(links.linear(), 2**7, 2, "weights")
    x, w = found.normals[0], found.weights[0]
    np.testing.assert_allclose(np.einsum("n,na,nb->ab", w, x, x), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(w @ x, 0, atol=1e-12)


@pytest.mark.slow
def test_a_hidden_direction_has_no_overlap_for_noisy_points():
    """Points carry noise; what lies below it is set to zero, up to the tilt of the learned direction."""
    found = theory.state_evolution(
        Link(1, 4, noise=1, sample=first_direction, log_density=first_density), 0.5, draws=2**8, replicates=4, tol=1e-3
    )
    assert np.abs(found.Q[1:, 1:]).max() < 1e-6
    exact = theory.state_evolution("linear(noise=0.1)", 0.5).Q[0, 0]
    assert abs(found.Q[0, 0] - exact) < 4 * found.Q_error[0, 0] + 0.01


def first_direction(z, e):
    return z[0, 0] + np.sqrt(0.1) * e[0]


def first_density(y, z):
    return -0.5 * (y - z[0, 0]) ** 2 / 0.1
