r"""Empirical risk minimisation as d grows: overlaps of the minimiser of a loss with a ridge.

.. math:: \min_{\hat W}\; \sum_\mu \ell\big(y_\mu, X_\mu \hat W^\top/\sqrt d\big) + \tfrac\lambda2 |\hat W|^2

======  =========  ==========================================================================
symbol  shape      meaning
======  =========  ==========================================================================
m       (p, r)     overlap W_hat W^T / d with the planted directions
q       (p, p)     W_hat W_hat^T / d
V       (p, p)     response of W_hat to a small field
o       (T, p)     indices of a fresh sequence along W_hat: Cov o = q, Cov(o, z) = m
x, f    (T, p)     proximal point argmin |(x - o) V^-1/2|^2 / 2 + loss(y, x), and (x - o) V^-1
======  =========  ==========================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.advice import advise
from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, positive, real
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, matched_weights, power_of_two, replicate_normals, sobol_normals
from attnlab.smi.link import Link
from attnlab.smi.posterior.points import mode_of
from attnlab.smi.task import Task

NEWTON_STEPS = 30
JUMP = 0.02  # relative difference of two forms of Vh beyond which the proximal point jumps
BATCH = 256

Loss = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False, repr=False)
class EmpiricalRisk(Prediction):
    """A fixed point: ``value`` is the overlap m (p, r) and ``error`` its standard error.

    Parameters
    ----------
    q, V : self-overlap and response.
    test_loss, test_loss_error : mean loss of a fresh sequence.
    n_iter, residual : iterations made, and the largest change of (m, q, V) by one more undamped step.
    jump : relative difference between the mean derivative of f and the same by Gaussian integration by parts; they
        agree unless the proximal point jumps between minima of the loss.
    """

    q: Any = None
    V: Any = None
    test_loss: float = np.nan
    test_loss_error: float = np.nan
    n_iter: int = 0
    residual: float = np.nan
    jump: float = 0.0


class _State(NamedTuple):
    m: np.ndarray
    q: np.ndarray
    V: np.ndarray


class _Sums(NamedTuple):
    """Means over the draws: E sum f z^T, E sum f f^T, -E sum df/do, the same by parts, E loss(y, o)."""

    fz: jax.Array
    ff: jax.Array
    slope: jax.Array
    slope_by_parts: jax.Array
    loss: jax.Array


def _root(M: Any) -> jax.Array:
    values, basis = jnp.linalg.eigh(M)
    # An estimate without noise has q = m m^T, whose root is inverted below.
    return jnp.asarray((basis * jnp.sqrt(jnp.clip(values, 1e-14, None))) @ basis.T)


@functools.partial(jax.jit, static_argnames=("link", "loss"))
def _sums(link: Link, loss: Loss, x: jax.Array, weights: jax.Array, starts: jax.Array, state: _State) -> _Sums:
    """Of one scramble x (n, T r + T p + noise)."""
    T, r = link.tokens, link.rank
    p = state.m.shape[0]
    L, rest = _root(state.V), _root(state.q - state.m @ state.m.T)
    inverse, by_parts = jnp.linalg.inv(L), jnp.linalg.inv(rest)

    def one(numbers: jax.Array) -> _Sums:
        z, xi, e = jnp.split(numbers, (T * r, T * (r + p)))
        z, xi = z.reshape(T, r), xi.reshape(T, p)
        y, o = link.sample(z, e), z @ state.m.T + xi @ rest

        def objective(c: jax.Array) -> jax.Array:
            return jnp.asarray(-0.5 * (c @ c) - loss(y, o + c.reshape(T, p) @ L))

        # The lowest of the minima that are reached from x = o and from fixed points around it.
        modes, values, curvatures = jax.vmap(lambda c: mode_of(objective, c, NEWTON_STEPS))(starts)
        best = jnp.argmax(values)
        f = modes[best].reshape(T, p) @ inverse
        # dx/do = (I + L H L)^-1 in whitened coordinates, H the second derivative of the loss.
        inner = (jnp.eye(T * p) - jnp.linalg.inv(curvatures[best])).reshape(T, p, T, p)
        slope = inverse @ jnp.einsum("tatb->ab", inner) @ inverse
        # Stein's lemma: xi moves o by rest, so that E f xi^T = E[df/do] rest.
        return _Sums(f.T @ z, f.T @ f, slope, -f.T @ xi @ by_parts, jnp.asarray(loss(y, o)))

    each = jax.lax.map(one, x, batch_size=BATCH)
    return _Sums(*(jnp.einsum("n,n...->...", weights, value) for value in each))


def _step(state: _State, sums: _Sums, alpha: float, ridge: float) -> _State:
    slope = np.asarray(sums.slope)
    Vh = alpha * 0.5 * (slope + slope.T)
    # E f z^T = E[df/dz] + E[df/do] m by parts, so that outputs need not be differentiable in z.
    mh = alpha * np.asarray(sums.fz) + Vh @ state.m
    V = np.linalg.inv(ridge * np.eye(len(Vh)) + Vh)
    q = V @ (alpha * np.asarray(sums.ff) + mh @ mh.T) @ V
    return _State(V @ mh, 0.5 * (q + q.T), V)


@float64
def erm_state_evolution(
    link: str | Link | Task,
    loss: Loss,
    alpha: float,
    ridge: float,
    *,
    rank: int | None = None,
    n_starts: int = 1,
    start: Any = None,
    draws: int = 2**11,
    replicates: int = REPLICATES,
    damping: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> EmpiricalRisk:
    r"""Overlaps of the minimiser of an empirical risk on n = alpha d sequences.

    .. math:: \hat V = -\alpha \mathbb{E}\sum_t \partial_{o_t} f_t,\; \hat m = \alpha \mathbb{E}\sum_t \partial_{z_t}
              f_t,\; \hat q = \alpha \mathbb{E}\sum_t f_t f_t^\top; \quad V = (\lambda + \hat V)^{-1},\; m = V \hat m,\;
              q = V (\hat q + \hat m \hat m^\top) V

    Parameters
    ----------
    loss : ``(y, x) -> number`` of one sequence in JAX, x (T, p) the indices along the estimate.
    ridge : lambda > 0.
    rank : p, the directions of the estimate; those of the link if not given.
    n_starts : points from which the proximal minimum is sought; more than one for a loss that is not convex.
    start : m from which a branch is continued, (p, r); otherwise 0.1 on the diagonal.

    Source: arXiv:2402.03902 and the replica method.  Status: asymptotic for a convex loss, heuristic otherwise.

    >>> import jax.numpy as jnp
    >>> found = erm_state_evolution("linear(noise=0.1)", lambda y, x: 0.5 * jnp.sum((y - x) ** 2), 1.0, 0.1)
    >>> round(float(found.value[0, 0]), 6)  # the Bayes-optimal overlap of the linear link
    0.729844
    """
    link, alpha, ridge = checked(link), positive("alpha", alpha), positive("ridge", ridge)
    p = integer("rank", rank if rank is not None else link.rank, low=1)
    keep, tol = real("damping", damping, low=0.0, high=1.0, open_high=True), positive("tol", tol)
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=2)
    if link.indices is not None:
        raise ValueError("erm_state_evolution needs Gaussian tokens; the link is tilted (it has indices)")
    _check_loss(link, loss, p)
    # Not zero, which is a fixed point where the sign of the directions is a symmetry.
    m = 0.1 * np.eye(p, link.rank) if start is None else np.array(start, dtype=float).reshape(p, link.rank)
    # q must exceed m m^T: the difference is the covariance of o given z.
    first = _State(m, m @ m.T + 0.5 * np.eye(p), np.eye(p))
    T, shape = link.tokens, link.tokens * (link.rank + p) + link.noise
    normals = replicate_normals(shape, draws, replicates, "empirical risk")
    around = 2 * sobol_normals(T * p, 64, ("proximal",))[: integer("n_starts", n_starts, low=1, high=64) - 1]
    starts = jnp.asarray(np.vstack([np.zeros((1, T * p)), around]))
    rule = _Rule(link, loss, alpha, ridge, starts, keep, tol, integer("max_iter", max_iter, low=1))
    runs = [rule.run(x, w, first) for x, w in zip(normals, matched_weights(normals), strict=True)]
    return _result(runs)


def _check_loss(link: Link, loss: Loss, rank: int) -> None:
    """It is a function of one sequence that returns a number."""
    if not callable(loss):
        raise TypeError(f"loss must be a function (y, x) -> number, got {loss!r}")
    # Shapes alone, so that a wrong loss is named before anything is compiled.
    y = jax.eval_shape(link.sample, jnp.zeros((link.tokens, link.rank)), jnp.zeros(link.noise))
    x = jnp.zeros((link.tokens, rank))
    try:
        found = jax.eval_shape(loss, y, x)
    except (TypeError, IndexError, ValueError) as problem:
        raise ValueError(
            f"loss fails on one sequence, arguments of shape {y.shape} and {x.shape}; it must be written with "
            f"jax.numpy: {str(problem).splitlines()[0]}"
        ) from problem
    if getattr(found, "shape", None) != ():
        raise ValueError(f"loss must return a scalar for one sequence, got {found}")


@dataclass(frozen=True)
class _Rule:
    link: Link
    loss: Loss
    alpha: float
    ridge: float
    starts: jax.Array
    keep: float
    tol: float
    max_iter: int

    def run(self, x: np.ndarray, weights: np.ndarray, state: _State) -> _Run:
        """The fixed point of one scramble."""
        numbers, shares = jnp.asarray(x), jnp.asarray(weights)
        n_iter = 0
        for _ in range(self.max_iter):
            n_iter += 1
            sums = _sums(self.link, self.loss, numbers, shares, self.starts, state)
            new = _step(state, sums, self.alpha, self.ridge)
            # V can be large; overlaps are of order one.
            residual = max(
                float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) for a, b in zip(new, state, strict=True)
            )
            if not np.isfinite(residual):
                break
            state = _State(*(self.keep * b + (1 - self.keep) * a for a, b in zip(new, state, strict=True)))
            if residual <= self.tol:
                break
        return _Run(state, sums, n_iter, residual, residual <= self.tol)


class _Run(NamedTuple):
    state: _State
    sums: _Sums
    n_iter: int
    residual: float
    settled: bool


def _result(runs: list[_Run]) -> EmpiricalRisk:
    states, sums, counts, residuals, settled = zip(*runs, strict=True)
    m, q, V = (np.stack(values) for values in zip(*states, strict=True))
    R = len(runs)
    loss = np.array([float(one.loss) for one in sums])
    slope = np.array([float(np.trace(one.slope)) for one in sums])
    parts = np.array([float(np.trace(one.slope_by_parts)) for one in sums])
    gap, gap_error = (parts - slope).mean(), (parts - slope).std(ddof=1) / np.sqrt(R)
    # Integration by parts counts a jump of f; the derivative at single draws does not.
    jumps = abs(gap) > max(JUMP * abs(slope.mean()), 5 * gap_error)
    converged = all(settled) and not jumps
    if jumps:
        advise("the proximal point jumps between minima of the loss: the equations do not hold here", stacklevel=3)
    return EmpiricalRisk(
        m.mean(axis=0),
        m.std(axis=0, ddof=1) / np.sqrt(R),
        "asymptotic",
        converged,
        q=q.mean(axis=0),
        V=V.mean(axis=0),
        test_loss=float(loss.mean()),
        test_loss_error=float(loss.std(ddof=1) / np.sqrt(R)),
        n_iter=max(counts),
        residual=float(max(residuals)),
        jump=float(gap / slope.mean()) if slope.mean() else 0.0,
    )
