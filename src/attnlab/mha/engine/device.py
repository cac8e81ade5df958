r"""The same Levenberg-Marquardt step in JAX, for accelerators: one compiled program, arrays stay on the device.

On a CPU the products through BLAS (:mod:`attnlab.mha.engine.normal_equations`) are faster; the formulas are those
there. All rows are processed in chunks of one size, the last one padded with rows of weight zero.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg
from jaxtyping import Array, Float

from attnlab.common.precision import float64
from attnlab.mha.engine.damped import MARQUARDT, Budget, StopRule, damped_steps
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.engine.normal_equations import coordinate_pairs
from attnlab.mha.engine.variable_projection import RIDGE, chunk_rows
from attnlab.mha.layer import Rows


class Chunked(NamedTuple):
    """Rows on the device: ``Q (c, r, d)``, ``K (c, r, k, d)``, ``Y (c, r, o)`` and their weights 1 or 0."""

    Q: Float[Array, "c r d"]
    K: Float[Array, "c r k d"]
    Y: Float[Array, "c r o"]
    weight: Float[Array, "c r"]


def place(rows: Rows, m: int) -> Chunked:
    """Move rows to the default device, cut into chunks that keep the step's temporaries small."""
    r, d = rows.Q.shape
    # A chunk need not fit a cache here, and an accelerator is busy only with large products.
    size = min(r, 16 * chunk_rows(2 * m * d * d))
    parts = ceil(r / size)
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

    def mean_keys(chunk: Chunked) -> Array:
        return _means(chunk.Q, chunk.K, theta)[1].reshape(-1, m * d) * chunk.weight[:, None]

    def add(total: tuple[Array, Array], chunk: Chunked) -> tuple[tuple[Array, Array], None]:
        Z = mean_keys(chunk)
        return (total[0] + Z.T @ Z, total[1] + Z.T @ chunk.Y), None

    empty = (jnp.zeros((m * d, m * d)), jnp.zeros((m * d, rows.Y.shape[-1])))
    (gram, sides), _ = jax.lax.scan(add, empty, rows)
    # Two heads that meet during a fit have the same keys, and the Gram matrix is singular.
    gram = gram + RIDGE * jnp.trace(gram) / (m * d) * jnp.eye(m * d)
    factor = linalg.cholesky(gram, lower=True)
    w = linalg.cho_solve((factor, True), sides)

    def correct(total: Array, chunk: Chunked) -> tuple[Array, None]:
        Z = mean_keys(chunk)
        return total + Z.T @ (chunk.Y - Z @ w), None

    # The CPU's step of refinement, with another pass over the rows: Z is not kept.
    w = w + linalg.cho_solve((factor, True), jax.lax.scan(correct, jnp.zeros_like(w), rows)[0])

    def error(total: Array, chunk: Chunked) -> tuple[Array, None]:
        return total + jnp.sum((chunk.Y - mean_keys(chunk) @ w) ** 2), None

    left = jax.lax.scan(error, jnp.zeros(()), rows)[0]
    return w.reshape(m, d, -1), factor, left / jnp.sum(rows.Y**2)


