"""The prior step of AMP: eigenvalues or singular values of R in float64, shrunk by the spectrum of the prior.

On an accelerator eigenvectors take as long as a hundred products: there the map is a polynomial of R, while the noise
is not small, with an error far below that of the estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.messages import polynomial
from attnlab.aim.spectrum import singular, tied
from attnlab.aim.spectrum.quadrature_rules import NO_NOISE

SMALLEST = 1e-8  # singular value, in units of the largest, that the root of an eigenvalue of R^T R resolves
# Share of the error of the posterior mean that a polynomial may add to it, and the largest width it is used at: beyond,
# the eigenvectors are a small part of an iteration, and the powers of R take memory.
SHARE, WIDEST = 1e-8, 2048


def denoise(R: Any, noise: float, rho: float, *, symmetric: bool = True) -> Any:
    """The posterior mean of the planted matrix given R, where R lives: LAPACK for NumPy arrays, otherwise the device,
    from which only d numbers come to the host. Values outside the expected bulk are moved to its ends first.

    U xi(s) V^T = R V (xi(s)/s) V^T needs the eigenvectors of R^T R alone, in half the time of U, s and V. The
    square costs no digits that count: xi(s)/s is smooth in s^2.
    """
    noise = max(noise, NO_NOISE)
    if symmetric:
        allowed = SHARE * float(tied.denoising_mmse(noise, rho))
        ends = tied.edges(noise, rho)
        return _function(R, lambda x: tied.shrink(x, noise, rho, clip=True), allowed, (ends[0], ends[-1]))

    def ratio(x: np.ndarray) -> np.ndarray:
        # Rounding may make eigenvalues of R^T R negative, and ratio divides by s; noise is for R = 0.
        s = np.sqrt(np.maximum(x, SMALLEST**2 * max(x.max(), noise)))
        return np.asarray(singular.shrink(s, noise, rho, clip=True) / s)

    # R multiplies the function of R^T R, and its error with it
    allowed = SHARE * float(singular.denoising_mmse(noise, rho)) / (1 + noise)
    bulk = (0.0, singular.edges(noise, rho)[-1] ** 2)
    if isinstance(R, np.ndarray):
        return R @ _function(R.T @ R, ratio, allowed, bulk)
    return _product(R, _function(_square(R), ratio, allowed, bulk))


def _function(M: Any, f: Callable[[np.ndarray], np.ndarray], allowed: float, bulk: tuple[float, float]) -> Any:
    """f(M): by products on an accelerator where few suffice, otherwise from the eigenvectors."""
    if isinstance(M, np.ndarray):
        x, V = np.linalg.eigh(M)
        return (V * f(x)) @ V.T
    if _multiplies(M) and (found := polynomial.function(M, f, allowed, bulk)) is not None:
        return found
    x, V = _eigh(M)
    return _spectral(V, jnp.asarray(f(np.asarray(x))))


def _multiplies(M: jax.Array) -> bool:
    """Whether M is on a device that multiplies a hundred times faster than it diagonalises."""
    return len(M) <= WIDEST and all(device.platform != "cpu" for device in M.devices())


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
def _spectral(V: jax.Array, x: jax.Array) -> jax.Array:
    """V diag(x) V^T."""
    result: jax.Array = _product(V * x, V.T)
    return result
