r"""What one sequence adds to the knowledge of the directions: the matrix S of state evolution.

.. math:: S = \mathbb{E} \sum_t m_t m_t^\top = \mathbb{E} \sum_t m_t s_t^\top \qquad\text{(Nishimori identity)}

with :math:`z \sim N(0, I)`, :math:`\omega = zQ + \zeta (QV)^{1/2}`, s the drawn whitened indices and
:math:`m = E[s | y, \omega]`. The right side is linear in the computed m. Both are computed: a wrong posterior breaks
the identity.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.precision import float64
from attnlab.smi.draws import matched_weights, replicate_normals
from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import DOUBT, SETTLED, Rule, first_rule, one_percent, posterior
from attnlab.smi.posterior.target import coordinates

# Nodes held in memory at once: larger batches leave a processor's cache, smaller ones leave a GPU idle.
CPU_NODES, GPU_NODES = 2**13, 2**21
# Parts of the replicates that run side by side on a processor. XLA keeps 1.4 of two cores busy in a loop of small
# batches. The number is fixed: numbers must not depend on the machine's cores. Importance sampling runs in one part:
# its eigenvalue problems wait in XLA's pool for tasks of the same pool, and several at once would wait for ever.
PARTS = 4
FLOOR = 3.0  # standard errors below which a noisy S is zero


class Roots(NamedTuple):
    """Functions of V = I - Q that a draw uses: Q, V^(1/2), (Q V)^(1/2), Q^(1/2); all commute."""

    Q: jax.Array
    L: jax.Array
    mixed: jax.Array
    signal: jax.Array


class Draw(NamedTuple):
    """One sequence: its output, the estimate of its indices and the drawn indices, plain and whitened."""

    y: jax.Array
    omega: jax.Array
    z: jax.Array
    s: jax.Array


class Points(NamedTuple):
    """The numbers of all sequences, (R, n, 2 T r + noise), and their weights (R, n)."""

    normals: np.ndarray
    weights: np.ndarray


class Gain(NamedTuple):
    """S by the product of two posterior means and by the Nishimori identity, for each replicate, (R, r, r).

    ``floor`` bounds the eigenvalues of S that are below the noise of the inner points and were set to zero. ``spread``
    is the standard error of their gap from single draws, which two or four replicates do not show.
    """

    product: np.ndarray
    cross: np.ndarray
    resolved: bool
    ess: float
    rule: Rule
    spread: float
    floor: float = 0.0

    @property
    def gap(self) -> tuple[float, float]:
        """Trace of the difference of the two, and its standard error."""
        difference = np.trace(self.product - self.cross, axis1=1, axis2=2)
        return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))

    @property
    def size(self) -> float:
        """tr S."""
        return float(np.trace(self.product.mean(axis=0)))

    @property
    def in_doubt(self) -> bool:
        """Whether the two estimates of S differ by more than their noise."""
        gap, error = self.gap
        return abs(gap) > max(DOUBT * self.size, 4 * error, 4 * self.spread, 1e-9)

    @property
    def alarm(self) -> str:
        """Why the numbers cannot be trusted; empty if they can."""
        if not (np.isfinite(self.product).all() and np.isfinite(self.cross).all()):
            return "log_density, log_partition or solve is not finite"
        if not self.resolved:
            return f"the posterior is too narrow for the integration rule (effective sample size {self.ess:.3g})"
        gap, error = self.gap
        if abs(gap) > max(0.02 * self.size, 4 * error, 4 * self.spread, 1e-12):
            return f"the Nishimori identity fails: E m m^T and E m s^T differ by {gap:.3g} of {self.size:.3g}"
        return ""


def roots(V: np.ndarray) -> Roots:
    """Of one V (r, r) or of a stack of them."""
    v, basis = np.linalg.eigh(V)
    v = np.clip(v, 1e-300, 1.0)
    scales = (1 - v, np.sqrt(v), np.sqrt((1 - v) * v), np.sqrt(1 - v))
    return Roots(*(jnp.asarray((basis * scale[..., None, :]) @ basis.swapaxes(-1, -2)) for scale in scales))


def points_of(link: Link, draws: int, replicates: int, *tags: str | int) -> Points:
    """Scrambles of the numbers of all sequences: indices, estimate, noise."""
    normals = replicate_normals(2 * link.dimension + link.noise, draws, replicates, *tags)
    return Points(normals, matched_weights(normals))


def draw(link: Link, x: jax.Array, root: Roots, stretch: float = 1.0) -> Draw:
    """A sequence from its normal numbers; ``stretch`` inflates the Gaussian indices."""
    shape, D = (link.tokens, link.rank), link.dimension
    z, zeta, e = stretch * x[:D].reshape(shape), x[D : 2 * D].reshape(shape), x[2 * D :]
    if link.indices is not None:
        z = link.indices(z, e)
    omega = z @ root.Q + zeta @ root.mixed
    # z - omega = z V - zeta (Q V)^(1/2), divided by L without a subtraction of nearly equal numbers.
    return Draw(jnp.asarray(link.sample(z, e)), omega, z, z @ root.L - zeta @ root.signal)


def batch(link: Link, size: int) -> int:
    """Sequences whose posteriors are computed at once."""
    dimension = coordinates(link) if link.route == "grid" else 1
    nodes = CPU_NODES if jax.default_backend() == "cpu" else GPU_NODES
    # A power of two divides the number of draws: a remainder would be compiled as a second loop.
    return 1 << (max(1, nodes // (size**dimension if link.route != "closed" else 128)).bit_length() - 1)


@functools.partial(jax.jit, static_argnames=("link", "size"))
def _sums(
    link: Link, size: int, normals: jax.Array, weights: jax.Array, root: Roots, first: jax.Array
) -> tuple[jax.Array, ...]:
    """Averages over the sequences of some replicates, whose labels begin at ``first``."""
    moments = posterior(link, size)

    def one(sequence: tuple[jax.Array, Roots, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, at, label = sequence
        drawn = draw(link, x, at)
        found = moments(drawn.y, drawn.omega, at.L, label)
        product = found.mean.T @ found.mean_again
        return 0.5 * (product + product.T), found.mean.T @ drawn.s, found.ess

    R, n, width = normals.shape
    each = Roots(*(jnp.repeat(matrix, n, axis=0) for matrix in root))
    sequences = normals.reshape(-1, width), each, first + jnp.arange(R * n)
    product, cross, ess = jax.lax.map(one, sequences, batch_size=batch(link, size))
    r = link.rank
    spread = jnp.std(jnp.trace(product - cross, axis1=1, axis2=2)) / np.sqrt(R * n)
    return (*(jnp.einsum("kn,knab->kab", weights, x.reshape(R, n, r, r)) for x in (product, cross)), ess, spread)


def _side_by_side(
    link: Link, size: int, points: Points, root: Roots
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """:func:`_sums` of all replicates, in parts on a processor and at once on a device."""
    R, n, _ = points.normals.shape
    # Parts of one size share a compiled program.
    apart = jax.default_backend() == "cpu" and link.route != "points" and R % PARTS == 0
    parts = PARTS if apart else 1
    step = R // parts

    @float64
    def one(first: int) -> tuple[np.ndarray, ...]:
        chosen = slice(first, first + step)
        mine = (jnp.asarray(x[chosen]) for x in points)
        found = _sums(link, size, *mine, Roots(*(x[chosen] for x in root)), jnp.asarray(first * n))
        return tuple(map(np.asarray, found))

    starts = range(0, R, step)
    with ThreadPoolExecutor(parts) as pool:
        product, cross, ess, spread = zip(*pool.map(one, starts), strict=True)
    # Of the mean over equal parts, from the standard error of each.
    error = float(np.sqrt(np.mean(np.square(spread)) / parts))
    return np.concatenate(product), np.concatenate(cross), np.concatenate(ess), error


@float64
def gain(link: Link, V: np.ndarray, points: Points, rule: Rule | None = None) -> Gain:
    """S at V (R, r, r), with a rule that is refined until it resolves the posterior.

    A straight ridge has a large sample size on nodes that miss its width. There the two estimates of S differ, and the
    nodes are refined until S settles; if it does at once, sample and the description of p(y|z) are two laws.
    """
    found = _by_sample_size(link, V, points, rule or first_rule(link))
    doubt = link.route == "grid" and found.in_doubt
    while doubt and not found.rule.at_end:
        finer = _by_sample_size(link, V, points, found.rule.finer(found.ess))
        # The gap is then not one of the nodes: it stays, and the alarm judges it.
        if np.abs(finer.product - found.product).max() <= SETTLED * abs(found.size):
            break
        found = finer._replace(resolved=finer.resolved and not (finer.in_doubt and finer.rule.at_end))
    return found


def _by_sample_size(link: Link, V: np.ndarray, points: Points, rule: Rule) -> Gain:
    while True:
        product, crossed, ess, spread = _side_by_side(link, rule.size, points, roots(V))
        resolved = rule.resolves(ess)
        if resolved or rule.at_end:
            break
        rule = rule.after(one_percent(ess))
    symmetric = 0.5 * (crossed + crossed.swapaxes(1, 2))
    floor = 0.0
    if link.route == "points" and np.isfinite(product).all():
        product, floor = above_noise(product)
    return Gain(product, symmetric, resolved, one_percent(ess), rule, spread, floor)


def above_noise(S: np.ndarray) -> tuple[np.ndarray, float]:
    """S (R, r, r) without the directions below FLOOR standard errors, and the bound on what was left out.

    The product of two noisy means has the right average but not the right sign in every replicate.
    """
    _, basis = np.linalg.eigh(S.mean(axis=0))
    along = np.einsum("ia,kij,ja->ka", basis, S, basis)
    error = along.std(axis=0, ddof=1) / np.sqrt(len(S))
    kept = along.mean(axis=0) > FLOOR * error
    projector = (basis * kept) @ basis.T
    return projector @ S @ projector, float((FLOOR * error * ~kept).max())