@jax.jit
def normal_equations(rows: Chunked, theta: Array, w: Array, factor: Array) -> tuple[Array, Array]:
    """Gauss-Newton matrix and right-hand side of the projected problem, from the packed pairs of the CPU's version."""
    m, d, o = w.shape
    pairs, all_pairs = coordinate_pairs(d), coordinate_pairs(d * m)
    t, size = len(pairs.first), m * d * d
    Totals = tuple[Array, Array, Array]

    def add(total: Totals, chunk: Chunked) -> tuple[Totals, None]:
        r, Q, keys = len(chunk.Q), chunk.Q * chunk.weight[:, None], chunk.K.transpose(0, 2, 1)
        p, z = _means(chunk.Q, chunk.K, theta)
        weighted = p.transpose(0, 2, 1)[..., None] * (chunk.K[:, :, None] - z[:, None])
        values = jnp.einsum("rkmq,mqo->rkmo", weighted, w)
        C = (keys @ weighted.reshape(r, -1, m * d)).reshape(r, d, m, d)
        M = (keys @ values.reshape(r, -1, m * o)).reshape(r, d * m, o)
        packed_MM = (M @ M.transpose(0, 2, 1)).reshape(r, -1)[:, all_pairs.flat]
        # One factor of each product has the weight of the row, so that padding counts nowhere.
        QQ = Q[:, pairs.first] * chunk.Q[:, pairs.second]
        QZ = (Q[:, :, None] * z.reshape(r, 1, m * d)).reshape(r, size)
        packed_C = C.transpose(0, 2, 1, 3).reshape(r, m, d * d)[..., pairs.flat].reshape(r, m * t)
        left = chunk.Y - z.reshape(r, m * d) @ w.reshape(m * d, o)
        slope = Q.T @ (M @ left[:, :, None]).reshape(r, d * m)
        return (total[0] + QQ.T @ packed_MM, total[1] + packed_C.T @ QZ, total[2] + slope), None

    empty = (jnp.zeros((t, len(all_pairs.first))), jnp.zeros((m * t, size)), jnp.zeros((d, d * m)))
    (products, cross, slope), _ = jax.lax.scan(add, empty, rows)
    whole = products[pairs.number][:, :, all_pairs.number].reshape(d, d, d, m, d, m)
    H = whole.transpose(3, 0, 2, 5, 1, 4).reshape(size, size)
    solved = linalg.solve_triangular(factor, cross.reshape(-1, m * d).T, lower=True)
    # axes: head and coordinate of z, then i, (q, q'), p
    unpacked = solved.reshape(m * d, m, t, d)[:, :, pairs.number]
    U = jnp.einsum("aiqup,ius->asipq", unpacked, w).reshape(m * d * o, size)
    return H - U.T @ U, slope.reshape(d, d, m).transpose(2, 0, 1).reshape(-1)


@jax.jit
def damped_step(H: Array, g: Array, mu: Array) -> Array:
    """Solution of (H + mu diag H) x = g."""
    # Marquardt's scaling by diag H is invariant under units of the entries; one without curvature still needs a
    # damping.
    diagonal = jnp.maximum(jnp.diag(H), np.finfo(np.float64).eps * jnp.trace(H) / len(g))
    factor = linalg.cho_factor(H + jnp.diag(mu * diagonal), lower=True)
    return linalg.cho_solve(factor, g)


@float64
def levenberg_marquardt_on_device(rows: Rows, theta: np.ndarray, *, budget: Budget | None = None, **limits: Any) -> Fit:
    """Fit the layer from a start on JAX's default device; limits as in :func:`levenberg_marquardt`.

    With a budget its deadline counts, which compilation moves.
    """
    first, budget = jnp.asarray(theta), budget or Budget(limits.get("deadline", np.inf))
    placed = place(rows, len(theta))
    with budget.paused():
        _compile(placed, first)
    watch = StopRule(**{**limits, "deadline": budget.deadline})

    def steps_from(at: _Point) -> Callable[[float], _Point]:
        H, g = normal_equations(placed, at.theta, at.w, at.factor)
        # In JAX a factor that fails is NaN and no exception: so is the error, which is then not lower, and mu grows.
        return lambda mu: _Point.at(placed, at.theta + damped_step(H, g, jnp.asarray(mu)).reshape(theta.shape))

    end, history, reason = damped_steps(_Point.at(placed, first), steps_from, watch)
    return Fit(np.asarray(end.theta), np.asarray(end.w), end.error, len(history) - 1, reason, tuple(history))


def _compile(placed: Chunked, theta: Array) -> None:
    """Compile the three programs of a step for these shapes."""
    w, factor, _ = jax.eval_shape(regress, placed, theta)
    H, g = jax.eval_shape(normal_equations, placed, theta, w, factor)
    regress.lower(placed, theta).compile()
    normal_equations.lower(placed, theta, w, factor).compile()
    damped_step.lower(H, g, jnp.asarray(MARQUARDT[0])).compile()


class _Point(NamedTuple):
    """Attention matrices on the device and the regression at them."""

    theta: Array
    w: Array
    factor: Array
    error: float

    @classmethod
    def at(cls, rows: Chunked, theta: Array) -> _Point:
        w, factor, error = regress(rows, theta)
        return cls(theta, w, factor, float(error))
