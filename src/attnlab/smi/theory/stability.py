r"""Which unlearned directions a small overlap makes grow: the linearised state evolution.

With learned part Q and unlearned subspace U (basis B, r x u), and E[z_t | y, omega] = 0 on U,

.. math:: G_{ts} = B^\top E[z_t z_s^\top | y, \omega] B - \delta_{ts} I, \qquad
          \delta Q_{new} = \alpha F(\delta Q), \quad F(M) = \mathbb{E} \sum_{ts} G_{ts} M G_{ts}^\top

F preserves positive matrices: its largest eigenvalue is real and its eigenvector M positive semi-definite; the range of
M is learned. The integrand is quartic in z: plain points are skewed and their error bars lie, so that z is drawn
from N(0, STRETCH^2 I) and reweighted.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.precision import float64
from attnlab.smi.draws import replicate_normals
from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import Rule, first_rule, one_percent, posterior
from attnlab.smi.theory.gains import Roots, batch, draw, roots

STRETCH = 1.35
TRIVIAL = 5.0  # standard errors beyond which a mean on U is not zero
AGREE = 4.0  # standard errors within which the estimates of the eigenvalue agree
SNAP = 0.05  # entries of a projector that count as zero or one
SHARE = 0.03  # of the largest eigenvalue of M: smaller ones are not in its range


class Stability(NamedTuple):
    """The leading eigenvalue of F with its standard error, its matrix M, and the mean on U that should vanish.

    ``means`` are the significant directions (columns) of E sum_t E[z_t] E[z_t]^T on U, as vectors of length r; if there
    are any, they are learned at once and the eigenvalue does not matter. ``directions`` span the range of M.
    """

    eigenvalue: float
    error: float
    directions: np.ndarray
    means: np.ndarray
    resolved: bool
    reason: str
    rule: Rule


@functools.partial(jax.jit, static_argnames=("link", "size"))
def _sums(link: Link, size: int, normals: jax.Array, root: Roots) -> tuple[jax.Array, ...]:
    """Means over the draws of every scramble: F by two products, and E sum_t E[z_t] E[z_t]^T, on all directions.

    Both are projected on U afterwards, so that one compiled function serves all steps of a staircase.
    """
    moments, T, r = posterior(link, size, "all"), link.tokens, link.rank
    eye = jnp.einsum("ts,ab->tasb", jnp.eye(T), jnp.eye(r))

    def couplings(second: jax.Array) -> jax.Array:
        return second.reshape(T, r, T, r) - eye

    def product(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.einsum("tasb,tcsd->acbd", one, other)

    def one(sequence: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        x, label = sequence
        drawn = draw(link, x, root, STRETCH)
        base = x[: link.dimension]
        # Ratio of the densities of N(0, I) and N(0, STRETCH^2 I) at the drawn indices.
        weight = STRETCH**link.dimension * jnp.exp(-0.5 * (STRETCH**2 - 1) * base @ base)
        found = moments(drawn.y, drawn.omega, root.L, label)
        G, again = couplings(found.second), couplings(found.second_again)
        truth = couplings(jnp.outer(drawn.s, drawn.s))
        sums = (
            weight * product(G, again),
            weight * product(G, truth),
            weight * found.mean.T @ found.mean_again,
            found.ess,
        )
        # Far out, an output of steep attention rounds to 0 and has no posterior: such a draw counts as not resolved.
        return tuple(jnp.where(jnp.isfinite(found.mean).all(), x, 0.0) for x in sums)

    R, n, width = normals.shape
    *sums, ess = jax.lax.map(one, (normals.reshape(R * n, width), jnp.arange(R * n)), batch_size=batch(link, size))
    return (*(x.reshape(R, n, *x.shape[1:]).mean(axis=1) for x in sums), ess)


@float64
def stability(
    link: Link, Q: np.ndarray, B: np.ndarray, draws: int, replicates: int, rule: Rule | None = None, *tags: str | int
) -> Stability:
    """The growth of overlaps on the subspace with orthonormal basis B (r, u), where Q vanishes."""
    normals = jnp.asarray(replicate_normals(2 * link.dimension + link.noise, draws, replicates, "stability", *tags))
    root, rule = roots(np.eye(link.rank) - Q), rule or first_rule(link)
    while True:
        *found, ess = _sums(link, rule.size, normals, root)
        if (resolved := rule.resolves(ess)) or rule.at_end:
            break
        rule = rule.after(one_percent(ess))
    pairs = np.kron(B, B)
    product, cross = (pairs.T @ np.asarray(F).reshape(len(F), len(pairs), -1) @ pairs for F in found[:2])
    means = B @ _significant(B.T @ np.asarray(found[2]) @ B)
    value, error, M = _leading(product)
    crossed, cross_error, _ = _leading(cross)
    reason = ""
    if not resolved:
        reason = f"the posterior is too narrow for the integration rule (effective sample size {one_percent(ess):.3g})"
    elif abs(value - crossed) > max(AGREE * np.hypot(error, cross_error), 1e-2 * value, 1e-9) and not means.size:
        reason = f"two estimates of the growth rate differ: {value:.4g} and {crossed:.4g}"
    if not _grows(product):
        value = 0.0
    sizes, basis = np.linalg.eigh(M)
    learned = B @ basis[:, sizes > SHARE * sizes[-1]]
    return Stability(value, error, plain_basis(learned), plain_basis(means), not reason, reason, rule)


def plain_basis(columns: np.ndarray) -> np.ndarray:
    """The same space by unit vectors where it is spanned by some, up to the noise of its estimate."""
    P = columns @ columns.T
    diagonal = np.diagonal(P).round()
    return np.eye(len(P))[:, diagonal == 1] if np.abs(P - np.diag(diagonal)).max(initial=0) < SNAP else columns


def _significant(means: np.ndarray) -> np.ndarray:
    """Eigenvectors (columns) of the mean over scrambles whose eigenvalue is beyond its error."""
    symmetric = 0.5 * (means + means.swapaxes(1, 2))
    _, basis = np.linalg.eigh(symmetric.mean(axis=0))
    along = np.einsum("ia,kij,ja->ka", basis, symmetric, basis)
    error = along.std(axis=0, ddof=1) / np.sqrt(len(along))
    return np.asarray(basis[:, along.mean(axis=0) > TRIVIAL * error + 1e-9])


def _leading(F: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Largest eigenvalue of the mean over scrambles, its standard error by first-order perturbation, and M."""
    mean = F.mean(axis=0)
    # F is symmetric because G_ts and G_st are transposes; its estimate from two sets of points only nearly so.
    values, basis = np.linalg.eigh(0.5 * (mean + mean.T))
    each = np.einsum("i,kij,j->k", basis[:, -1], F, basis[:, -1])
    error = float(each.std(ddof=1) / np.sqrt(len(each)))
    # Symmetries make eigenvalues equal; a small overlap in all directions grows along the projection of I on them.
    top = basis[:, values >= values[-1] - max(5 * error, 2e-3 * values[-1])]
    u = round(np.sqrt(len(values)))
    M = (top @ (top.T @ np.eye(u).ravel())).reshape(u, u)
    return float(values[-1]), error, 0.5 * (M + M.T)


def _grows(F: np.ndarray) -> bool:
    """Whether the largest eigenvalue is beyond three standard errors.

    The leading vector of noise has a positive eigenvalue on the scrambles that chose it, so that each half of the
    scrambles is measured along the vector of the other half.
    """
    halves = F[::2], F[1::2]
    vectors = [np.linalg.eigh((half + half.swapaxes(1, 2)).mean(axis=0))[1][:, -1] for half in halves]
    each = [np.einsum("i,kij,j->k", v, half, v) for v, half in zip(vectors[::-1], halves, strict=True)]
    along = np.concatenate(each)
    return bool(along.mean() > 3 * along.std(ddof=1) / np.sqrt(len(along)) + 1e-9)
