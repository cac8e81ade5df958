r"""A function of a symmetric matrix by matrix products alone, for devices that diagonalise slowly.

.. math:: f(M) \approx \sum_{k<n} c_k T_k(X), \qquad X = \frac{2M - a - b}{b - a},

with the Chebyshev series of f on an interval [a, b] that holds the spectrum. In blocks of s terms, with
:math:`T_{js+i} = 2T_iT_{js} - T_{js-i}`, it is a series in :math:`T_s(X)` and takes s + n/s - 2 products
(M. Paterson and L. Stockmeyer, 1973).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.fft import dct
from scipy.linalg import eigvalsh_tridiagonal

# Numbers of terms, each a program that is compiled once: 10, 14, 22 and 30 products. The coefficients beyond the last
# are computed too, from more nodes, so that the rest of a series is known.
TERMS = ((8, 4), (8, 8), (16, 8), (16, 16))  # length and number of blocks
NODES = 2048
# Steps of Lanczos, and the share of its interval by which the spectrum may reach beyond: outside [a, b] a Chebyshev
# polynomial grows exponentially, so that the interval must not be too small.
STEPS, MARGIN = 30, 0.02


def function(
    M: jax.Array, f: Callable[[np.ndarray], np.ndarray], allowed: float, bulk: tuple[float, float]
) -> jax.Array | None:
    """f(M) with a mean square error of about ``allowed`` for each eigenvalue; None where that takes too many terms.

    Most eigenvalues are expected in ``bulk``: where f needs too many terms there, nothing is asked of M.
    """
    if terms(series(f, *bulk), allowed) is None:
        return None
    low, high = interval(M)
    c = series(f, low, high)
    if (found := terms(c, allowed)) is None:
        return None
    size, count = found
    value = _evaluate(M, low, high, jnp.asarray(blocks(c[: size * count], size)))
    # a value of f is at most the sum of |c|: a larger one comes from an eigenvalue beyond the interval
    return value if float(jnp.vdot(value, value)) <= len(M) * np.abs(c).sum() ** 2 else None


def terms(c: np.ndarray, allowed: float) -> tuple[int, int] | None:
    """The fewest terms beyond which the series has a mean square of at most ``allowed``."""
    rest = np.cumsum(c[::-1] ** 2)[::-1] / 2
    return next((found for found in TERMS if rest[found[0] * found[1]] <= allowed), None)


def series(f: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> np.ndarray:
    """Chebyshev coefficients of f on [low, high], from its values at the Chebyshev nodes.

    >>> np.round(series(lambda x: x**2, -1.0, 1.0)[:4], 12) + 0.0
    array([0.5, 0. , 0.5, 0. ])
    """
    nodes = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    c = dct(f((high + low + (high - low) * nodes) / 2), type=2) / NODES
    c[0] /= 2
    return np.asarray(c)


def blocks(c: np.ndarray, size: int) -> np.ndarray:
    """Coefficients a of the same polynomial as :math:`\\sum_j [\\sum_i a_{ji} T_i(X)] T_j(T_s(X))`, one row a block."""
    a = c.reshape(-1, size).copy()
    for j in range(len(a) - 1, 0, -1):
        a[j - 1, :0:-1] -= a[j, 1:]
        a[j, 1:] *= 2
    return a


def interval(M: jax.Array) -> tuple[float, float]:
    """Ends between which the eigenvalues of M lie: the outer Ritz values of Lanczos and a margin beyond."""
    on, off = (np.asarray(part) for part in _lanczos(M))
    kept = int(np.argmax(np.r_[off[:-1] < 1e-12 * np.abs(on).max(), True]))  # an invariant subspace ends it
    values = eigvalsh_tridiagonal(on[: kept + 1], off[:kept])
    margin = MARGIN * (max(values[-1] - values[0], 1e-3 * np.abs(values).max()) or 1.0)
    return float(values[0] - margin), float(values[-1] + margin)


@jax.jit
def _lanczos(M: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Diagonal and off-diagonal of M in the Krylov space of a random vector."""
    start = jax.random.normal(jax.random.key(0), (len(M),), M.dtype)

    def step(state: Any, _: None) -> Any:
        before, v, size = state
        w = M @ v - size * before
        on = w @ v
        w = w - on * v
        off = jnp.linalg.norm(w)
        return (v, w / jnp.maximum(off, np.finfo(np.float64).tiny), off), (on, off)

    first = (jnp.zeros_like(start), start / jnp.linalg.norm(start), jnp.zeros((), M.dtype))
    _, (diagonal, beside) = jax.lax.scan(step, first, length=min(STEPS, len(M)))
    return diagonal, beside


@jax.jit
def _evaluate(M: jax.Array, low: Any, high: Any, a: jax.Array) -> jax.Array:
    """The polynomial of :func:`blocks`, by Clenshaw's recurrence in T_s(X)."""
    one = jnp.eye(len(M), dtype=M.dtype)
    X = (2 * M - (low + high) * one) / (high - low)

    def times(A: jax.Array, B: jax.Array) -> jax.Array:
        return jnp.matmul(A, B, precision=jax.lax.Precision.HIGHEST)

    def raised(pair: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        before, last = pair
        return (last, 2 * times(X, last) - before), before

    (highest, Y), lower = jax.lax.scan(raised, (one, X), length=a.shape[1] - 1)
    powers = jnp.concatenate([lower, highest[None]])

    def summed(pair: tuple[jax.Array, jax.Array], row: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        last, before = pair
        return (jnp.tensordot(row, powers, 1) + 2 * times(Y, last) - before, last), None

    first = (jnp.tensordot(a[-1], powers, 1), jnp.zeros_like(one))
    (last, before), _ = jax.lax.scan(summed, first, a[-2:0:-1])
    result: jax.Array = jnp.tensordot(a[0], powers, 1) + times(Y, last) - before
    return result
