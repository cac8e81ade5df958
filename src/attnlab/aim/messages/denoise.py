"""The prior step of AMP: eigenvalues or singular values of R in float64, shrunk by the spectrum of the prior."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.spectrum import singular, tied


def denoise(R: Any, noise: float, rho: float, *, symmetric: bool = True) -> Any:
    """The posterior mean of the planted matrix given R, where R lives: LAPACK for NumPy arrays, otherwise the device,
    from which only d numbers come to the host. Values outside the expected bulk are moved to its ends first.
    """
    prior = tied if symmetric else singular
    if isinstance(R, np.ndarray):
        U, x, Vt = _split(R, symmetric)
        return (U * prior.shrink(x, noise, rho, clip=True)) @ Vt
    U, x, Vt = (_eigh if symmetric else _svd)(R)
    return _rebuild(U, jnp.asarray(prior.shrink(np.asarray(x), noise, rho, clip=True)), Vt)


def _split(R: np.ndarray, symmetric: bool) -> Any:
    if symmetric:
        x, U = np.linalg.eigh(R)
        return U, x, U.T
    return np.linalg.svd(R)


@jax.jit
def _eigh(R: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, U = jnp.linalg.eigh(R)
    return U, x, U.T


@jax.jit
def _svd(R: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    U, x, Vt = jnp.linalg.svd(R)
    return U, x, Vt


@jax.jit
def _rebuild(U: jax.Array, x: jax.Array, Vt: jax.Array) -> jax.Array:
    return jnp.matmul(U * x, Vt, precision=jax.lax.Precision.HIGHEST)
