import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.aim.channels import Hardmax, Linear, Softmax, UserChannel, as_channel, orthant
from attnlab.aim.channels.residual import Residual
from attnlab.aim.indices import Layout, n_pairs, unwhiten, whiten


def messages(tokens, n, V, seed):
    rng = np.random.default_rng(seed)
    omega = rng.standard_normal((n, n_pairs(tokens)))
    return omega, omega + np.sqrt(V) * rng.standard_normal(omega.shape)


def g_out(channel, y, omega, V):
    layout = Layout(y.shape[-1], y.shape[-1])
    with jax.enable_x64(True):
        summary = jnp.asarray(channel.summary(y, layout))
        g = jax.jit(channel.g, static_argnames="layout")  # far faster to compile whole than step by step
        return np.asarray(g(summary, jnp.asarray(omega), jnp.asarray(V), layout=layout))


def test_whitening_is_undone():
    z = np.random.default_rng(0).standard_normal((4, 6))
    np.testing.assert_allclose(whiten(unwhiten(z, 3)), z)


@pytest.mark.parametrize("channel", [Softmax(), Linear(), Hardmax()])
def test_channels_say_whether_they_see_the_scale(channel):
    h = unwhiten(np.random.default_rng(0).standard_normal((4, 6)), 3)
    assert channel.scale_free == np.allclose(channel.output(h), channel.output(3 * h))
    assert not Hardmax(noise=0.1).scale_free


def test_the_posterior_mean_under_noise_lies_between_message_and_measurement():
    """Two Gaussians: prior variance V around omega, noise variance 0.3 around what is measured."""
    omega, z = messages(3, 5, 0.4, 0)
    g = g_out(Linear(noise=0.3), unwhiten(z, 3), omega, 0.4)
    np.testing.assert_allclose(omega + 0.4 * g, (0.3 * omega + 0.4 * z) / 0.7)


@pytest.mark.parametrize("tokens", [2, 3, 5])
@pytest.mark.parametrize("beta", [0.5, 4.0])
def test_softmax_posterior_mean_is_the_projection_on_what_y_fixes(tokens, beta, seed):
    V = 0.4
    omega, z = messages(tokens, 5, V, seed)
    g = g_out(Softmax(beta), Softmax(beta).output(unwhiten(z, tokens)), omega, V)
    # y fixes z up to multiples of u: omega + V g agrees with z orthogonally to u, and with omega along u
    u = 1 / np.where(np.equal(*np.triu_indices(tokens)), np.sqrt(2), 1)
    u /= np.linalg.norm(u)
    across = np.eye(len(u)) - np.outer(u, u)
    np.testing.assert_allclose((omega + V * g) @ across, z @ across, atol=1e-9)
    np.testing.assert_allclose(g @ u, 0, atol=1e-9)


@pytest.mark.parametrize(("tokens", "tolerance"), [(2, 0.0), (3, 0.12)])
def test_hardmax_gradient_is_the_conditional_mean(tokens, tolerance, seed):
    V, draws = 0.7, 50_000
    omega, z = messages(tokens, 3, V, seed)
    y = Hardmax().output(unwhiten(z, tokens))
    g = g_out(Hardmax(), y, omega, V)
    rng = np.random.default_rng(seed + 1)
    for i in range(len(omega)):
        cloud = omega[i] + np.sqrt(V) * rng.standard_normal((draws, omega.shape[1]))
        kept = cloud[(Hardmax().output(unwhiten(cloud, tokens)) == y[i]).all(axis=(1, 2))]
        error = kept.std(axis=0) / np.sqrt(len(kept)) / V
        # 5 standard errors of rejection sampling, and the 128-point integration for three tokens
        assert (np.abs((kept.mean(axis=0) - omega[i]) / V - g[i]) < 5 * error + tolerance).all()


