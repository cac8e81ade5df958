"""How such experiments are usually run: d-dimensional vectors, autodiff, one compiled step called from Python; and,
with more care, the same steps inside one compiled loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.slr.namespace import jax_namespace
from attnlab.slr.theory import overlaps as formula


@functools.cache
def population_step(d: int, L: int, gamma: float) -> Callable[..., Any]:
    """One projected gradient step on the exact risk, for a batch of repeats in d dimensions."""
    xp, law = jax_namespace(), formula.Setting((d / 2) ** 0.5, gamma, L, 1)

    def risk(k: Any, v: Any, lam: Any) -> Any:
        # k* and v* are the first two basis vectors
        return formula.risk((k[0], v[1], v[0], k[1], k @ v), law, lam, xp=xp)

    def step(k: Any, v: Any, lam: Any, alpha: Any) -> Any:
        g_k, g_v = jax.grad(risk, 0)(k, v, lam), jax.grad(risk, 1)(k, v, lam)
        k, v = k - alpha * (g_k - (k @ g_k) * k), v - alpha * (g_v - (v @ g_v) * v)
        return k / jnp.linalg.norm(k), v / jnp.linalg.norm(v)

    return jax.jit(jax.vmap(step, (0, 0, None, None)))


def population_descent(
    k: np.ndarray, v: np.ndarray, *, L: int, gamma: float, lam: float, step: float, n_steps: int
) -> Any:
    """The Python loop over steps."""
    with jax.enable_x64(True):
        advance = population_step(k.shape[1], L, gamma)
        kv = jnp.asarray(k), jnp.asarray(v)
        for _ in range(n_steps):
            kv = advance(*kv, lam, step)
        return jax.block_until_ready(kv)


@functools.cache
def population_loop(d: int, L: int, gamma: float, n_steps: int) -> Callable[..., Any]:
    """All steps in one compiled program."""
    advance = population_step(d, L, gamma)

    @jax.jit
    def loop(k: Any, v: Any, lam: Any, alpha: Any) -> Any:
        return jax.lax.fori_loop(0, n_steps, lambda _, kv: advance(*kv, lam, alpha), (k, v))

    return loop


def population_descent_compiled(
    k: np.ndarray, v: np.ndarray, *, L: int, gamma: float, lam: float, step: float, n_steps: int
) -> Any:
    """The compiled loop over steps."""
    with jax.enable_x64(True):
        loop = population_loop(k.shape[1], L, gamma, n_steps)
        return jax.block_until_ready(loop(jnp.asarray(k), jnp.asarray(v), lam, step))


@functools.cache
def stochastic_step(d: int, L: int, gamma: float, noise_std: float, batch: int) -> Callable[..., Any]:
    """One SGD step with a fresh batch of d-dimensional sequences, for a batch of repeats."""

    def loss(kv: Any, X: Any, y: Any, lam: Any) -> Any:
        k, v = kv
        return jnp.mean((jnp.sum(jax.scipy.special.erf(lam * (X @ k)) * (X @ v), axis=1) - y) ** 2)

    def step(kv: Any, key: Any, lam: Any, alpha: Any) -> Any:
        tokens, noise = jax.random.split(key)
        X = jax.random.normal(tokens, (batch, L, d))
        X = X.at[:, 0].multiply(gamma).at[:, 0, 0].add(jnp.sqrt(d / 2))
        y = X[:, 0, 1] + noise_std * jax.random.normal(noise, (batch,))
        g_k, g_v = jax.grad(loss)(kv, X, y, lam)
        k, v = kv
        k, v = k - alpha * (g_k - (k @ g_k) * k), v - alpha * (g_v - (v @ g_v) * v)
        return k / jnp.linalg.norm(k), v / jnp.linalg.norm(v)

    return jax.jit(jax.vmap(step, (0, 0, None, None)))


def stochastic_descent(
    k: np.ndarray,
    v: np.ndarray,
    *,
    L: int,
    gamma: float,
    noise_std: float,
    lam: float,
    step: float,
    n_steps: int,
    batch: int,
) -> Any:
    """The Python loop over steps; float32, as it is run in practice."""
    advance = stochastic_step(k.shape[1], L, gamma, noise_std, batch)
    kv = jnp.asarray(k, jnp.float32), jnp.asarray(v, jnp.float32)
    key = jax.random.key(0)
    for _ in range(n_steps):
        key, use = jax.random.split(key)
        kv = advance(kv, jax.random.split(use, len(k)), lam, step)
    return jax.block_until_ready(kv)


@functools.cache
def stochastic_loop(d: int, L: int, gamma: float, noise_std: float, batch: int, n_steps: int) -> Callable[..., Any]:
    """All steps in one compiled program."""
    advance = stochastic_step(d, L, gamma, noise_std, batch)

    @jax.jit
    def loop(kv: Any, keys: Any, lam: Any, alpha: Any) -> Any:
        return jax.lax.scan(lambda kv, step_keys: (advance(kv, step_keys, lam, alpha), None), kv, keys)[0]

    return loop


def stochastic_descent_compiled(
    k: np.ndarray,
    v: np.ndarray,
    *,
    L: int,
    gamma: float,
    noise_std: float,
    lam: float,
    step: float,
    n_steps: int,
    batch: int,
) -> Any:
    """The compiled loop over steps."""
    loop = stochastic_loop(k.shape[1], L, gamma, noise_std, batch, n_steps)
    kv = jnp.asarray(k, jnp.float32), jnp.asarray(v, jnp.float32)
    return jax.block_until_ready(loop(kv, jax.random.split(jax.random.key(0), (n_steps, len(k))), lam, step))
