r"""Heads of low rank from examples: factors :math:`\Theta_i = A_i B_i^\top`, Gauss-Newton by conjugate gradients.

W is the regression on the mean keys Z of all heads. At a point, Z is linearised once; with
:math:`P = I - Z(Z^\top Z)^{-1}Z^\top` the projected Jacobian and its transpose are products,

.. math:: Jv = P(\mathrm{d}Z(v)\,W), \qquad J^\top u = \mathrm{d}Z^\top\big((Pu)\,W^\top\big),

so that nothing of the size of :math:`(m d^2)^2` is ever made: memory is about R m (k + 3 d + 4 r) numbers for R = n k
rows, and a product costs :math:`2R[m(4rd + 4kr + 2ko) + 2mdo]` flops. After each step the factors are balanced,
:math:`A^\top A = B^\top B`: the freedom :math:`A \to AG,\ B \to BG^{-\top}` would cost the conjugate gradients their
convergence.

Source: derived here.  Status: heuristic (a local search from random starts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg
from jaxtyping import Array

from attnlab.common.precision import float64
from attnlab.mha.engine.damped import Budget, StopRule, damped_steps
from attnlab.mha.engine.levenberg_marquardt import Fit
from attnlab.mha.engine.place import padded
from attnlab.mha.engine.race import EXACT
from attnlab.mha.engine.variable_projection import RIDGE

# A start ends below this error, or after six steps that gain less than a thousandth each.
TOL, PROGRESS, PATIENCE, MAX_ITER = 1e-20, 1e-3, 6, 150
STRENGTHS = (1.0, 3.0, 0.3)
# A step need not be exact: the loop around it keeps it only if the error falls.
_CG_STEPS, _CG_TOL = 80, 0.05
# Random signs for the diagonal, and its least share of the largest block: with few signs an estimate may be negative.
_PROBES, _FLOOR = 4, 1e-8
_DAMPING, _TRIES = (1e-2, 4.0, 4.0), 6
# Two starts whose errors are this close have both met the floor of the noise.
_SAME = 1e-2

Factors = Any  # a pair (A, B) of arrays (m, d, r)


class Linear(NamedTuple):
    """The regression at a point: W (m d, o), Cholesky factor of Z^T Z, residual, relative squared error."""

    W: Array
    factor: Array
    left: Array
    nmse: Array


def _patterns(factors: Factors, X: Array) -> Array:
    """Patterns of all heads, ``(n, k, m k)``; attention of all tokens of an example at once."""
    A, B = factors
    n, k, _ = X.shape
    queries, keys = (jnp.einsum("nkd,mdr->nmkr", X, F) for F in (A, B))
    patterns = jax.nn.softmax(queries @ keys.transpose(0, 1, 3, 2), axis=-1)
    return patterns.transpose(0, 2, 1, 3).reshape(n, k, -1)


def _mean_keys(factors: Factors, X: Array) -> Array:
    """Mean keys of all heads, ``(n k, m d)``."""
    n, k, _ = X.shape
    return (_patterns(factors, X).reshape(n, -1, k) @ X).reshape(n * k, -1)


def _regression(Z: Array, Y: Array) -> Linear:
    gram = Z.T @ Z
    gram = gram + (RIDGE * jnp.trace(gram) / len(gram) + np.finfo(float).tiny) * jnp.eye(len(gram))
    factor = linalg.cholesky(gram, lower=True)
    W = linalg.cho_solve((factor, True), Z.T @ Y)
    # One step of refinement: the equations square the condition of Z, and the ridge moves their solution.
    W = W + linalg.cho_solve((factor, True), Z.T @ (Y - Z @ W))
    left = Y - Z @ W
    return Linear(W, factor, left, jnp.sum(left**2) / jnp.maximum(jnp.sum(Y**2), np.finfo(float).tiny))


@jax.jit
def evaluate(factors: Factors, X: Array, Y: Array) -> tuple[Array, Array]:
    """Projections and relative squared error."""
    found = _regression(_mean_keys(factors, X), Y)
    return found.W, found.nmse


def products(factors: Factors, X: Array, Y: Array) -> tuple[Callable[[Factors], Factors], Factors]:
    """The function v -> J^T J v and the right-hand side J^T R."""
    Z = _mean_keys(factors, X)
    found = _regression(Z, Y)
    n, k, d = X.shape
    # Patterns times the values X W take k numbers a head where mean keys times W take d.
    values = jnp.einsum("nkd,mdo->nmko", X, found.W.reshape(-1, d, Y.shape[1])).reshape(n, -1, Y.shape[1])
    _, push = jax.linearize(lambda f: (_patterns(f, X) @ values).reshape(n * k, -1), factors)
    pull = jax.linear_transpose(push, factors)
    # Orthonormal columns: one triangular solve a point in place of two a product.
    basis = linalg.solve_triangular(found.factor, Z.T, lower=True)

    def product(v: Factors) -> Factors:
        moved = push(v)
        return pull(moved - basis.T @ (basis @ moved))[0]

    return product, pull(found.left)[0]


@jax.jit
def direction(factors: Factors, X: Array, Y: Array, mu: Array, key: Array) -> tuple[Factors, Any]:
    """Solution of (J^T J + mu D) x = J^T R by preconditioned conjugate gradients, and their number.

    D has one number for each head and factor: the mean diagonal of its block, from a few random signs.
    """
    product, slope = products(factors, X, Y)
    D = _block_diagonal(product, factors, key)

    def dot(a: Factors, b: Factors) -> Any:
        return sum(jnp.sum(x * y) for x, y in zip(a, b, strict=True))

    def scaled(v: Factors) -> Factors:
        return tuple(x / s for x, s in zip(v, D, strict=True))

    def damped(v: Factors) -> Factors:
        return jax.tree.map(lambda p, x, s: p + mu * s * x, product(v), v, D)

    first = dot(slope, scaled(slope))

    def more(state: Any) -> Any:
        return (state[4] < _CG_STEPS) & (state[3] > _CG_TOL**2 * first)

    def step(state: Any) -> Any:
        x, r, p, size, number = state
        Ap = damped(p)
        length = size / dot(p, Ap)
        x, r = (jax.tree.map(lambda a, b, c=c: a + c * length * b, *ab) for ab, c in (((x, p), 1.0), ((r, Ap), -1.0)))
        z = scaled(r)
        following = dot(r, z)
        return x, r, jax.tree.map(lambda a, b: a + following / size * b, z, p), following, number + 1

    start = (jax.tree.map(jnp.zeros_like, factors), slope, scaled(slope), first, 0)
    x, _, _, _, number = jax.lax.while_loop(more, step, start)
    return x, number


def _block_diagonal(product: Callable[[Factors], Factors], factors: Factors, key: Array) -> Factors:
    def probe(one: Array) -> Factors:
        keys = jax.random.split(one, 2)
        signs = tuple(jax.random.rademacher(k, f.shape, dtype=f.dtype) for k, f in zip(keys, factors, strict=True))
        # Hutchinson: over random signs s the mean of s * (H s) is the diagonal of H.
        return jax.tree.map(lambda s, p: jnp.mean(s * p, axis=(1, 2), keepdims=True), signs, product(signs))

    # A loop of the program and not of Python: the product is compiled once and not for each probe.
    total = jax.tree.map(lambda b: jnp.sum(b, axis=0), jax.lax.map(probe, jax.random.split(key, _PROBES)))
    largest = jnp.maximum(jnp.max(total[0]), jnp.max(total[1]))
    return jax.tree.map(lambda t: jnp.maximum(t, _FLOOR * largest) / _PROBES, total)


@jax.jit
def balance(factors: Factors) -> Factors:
    """The same products A B^T with A^T A = B^T B."""
    # The singular values are those of the r x r product of both triangles, not of a d x d matrix.
    (left, lower), (right, other) = (jnp.linalg.qr(F) for F in factors)
    u, sizes, vt = jnp.linalg.svd(lower @ other.transpose(0, 2, 1))
    roots = jnp.sqrt(sizes)[:, None]
    return left @ u * roots, right @ vt.transpose(0, 2, 1) * roots


@float64
def fit_factors(X: np.ndarray, y: np.ndarray, start: tuple[np.ndarray, np.ndarray], budget: Budget, seed: int) -> Fit:
    """Fit the layer from a start on JAX's default device."""
    X, y = padded(X, y)
    tokens, Y = jnp.asarray(X), jnp.asarray(y.reshape(-1, y.shape[-1]))
    keys = (jax.random.fold_in(jax.random.key(seed), number) for number in count(1))

    def steps_from(at: _Point) -> Callable[[float], _Point]:
        # One key for all tries at a point, which then differ in mu alone.
        balanced, key = balance(at.factors), next(keys)

        def step(mu: float) -> _Point:
            move, _ = direction(balanced, tokens, Y, jnp.asarray(mu), key)
            return _Point.at(jax.tree.map(jnp.add, balanced, move), tokens, Y)

        return step

    factors = (jnp.asarray(start[0]), jnp.asarray(start[1]))
    with budget.paused():
        evaluate.lower(factors, tokens, Y).compile()
        balance.lower(factors).compile()
        direction.lower(factors, tokens, Y, jnp.asarray(_DAMPING[0]), jax.random.key(seed)).compile()
    watch = StopRule(MAX_ITER, TOL, PROGRESS, PATIENCE, budget.deadline)
    first = _Point.at(factors, tokens, Y)
    end, history, reason = damped_steps(first, steps_from, watch, damping=_DAMPING, tries=_TRIES)
    A, B = (np.asarray(f) for f in end.factors)
    m, d, _ = A.shape
    w = np.asarray(end.W).reshape(m, d, -1)
    return Fit(A @ B.transpose(0, 2, 1), w, end.error, len(history) - 1, reason, tuple(history))