def test_orthant_integration_agrees_with_the_two_token_formula():
    omega, z = messages(2, 8, 0.5, 0)
    winners = Hardmax().summary(Hardmax().output(unwhiten(z, 2)), Layout(2, 2))
    with jax.enable_x64(True):
        posterior_mean = jax.jit(orthant.posterior_mean, static_argnums=(3, 4))
        mean = np.asarray(posterior_mean(jnp.asarray(winners), jnp.asarray(omega), jnp.asarray(0.5), 2, 4096))
    direct = g_out(Hardmax(), Hardmax().output(unwhiten(z, 2)), omega, 0.5)
    # one-dimensional quasi-Monte Carlo with 4096 points, which cut the Gaussian's tails
    np.testing.assert_allclose((mean - omega) / 0.5, direct, atol=1e-2)


@pytest.mark.parametrize("distance", [5.0, 15.0, 25.0])
def test_orthant_integration_of_winners_that_are_far_from_likely(distance):
    omega = -distance * np.array([[0.7, 0.2, 1.0], [0.8, -0.6, 0.9]])
    winners = np.array([[0.0, 1.0], [0.0, 1.0]])
    with jax.enable_x64(True):
        posterior_mean = jax.jit(orthant.posterior_mean, static_argnums=(3, 4))
        mean = posterior_mean(jnp.asarray(winners), jnp.asarray(omega), jnp.asarray(0.5), 2, 512)
        direct = Hardmax().g(jnp.asarray(winners), jnp.asarray(omega), jnp.asarray(0.5), Layout(2, 2))
    # the default points; without the shift g is off by its own size
    np.testing.assert_allclose((np.asarray(mean) - omega) / 0.5, direct, rtol=0.02, atol=0.02)


def test_winner_orders_are_transitive_and_impossible_patterns_are_cyclic():
    less = orthant.orders(3)
    assert (less | ~(less[:, :, :, None] & less[:, None, :, :]).any(axis=2)).all()
    cyclic = less[:, range(6), range(6)].any(axis=1)
    # the winners (2, 3, 1) order h_12 > h_13 > h_23 > h_12, and so do the two senses of the cycle
    assert cyclic.sum() == 2


def test_user_channel_reproduces_a_known_one():
    noisy = UserChannel(
        forward=lambda h, rng: h + 0.5 * rng.standard_normal(h.shape),
        log_likelihood=lambda y, h: -((y - h) ** 2).sum((-1, -2)) / (2 * 0.25),
    )
    omega, z = messages(1, 6, 0.3, 0)
    y = unwhiten(z, 1)
    # 128 points, moved three times to where the posterior is
    # one token: y = sqrt(2) z + noise of variance 0.25, so E[z | y] is linear in y
    gain = np.sqrt(2) * 0.3 / (2 * 0.3 + 0.25)
    expected = gain * (y[:, 0] - np.sqrt(2) * omega) / 0.3
    np.testing.assert_allclose(g_out(noisy, y, omega, 0.3), expected, atol=2e-2)


def test_bayes_output_averages():
    h = np.zeros((1, 2, 2))
    np.testing.assert_allclose(Softmax().bayes_output(h, Residual(Layout(2, 2), 1.0, 1.0, 1.0)), 0.5, atol=5e-3)


def test_bad_outputs_are_refused():
    good = Softmax().output(np.random.default_rng(0).standard_normal((3, 2, 2)))
    pair = Layout(2, 2)
    with pytest.raises(ValueError, match="sum to one"):
        Softmax().summary(good * 1.1, pair)
    with pytest.raises(ValueError, match="log y"):
        Softmax().summary(np.tile(np.eye(2), (3, 1, 1)), pair)
    with pytest.raises(ValueError, match="one-hot"):
        Hardmax().summary(good, pair)
    with pytest.raises(ValueError, match="symmetric"):
        Linear().summary(np.array([[[0.0, 1.0], [5.0, 0.0]]]), pair)
    with pytest.raises(ValueError, match="beta must be"):
        as_channel("softmax", beta=0.0)
    with pytest.raises(ValueError, match="did you mean 'softmax'"):
        as_channel("softmaxx")
