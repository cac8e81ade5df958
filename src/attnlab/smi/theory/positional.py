r"""Positional against semantic attention (arXiv:2402.03902): which of two minima a tied attention layer learns.

Two tokens x_l = +-mu + noise of size sigma; the target mixes attention by content with attention by place,
(1 - w) softmax(t t^T) + w A_0 with t = X W*; the student is softmax(o o^T) with o = X W, fitted by least squares with a
ridge.

======  ==================================================================================
symbol  meaning
======  ==================================================================================
q       self-overlap of the student
m       overlap with the means of the tokens: attention by place (positional)
theta   overlap with the planted direction: attention by content (semantic)
V       response of the student to a small field
======  ==================================================================================
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.gaussian import gauss_hermite
from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.common.validation import finite_array, integer, one_of, positive, real

POSITIONS = ((0.6, 0.4), (0.4, 0.6))
# q, m, theta and V, near the fixed points of the default parameters at alpha = 2.
STARTS = {"semantic": (0.1, 0.001, 0.15, 12.0), "positional": (0.05, 0.25, 0.001, 12.0)}
NEWTON_STEPS = 12
KEEP = 0.8  # share of the old overlaps in a step; with less the iteration leaves the basin of its start


class _Overlaps(NamedTuple):
    q: Any
    m: Any
    theta: Any
    V: Any


class _Law(NamedTuple):
    alpha: float
    sigma: float
    ridge: float
    mix: float
    positions: Any


@dataclass(frozen=True, eq=False, repr=False)
class PositionalSemantic(Prediction):
    """A minimum: ``value`` is the mean squared test error of an entry; q, m, theta and V describe the student."""

    q: float = np.nan
    m: float = np.nan
    theta: float = np.nan
    V: float = np.nan
    n_iter: int = 0
    residual: float = np.nan


def _rows(x: jax.Array) -> jax.Array:
    """The first entries of both rows of softmax(x x^T): a row of two tokens has one free number."""
    gap = x[0] - x[1]
    return jnp.stack([jax.nn.sigmoid(x[0] * gap), jax.nn.sigmoid(x[1] * gap)])


def _proximal(o: jax.Array, target: jax.Array, V: Any, sigma: Any, starts: list[jax.Array]) -> jax.Array:
    """argmin |x - o|^2 / V + sigma^2 |softmax(x x^T) - target|^2, the lowest minimum from several starts."""

    def cost(x: jax.Array) -> jax.Array:
        # Both entries of a row miss the target by the same amount.
        found: jax.Array = jnp.sum((x - o) ** 2) / V + 2 * sigma**2 * jnp.sum((_rows(x) - target) ** 2)
        return found

    slope, curve = jax.grad(cost), jax.hessian(cost)

    def step(_: Any, x: jax.Array) -> jax.Array:
        (a, b), (_, c) = curve(x)
        g = slope(x)
        # A shift makes the 2 x 2 matrix positive: the smallest eigenvalue stays above that of the ridge term.
        low = 0.5 * (a + c) - jnp.hypot(0.5 * (a - c), b)
        shift = jnp.maximum(1 / V - low, 0.0)
        a, c = a + shift, c + shift
        move = -jnp.stack([c * g[0] - b * g[1], a * g[1] - b * g[0]]) / (a * c - b * b)
        tried = x + jnp.array([1.0, 0.3, 0.05, 0.0])[:, None] * move
        return jnp.asarray(tried[jnp.argmin(jax.vmap(cost)(tried))])

    ends = jax.vmap(lambda x: jax.lax.fori_loop(0, NEWTON_STEPS, step, x))(jnp.stack(starts))
    return jnp.asarray(ends[jnp.argmin(jax.vmap(cost)(ends))])


@functools.partial(jax.jit, static_argnames="nodes")
def _step(law: _Law, at: _Overlaps, nodes: int) -> tuple[_Overlaps, jax.Array]:
    """The next overlaps, and the squared test error of an entry at the present ones."""
    x, w = gauss_hermite(nodes)
    grid = jnp.asarray(list(itertools.product(x, repeat=4)))
    weight = jnp.asarray([np.prod(ws) for ws in itertools.product(w, repeat=4)])
    rho = law.sigma**2
    # Standard deviation of the target's index given the student's; the step divides by it.
    rest = jnp.sqrt(jnp.maximum(rho - at.theta**2 / at.q, 1e-12))
    place = law.positions[:, 0]

    def one(numbers: jax.Array) -> tuple[jax.Array, ...]:
        xi, eta = numbers[:2], numbers[2:]
        o = jnp.sqrt(at.q) * xi + at.m * jnp.array([1.0, -1.0])
        t = at.theta / jnp.sqrt(at.q) * xi + rest * eta
        target = (1 - law.mix) * _rows(t) + law.mix * place
        # Minima lie near the student's indices and near those of the target, of which the softmax does not show the
        # sign.
        move = _proximal(o, target, at.V, law.sigma, [o, t, -t]) - o
        error = jnp.mean((_rows(o) - target) ** 2)
        return move @ move, move[0] - move[1], move @ eta, move @ xi, error

    square, shift, by_eta, by_xi, error = (weight @ each for each in jax.lax.map(one, grid, batch_size=2048))
    qh, mh = law.alpha * square / at.V**2, law.alpha * shift / at.V
    thh = law.alpha * by_eta / (at.V * rest)
    Vh = -law.alpha * by_xi / (at.V * jnp.sqrt(at.q)) + at.theta * thh / at.q
    D = law.ridge + Vh * rho
    q = (qh * rho + mh**2 + thh**2 * rho * rho) * rho / D**2
    return _Overlaps(q, mh / D, rho * thh * rho / D, rho / D), error


@float64
def positional_semantic(
    alpha: float,
    start: str = "semantic",
    *,
    sigma: float = 0.5,
    ridge: float = 0.01,
    mix: float = 0.3,
    positions: ArrayLike = POSITIONS,
    nodes: int = 12,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> PositionalSemantic:
    r"""Squared test error of an entry at the semantic or positional minimum of a tied attention layer.

    .. math:: \min_W \sum_\mu \big|\mathrm{softmax}(X W W^\top X^\top) - (1 - w)\,\mathrm{softmax}(t t^\top) - w A_0
              \big|_F^2 + \tfrac\lambda2 |W|^2

    Parameters
    ----------
    alpha : sequences per dimension.
    start : ``semantic`` or ``positional``, the basin in which the iteration begins.
    sigma, ridge, mix, positions : noise of the tokens, lambda, w and A_0.
    nodes : Gauss-Hermite nodes for each of four Gaussian variables.

    Source: arXiv:2402.03902.  Status: heuristic: the loss is not convex; replica symmetry is assumed.

    >>> found = positional_semantic(2.0, nodes=6)
    >>> bool(found.theta > found.m)
    True
    """
    A = finite_array("positions", np.asarray(positions, dtype=float), shape=(2, 2))
    if not np.allclose(A.sum(axis=1), 1) or (A < 0).any():
        raise ValueError(f"positions must have rows that are probabilities, got {positions!r}")
    mix = real("mix", mix, low=0.0, high=1.0)
    law = _Law(positive("alpha", alpha), positive("sigma", sigma), positive("ridge", ridge), mix, jnp.asarray(A))
    nodes, tol = integer("nodes", nodes, low=4), positive("tol", tol)
    at = _Overlaps(*STARTS[one_of("start", start, STARTS)])
    n_iter, residual = 0, np.inf
    for _ in range(integer("max_iter", max_iter, low=1)):
        n_iter += 1
        new, error = _step(law, at, nodes)
        # V is of order ten; all overlaps are compared with the size of their own.
        residual = max(abs(float(a) - float(b)) / max(abs(float(b)), 0.01) for a, b in zip(new, at, strict=True))
        at = _Overlaps(*(KEEP * float(b) + (1 - KEEP) * float(a) for a, b in zip(new, at, strict=True)))
        if not residual > tol:
            break
    q, m, theta, V = map(float, at)
    return PositionalSemantic(
        float(error), 0.0, "heuristic", residual <= tol, q=q, m=m, theta=theta, V=V, n_iter=n_iter, residual=residual
    )
