import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.aim import theory
from attnlab.aim.channels import Hardmax
from attnlab.aim.indices import Layout, unwhiten


@pytest.mark.parametrize(
    ("q", "V", "correct", "legacy"),
    [
        (0.0, 1.0, 1.239432, 0.887678),
        (0.5, 1.0, 1.058484, 0.642509),
        (1.0, 0.5, 1.567196, 0.694888),
        (1.4, 0.1, 3.653858, 0.737297),
    ],
)
def test_hardmax_strength_has_its_reference_values(q, V, correct, legacy):
    assert theory.channel_strength(q, V, 2, "hardmax") == pytest.approx(correct, abs=1e-6)
    assert theory.channel_strength(q, V, 2, "hardmax_legacy") == pytest.approx(legacy, abs=1e-6)


def test_hardmax_strength_is_the_mean_square_of_the_gradient(seed):
    q, V, n = 1.0, 0.5, 20_000
    rng = np.random.default_rng(seed)
    omega = np.sqrt(q) * rng.standard_normal((n, 3))
    y = Hardmax().output(unwhiten(omega + np.sqrt(V) * rng.standard_normal(omega.shape), 2))
    with jax.enable_x64(True):
        winners = jnp.asarray(Hardmax().summary(y, Layout(2, 2)))
        compiled = jax.jit(Hardmax().g, static_argnames="layout")
        g = np.asarray(compiled(winners, jnp.asarray(omega), jnp.asarray(V), layout=Layout(2, 2)))
    squares = (g**2).sum(axis=1)
    # four standard errors
    assert abs(squares.mean() - theory.channel_strength(q, V, 2, "hardmax")) < 4 * squares.std() / np.sqrt(n)


def test_exact_channels_count_measurements():
    assert theory.channel_strength(0.3, 0.5, 3) == pytest.approx(5 / 0.5)
    assert theory.channel_strength(0.3, 0.5, 3, "linear") == pytest.approx(6 / 0.5)
    assert theory.channel_strength(0.3, 0.5, 2, noise=0.1) == pytest.approx(2 / 0.6)


@pytest.mark.slow
def test_hardmax_strength_of_three_tokens_joins_the_enumeration():
    uninformed = 1 / (2 * theory.weak_recovery_threshold(3, "hardmax"))
    # 4096 samples: a few percent
    assert theory.channel_strength(0.0, 1.0, 3, "hardmax") == pytest.approx(uninformed, rel=0.05)
