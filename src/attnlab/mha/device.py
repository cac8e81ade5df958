r"""The same Levenberg-Marquardt step in JAX, for accelerators: one compiled program, arrays stay on the device.

On a CPU the products through BLAS (:mod:`attnlab.mha.varpro`) are faster; the formulas are those of that module. All
rows are processed in chunks of one size, the last one padded with rows of weight zero.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg
from jaxtyping import Array, Float

from attnlab.common.precision import float64
from attnlab.mha.layer import Rows
from attnlab.mha.levenberg_marquardt import Fit
from attnlab.mha.varpro import RIDGE, chunk_rows


class Chunked(NamedTuple):
    """Rows on the device: ``Q (c, r, d)``, ``K (c, r, k, d)``, ``Y (c, r, o)`` and their weights 1 or 0."""

    Q: Float[Array, "c r d"]
    K: Float[Array, "c r k d"]
    Y: Float[Array, "c r o"]
    weight: Float[Array, "c r"]


def place(rows: Rows, m: int) -> Chunked:
    """Move rows to the default device, cut into chunks that keep the step's temporaries small."""
    r, d = rows.Q.shape
    size = min(r, 16 * chunk_rows(2 * m * d * d))
    parts = -(-r // size)
    missing = parts * size - r

    def cut(array: np.ndarray) -> Array:
        padded = np.concatenate([array, np.zeros((missing, *array.shape[1:]))])
        return jnp.asarray(padded.reshape(parts, size, *array.shape[1:]))

    return Chunked(cut(rows.Q), cut(rows.K), cut(rows.Y), cut(np.ones(r)))


def _means(Q: Array, K: Array, theta: Array) -> tuple[Array, Array]:
    """Patterns (r, m, k) and mean keys (r, m, d)."""
    logits = jnp.einsum("rmq,rkq->rmk", jnp.einsum("rp,mpq->rmq", Q, theta), K)
    patterns = jax.nn.softmax(logits, axis=-1)
    return patterns, jnp.einsum("rmk,rkd->rmd", patterns, K)


@jax.jit
def regress(rows: Chunked, theta: Float[Array, "m d d"]) -> tuple[Array, Array, Array]:
    """Projections ``W (m, d, o)``, the factor of Z^T Z, and the relative squared error."""
    m, d, _ = theta.shape

    def add(total: tuple[Array, Array], chunk: Chunked) -> tuple[tuple[Array, Array], None]:
        Z = _means(chunk.Q, chunk.K, theta)[1].reshape(-1, m * d) * chunk.weight[:, None]
        return (total[0] + Z.T @ Z, total[1] + Z.T @ chunk.Y), None

    empty = (jnp.zeros((m * d, m * d)), jnp.zeros((m * d, rows.Y.shape[-1])))
    (gram, sides), _ = jax.lax.scan(add, empty, rows)
    gram = gram + RIDGE * jnp.trace(gram) / (m * d) * jnp.eye(m * d)
    factor = linalg.cholesky(gram, lower=True)
    w = linalg.cho_solve((factor, True), sides)

    def correct(total: Array, chunk: Chunked) -> tuple[Array, None]:
        Z = _means(chunk.Q, chunk.K, theta)[1].reshape(-1, m * d) * chunk.weight[:, None]
        return total + Z.T @ (chunk.Y - Z @ w), None

    w = w + linalg.cho_solve((factor, True), jax.lax.scan(correct, jnp.zeros_like(w), rows)[0])

    def error(total: Array, chunk: Chunked) -> tuple[Array, None]:
        Z = _means(chunk.Q, chunk.K, theta)[1].reshape(-1, m * d) * chunk.weight[:, None]
        return total + jnp.sum((chunk.Y - Z @ w) ** 2), None

    left = jax.lax.scan(error, jnp.zeros(()), rows)[0]
    return w.reshape(m, d, -1), factor, left / jnp.sum(rows.Y**2)


@jax.jit
def normal_equations(rows: Chunked, theta: Array, w: Array, factor: Array) -> tuple[Array, Array]:
    """Gauss-Newton matrix and right-hand side of the projected problem."""
    m, d, o = w.shape
    first, second = np.triu_indices(d)
    number = np.zeros((d, d), dtype=int)
    number[first, second] = number[second, first] = np.arange(len(first))
    Totals = tuple[Array, Array, Array]

    def add(total: Totals, chunk: Chunked) -> tuple[Totals, None]:
        Q, K = chunk.Q * chunk.weight[:, None], chunk.K
        p, z = _means(chunk.Q, K, theta)
        centred = K[:, None] - z[:, :, None]
        C = jnp.einsum("rmk,rmkp,rmkq->mrpq", p, centred, centred, optimize=True)
        M = jnp.einsum("mrpq,mqo->mrpo", C, w)
        left = chunk.Y - z.reshape(-1, m * d) @ w.reshape(m * d, o)
        g = jnp.einsum("rp,mrq->mpq", Q, jnp.einsum("mrqo,ro->mrq", M, left))
        products = jnp.einsum("irpo,jrqo->rijpq", M, M).reshape(len(Q), -1)
        queries = Q[:, first] * Q[:, second]
        attended = (z.reshape(-1, m * d, 1) * Q[:, None]).reshape(len(Q), -1)
        packed = C[:, :, first, second].transpose(1, 0, 2).reshape(len(Q), -1)
        return (total[0] + queries.T @ products, total[1] + attended.T @ packed, total[2] + g), None

    empty = (
        jnp.zeros((len(first), m * m * d * d)),
        jnp.zeros((m * d * d, m * len(first))),
        jnp.zeros((m, d, d)),
    )
    (products, cross, g), _ = jax.lax.scan(add, empty, rows)
    whole = products.reshape(-1, m, m, d, d)[number]
    H = whole.transpose(2, 0, 4, 3, 1, 5).reshape(m * d * d, m * d * d)
    packed = linalg.solve_triangular(factor, cross.reshape(m * d, -1), lower=True)
    by_head = packed.reshape(m * d, d, m, -1)[..., number]
    U = jnp.einsum("apmqt,mto->aompq", by_head, w).reshape(m * d * o, m * d * d)
    return H - U.T @ U, g.reshape(-1)


@jax.jit
def damped_step(H: Array, g: Array, mu: Array) -> Array:
    """Solution of (H + mu diag H) x = g."""
    diagonal = jnp.maximum(jnp.diag(H), np.finfo(np.float64).eps * jnp.trace(H) / len(g))
    factor = linalg.cho_factor(H + jnp.diag(mu * diagonal), lower=True)
    return linalg.cho_solve(factor, g)


@float64
def levenberg_marquardt_on_device(
    rows: Rows,
    theta: np.ndarray,
    *,
    max_steps: int = 60,
    tolerance: float = 1e-22,
    progress: float = 1e-3,
    patience: int = 8,
    deadline: float = np.inf,
) -> Fit:
    """Fit the layer from a start on JAX's default device; arguments as in :func:`levenberg_marquardt`."""
    placed = place(rows, len(theta))
    at, mu, slow, converged = jnp.asarray(theta), 1e-2, 0, False
    w, factor, error = regress(placed, at)
    history = [float(error)]
    while not converged and len(history) <= max_steps and time.monotonic() < deadline:
        H, g = normal_equations(placed, at, w, factor)
        for _ in range(8):
            trial = at + damped_step(H, g, jnp.asarray(mu)).reshape(at.shape)
            moved = regress(placed, trial)
            if float(moved[2]) < history[-1]:
                break
            mu *= 4
        else:
            converged = True
            break
        at, mu = trial, max(mu / 5, 1e-15)
        w, factor, error = moved
        history.append(float(error))
        slow = slow + 1 if history[-1] > (1 - progress) * history[-2] else 0
        converged = history[-1] < tolerance or slow >= patience
    return Fit(np.asarray(at), np.asarray(w), history[-1], len(history) - 1, converged, tuple(history))
