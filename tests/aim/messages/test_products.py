import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.aim.channels import Linear, Softmax
from attnlab.aim.channels.measurement import projection
from attnlab.aim.indices import Layout
from attnlab.aim.messages.blas import BlasMessages
from attnlab.aim.messages.probes import Probes
from attnlab.aim.messages.products import adjoint, measure
from attnlab.common.compute import Compute

LAYOUTS = [
    Layout(1, 1),
    Layout(2, 2),
    Layout(4, 4),
    Layout(2, 2, tied=False),
    Layout(3, 3, tied=False),
    Layout(2, 3, tied=False, cross=True),
]


def planted(layout, seed):
    """Tokens, a matrix of the layout's kind and messages of every component."""
    rng = np.random.default_rng(seed)
    X, S = rng.standard_normal((30, layout.tokens, 12)), rng.standard_normal((12, 12))
    return X, S + S.T if layout.tied else S, rng.standard_normal((30, layout.p))


def measured_adjoint(X, g, probes):
    return adjoint(probes.view(jnp.asarray(X)), jnp.asarray(g), probes)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_adjoint_is_the_adjoint(layout):
    X, S, g = planted(layout, 0)
    probes = Probes(layout, False)
    with jax.enable_x64(True):
        z = np.asarray(measure(jnp.asarray(X), jnp.asarray(S), probes=probes))
        back = np.asarray(measured_adjoint(jnp.asarray(X), jnp.asarray(g), probes))
    np.testing.assert_allclose(z, layout.whiten(layout.indices(X, S)), rtol=1e-9)
    assert (z * g).sum() == pytest.approx((S * back).sum(), rel=1e-12)


@pytest.mark.parametrize("layout", [one for one in LAYOUTS if one.keys > 1], ids=str)
def test_differences_know_the_indices_up_to_what_a_softmax_does_not_see(layout):
    X, S, g = planted(layout, 1)
    seen = projection(Softmax(), layout)
    g = g @ seen
    with jax.enable_x64(True):
        gap = np.asarray(measure(X, S, probes=Probes(layout, True))) - layout.whiten(layout.indices(X, S))
        back = np.asarray(measured_adjoint(X, g, Probes(layout, True)))
        expected = np.asarray(measured_adjoint(X, g, Probes(layout, False)))
    np.testing.assert_allclose(gap @ seen, 0, atol=1e-11)
    np.testing.assert_allclose(back, expected, atol=1e-11)


@pytest.mark.parametrize("channel", [Softmax(), Linear(noise=0.1)])
@pytest.mark.parametrize("layout", [Layout(3, 3), Layout(3, 3, tied=False), Layout(2, 3, False, True)], ids=str)
def test_blas_and_the_device_make_the_same_sweep(channel, layout):
    X, S, summary = planted(layout, 2)
    probes = Probes(layout, channel.shift_invariant)
    messages = BlasMessages(X, summary, channel, layout, Compute(dtype="float64"))
    total, strength = messages.sweep(S, 0.7, 0.5, 0.0)
    with jax.enable_x64(True):
        g = np.asarray(channel.g(summary, measure(X, S, probes=probes), 0.5, layout))
        np.testing.assert_allclose(total, measured_adjoint(X, g, probes), atol=1e-10)
    assert strength == pytest.approx(float((g**2).sum()) / 30)
