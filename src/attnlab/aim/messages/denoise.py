"""The prior step of AMP: eigenvalues or singular values of R in float64, shrunk by the spectrum of the prior."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.spectrum import singular, tied

SMALLEST = 1e-8  # singular value, in units of the largest, that the root of an eigenvalue of R^T R resolves


def denoise(R: Any, noise: float, rho: float, *, symmetric: bool = True) -> Any:
    """The posterior mean of the planted matrix given R, where R lives: LAPACK for NumPy arrays, otherwise the device,
    from which only d numbers come to the host. Values outside the expected bulk are moved to its ends first.

    U xi(s) V^T = R V (xi(s)/s) V^T needs the eigenvectors of R^T R alone, in half the time of U, s and V. The
    square costs no digits that count: xi(s)/s is smooth in s^2.
    """
    on_host = isinstance(R, np.ndarray)
    if symmetric:
        x, V = np.linalg.eigh(R) if on_host else _eigh(R)
        found = tied.shrink(np.asarray(x), noise, rho, clip=True)
        return (V * found) @ V.T if on_host else _function(V, jnp.asarray(found))
    x, V = np.linalg.eigh(R.T @ R) if on_host else _eigh(_square(R))
    s = np.sqrt(np.maximum(np.asarray(x), SMALLEST**2 * max(float(x[-1]), noise)))
    ratio = singular.shrink(s, noise, rho, clip=True) / s
    return R @ ((V * ratio) @ V.T) if on_host else _product(R, _function(V, jnp.asarray(ratio)))


@jax.jit
def _eigh(R: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, V = jnp.linalg.eigh(R)
    return x, V


@jax.jit
def _product(A: jax.Array, B: jax.Array) -> jax.Array:
    product: jax.Array = jnp.matmul(A, B, precision=jax.lax.Precision.HIGHEST)
    return product


@jax.jit
def _square(R: jax.Array) -> jax.Array:
    square: jax.Array = _product(R.T, R)
    return square


@jax.jit
def _function(V: jax.Array, x: jax.Array) -> jax.Array:
    """V diag(x) V^T."""
    result: jax.Array = _product(V * x, V.T)
    return result
