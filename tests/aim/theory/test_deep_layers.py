"""Strengths of several layers against a Markov chain, which needs neither modes nor importance weights."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.aim import theory
from attnlab.aim.channels import NotSolved
from attnlab.aim.indices import Layout


def mixed(h):
    """The tokens' map through the layers h (layers, T, T), beta = c = 1."""
    B = jnp.eye(h.shape[-1])
    for one in h:
        B = B + jax.nn.softmax(B @ one @ B.T, axis=-1) @ B
    return B


@functools.partial(jax.jit, static_argnames=("steps",))
def chain(key, z, omega, V, steps):
    """E[x | y] twice, (2, layers, p), x = (z - omega)/sqrt(V) across the constant matrix.

    Crank-Nicolson proposals for the layers but the last (S. Cotter et al., Stat. Sci. 28 (2013) 424). The start is the
    planted z, a draw from the posterior, so that nothing has to settle; an eighth of the path is left out before each
    mean, so that neither knows the start or the other.
    """
    T = int(np.sqrt(2 * z.shape[1]))
    layout, spread = Layout(T, T), jnp.sqrt(V)[:, None]
    constant = layout.whiten(np.ones((1, T, T)))[0]
    across = np.eye(len(constant)) - np.outer(constant, constant) / (constant @ constant)
    h = layout.unwhiten(z)
    B = mixed(h[:-1])
    H = B @ h[-1] @ B.T

    def last(x):
        B = mixed(layout.unwhiten(omega[:-1] + spread[:-1] * x))
        inverse = jnp.linalg.inv(B)
        r = across @ (layout.whiten(inverse @ H @ inverse.T) - omega[-1]) / spread[-1]
        return r, -(r @ r) / 2 - (T + 1) * jnp.log(jnp.abs(jnp.linalg.det(B)))

    def step(state, key):
        x, r, log_p = state
        first, second, third = jax.random.split(key, 3)
        size = jnp.minimum(0.35 * 2 ** jax.random.uniform(first, minval=-1.5, maxval=1.5), 1.0)
        new = jnp.sqrt(1 - size**2) * x + size * jax.random.normal(second, x.shape)
        r_new, log_new = last(new)
        kept = jnp.log(jax.random.uniform(third)) < log_new - log_p
        x, r, log_p = (jnp.where(kept, a, b) for a, b in ((new, x), (r_new, r), (log_new, log_p)))
        return (x, r, log_p), jnp.concatenate([x @ across, r[None]])

    def eighth(state, key):
        state, path = jax.lax.scan(step, state, jax.random.split(key, steps))
        return state, path.mean(axis=0)

    x = ((z - omega) / spread)[:-1]
    _, means = jax.lax.scan(eighth, (x, *last(x)), jax.random.split(key, 8))
    return jnp.stack([means[1:4].mean(axis=0), means[5:].mean(axis=0)])


def strengths_by_chain(layers, tokens, V, sequences=1024, steps=300):
    """E|g_l|^2 and its standard error."""
    rng, p, V = np.random.default_rng(layers + 10 * tokens), tokens * (tokens + 1) // 2, np.full(layers, V)
    omega = np.sqrt(1 - V)[:, None] * rng.standard_normal((sequences, layers, p))
    z = omega + np.sqrt(V)[:, None] * rng.standard_normal(omega.shape)
    with jax.enable_x64(True):
        runs = jax.vmap(lambda key, z, omega: chain(key, z, omega, V, steps=steps))
        x = np.asarray(runs(jax.random.split(jax.random.key(1), sequences), z, omega))
    squares = (x[:, 0] * x[:, 1]).sum(axis=2) / V
    return squares.mean(axis=0), squares.std(axis=0) / np.sqrt(sequences)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layers", "tokens", "V"),
    [(2, 2, 1.0), (2, 3, 0.3), (2, 4, 1.0), (3, 2, 0.3), (3, 3, 1.0), (3, 4, 1.0), (3, 4, 0.3)],
)
def test_the_stated_error_is_honest_at_every_number_of_layers_and_tokens(layers, tokens, V):
    found = theory.layer_strengths((V,) * layers, tokens=tokens, samples=512)
    reference, noise = strengths_by_chain(layers, tokens, V)
    # 19 numbers in all
    assert (np.abs(found.value - reference) < 3 * np.hypot(found.error, noise)).all()
    # and it says something: 18 dimensions have the widest bar
    assert (found.error < 0.5 * reference).all()


@pytest.mark.slow
def test_thresholds_of_three_layers():
    found = theory.deep_weak_recovery_threshold(layers=3, samples=1024)
    strength, noise = strengths_by_chain(3, 2, 1.0, sequences=2048)
    expected = 1 / (2 * strength)
    assert (np.abs(found.value - expected) < 3 * np.hypot(found.error, expected * noise / strength)).all()
    # the last layer first, then the first
    assert np.argsort(found.value).tolist() == [2, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "tokens"), [(2, 2), (3, 2)])
def test_layers_that_are_nearly_known_share_the_measurements(layers, tokens):
    """sum_l V_l E|g_l|^2 = k, from which the recovery threshold L D/(2k) follows."""
    V = np.geomspace(2e-4, 1e-4, layers)
    found = theory.layer_strengths(V.tolist(), tokens=tokens, samples=256)
    k = (tokens**2 + tokens - 2) / 2
    noise = np.sqrt(((V * found.error) ** 2).sum())
    assert float(V @ found.value) == pytest.approx(k, abs=3 * noise + 0.01 * k)
    assert float(theory.deep_recovery_threshold(0.5, layers=layers, tokens=tokens)) == layers * 0.75 / (2 * k)


@pytest.mark.slow
def test_a_bias_that_is_seen_is_refused():
    with pytest.raises(NotSolved, match="do not resolve"):
        theory.layer_strengths((0.5, 0.5), beta=60.0, samples=64, points=64)
