import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.aim.channels import Linear, Softmax
from attnlab.aim.frame import Frame
from attnlab.aim.host import HostMessages
from attnlab.aim.indices import indices, unwhiten, whiten
from attnlab.aim.sensing import measure, measure_adjoint


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_adjoint_is_the_adjoint(tokens):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, tokens, 12))
    S = rng.standard_normal((12, 12))
    S, g = S + S.T, rng.standard_normal((30, tokens * (tokens + 1) // 2))
    with jax.enable_x64(True):
        z = np.asarray(measure(jnp.asarray(X), jnp.asarray(S), frame=Frame(tokens, False)))
        back = np.asarray(measure_adjoint(jnp.asarray(X), jnp.asarray(g), frame=Frame(tokens, False)))
    np.testing.assert_allclose(z, whiten(indices(X, S)), rtol=1e-10)
    assert (z * g).sum() == pytest.approx((S * back).sum(), rel=1e-12)


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_differences_know_the_indices_up_to_one_constant(tokens):
    rng = np.random.default_rng(1)
    X, S = rng.standard_normal((20, tokens, 12)), rng.standard_normal((12, 12))
    S, whole, frame = S + S.T, Frame(tokens, False), Frame(tokens, True)
    g = rng.standard_normal((20, tokens * (tokens + 1) // 2))
    u = np.where(np.equal(*np.triu_indices(tokens)), np.sqrt(0.5), 1.0)
    g -= np.outer(g @ u, u) / (u @ u)  # what softmax and hardmax cannot see
    with jax.enable_x64(True):
        gap = np.asarray(measure(X, S, frame=frame)) - whiten(indices(X, S))
        back = np.asarray(measure_adjoint(X, g, frame=frame))
        expected = np.asarray(measure_adjoint(X, g, frame=whole))
    h = unwhiten(gap, tokens)
    np.testing.assert_allclose(h, np.broadcast_to(h[:, :1, :1], h.shape), atol=1e-11)
    np.testing.assert_allclose(back, expected, atol=1e-11)


@pytest.mark.parametrize("channel", [Softmax(), Linear(noise=0.1)])
def test_blas_and_the_device_make_the_same_sweep(channel):
    rng = np.random.default_rng(2)
    X, S, summary = rng.standard_normal((50, 3, 10)), rng.standard_normal((10, 10)), rng.standard_normal((50, 6))
    S, frame = S + S.T, Frame(3, channel.shift_invariant)
    messages = HostMessages(X, summary, channel, "float64", 1e9)
    total, strength = messages.sweep(S, 0.7, 0.5, 0.0)
    with jax.enable_x64(True):
        g = np.asarray(channel.g(summary, measure(X, S, frame=frame), 0.5))
        np.testing.assert_allclose(total, measure_adjoint(X, g, frame=frame), atol=1e-10)
    assert strength == pytest.approx(float((g**2).sum()) / 50)
