"""The prior step of AMP: eigenvalues of R in float64, shrunk by the spectrum of the prior."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.spectrum import shrink


def denoise(R: Any, noise: float, rho: float, *, clip: bool) -> Any:
    """RIE(R) where R lives: LAPACK for NumPy arrays, otherwise the device, from which only d numbers come to the
    host.
    """
    if isinstance(R, np.ndarray):
        x, U = np.linalg.eigh(R)
        return (U * shrink(x, noise, rho, clip=clip)) @ U.T
    values, vectors = _eigh(R)
    return _rebuild(vectors, jnp.asarray(shrink(np.asarray(values), noise, rho, clip=clip)))


@jax.jit
def _eigh(R: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eigh(R)
    return values, vectors


@jax.jit
def _rebuild(U: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.matmul(U * x, U.T, precision=jax.lax.Precision.HIGHEST)