class _Point(NamedTuple):
    """Factors, the projections at them and the relative squared error."""

    factors: Factors
    W: Array
    error: float

    @classmethod
    def at(cls, factors: Factors, X: Array, Y: Array) -> _Point:
        W, error = evaluate(factors, X, Y)
        return cls(factors, W, float(error))


def factor_starts(m: int, d: int, rank: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Random factors with |A B^T| about 1, 3 and 0.3 in turn."""
    while True:
        for strength in STRENGTHS:
            # An entry of A B^T has standard deviation size^2 sqrt(r), and there are d^2 of them.
            size = np.sqrt(strength / d / np.sqrt(rank))
            A, B = size * rng.standard_normal((2, m, d, rank))
            yield A, B


def race_factors(
    X: np.ndarray, y: np.ndarray, m: int, rank: int, *, n_starts: int, rng: np.random.Generator, budget: Budget
) -> Fit:
    """The best fit over the starts, until one is exact or two end at the same error (the floor of the noise)."""
    fits: list[Fit] = []
    starts = factor_starts(m, X.shape[-1], rank, rng)
    for number, start in zip(range(n_starts), starts, strict=False):
        if fits and budget.spent:
            break
        fits.append(fit_factors(X, y, start, budget, int(rng.integers(2**31))))
        budget.tell(f"  start {number + 1}: error {fits[-1].nmse:.1e} after {fits[-1].n_iter} steps")
        ranked = sorted(fit.nmse for fit in fits)
        if ranked[0] < EXACT or (len(ranked) > 1 and ranked[1] < (1 + _SAME) * ranked[0]):
            break
    return replace(min(fits, key=lambda fit: fit.nmse), n_iter=sum(fit.n_iter for fit in fits))
