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
from attnlab.smi.posterior.moments import DOUBT, SETTLED, Rule, first_rule, one_percent, posterior
from attnlab.smi.theory.gains import Roots, batch, draw, roots

STRETCH = 1.35
TRIVIAL = 5.0  # standard errors beyond which a mean on U is not zero
AGREE = 4.0  # standard errors within which the estimates of the eigenvalue agree
LOOSE = 1e-2  # or the share of it
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
    root = roots(np.eye(link.rank) - Q)
    found = _growth(link, normals, root, B, rule or first_rule(link))
    # As in gain: a straight ridge is missed by the sample size, and finer nodes change the value.
    doubt = link.route == "grid" and found.differs(DOUBT)
    while doubt and not found.rule.at_end:
        finer = _growth(link, normals, root, B, found.rule.finer(found.ess))
        if abs(finer.value - found.value) <= SETTLED * abs(found.value):
            break
        found = finer
    reason = ""
    if not found.resolved:
        reason = f"the posterior is too narrow for the integration rule (effective sample size {found.ess:.3g})"
    elif found.differs(LOOSE):
        reason = f"two estimates of the growth rate differ: {found.value:.4g} and {found.crossed:.4g}"
    value = found.value if _grows(found.product) else 0.0
    sizes, basis = np.linalg.eigh(found.M)
    learned = B @ basis[:, sizes > SHARE * sizes[-1]]
    return Stability(value, found.error, plain_basis(learned), plain_basis(found.means), not reason, reason, found.rule)


class _Growth(NamedTuple):
    """The leading eigenvalue by two products with their errors, F and its M, and the means on U, by one rule."""

    value: float
    error: float
    crossed: float
    cross_error: float
    product: np.ndarray
    M: np.ndarray
    means: np.ndarray
    ess: float
    resolved: bool
    rule: Rule

    def differs(self, share: float) -> bool:
        """Whether the two products differ by more than their noise; significant means decide without them."""
        allowed = max(AGREE * np.hypot(self.error, self.cross_error), share * self.value, 1e-9)
        return bool(abs(self.value - self.crossed) > allowed) and not self.means.size


def _growth(link: Link, normals: jax.Array, root: Roots, B: np.ndarray, rule: Rule) -> _Growth:
    while True:
        *found, ess = _sums(link, rule.size, normals, root)
        if (resolved := rule.resolves(ess)) or rule.at_end:
            break
        rule = rule.after(one_percent(ess))
    # F acts on matrices, and B m B^T as a vector is (B kron B) m.
    pairs = np.kron(B, B)
    product, cross = (pairs.T @ np.asarray(F).reshape(len(F), len(pairs), -1) @ pairs for F in found[:2])
    means = B @ _significant(B.T @ np.asarray(found[2]) @ B)
    value, error, M = _leading(product)
    crossed, cross_error, _ = _leading(cross)
    return _Growth(value, error, crossed, cross_error, product, M, means, one_percent(ess), resolved, rule)


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
