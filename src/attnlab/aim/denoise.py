"""The prior step of AMP: eigenvalues of R in float64, shrunk by the spectrum of the prior."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.spectrum import shrink


def denoise(R: jax.Array | np.ndarray, noise: float, rho: float, *, clip: bool) -> jax.Array:
    """RIE(R) where R lives: LAPACK on a CPU, jax.numpy.linalg elsewhere, where only d numbers cross to the host."""
    if jax.default_backend() == "cpu":
        x, U = np.linalg.eigh(np.asarray(R))
        return jnp.asarray((U * shrink(x, noise, rho, clip=clip)) @ U.T)
    values, vectors = _eigh(R)
    rebuilt: jax.Array = _rebuild(vectors, jnp.asarray(shrink(np.asarray(values), noise, rho, clip=clip)))
    return rebuilt


@jax.jit
def _eigh(R: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eigh(R)
    return values, vectors


@jax.jit
def _rebuild(U: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.matmul(U * x, U.T, precision=jax.lax.Precision.HIGHEST)
