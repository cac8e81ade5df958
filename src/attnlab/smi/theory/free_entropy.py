"""The free entropy of state evolution, by which branches are compared."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.gaussian import gauss_legendre
from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, positive
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, power_of_two
from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import first_rule, posterior
from attnlab.smi.task import Task
from attnlab.smi.theory.gains import Points, Roots, batch, draw, gain, points_of, roots
from attnlab.smi.theory.overlap import overlap_matrix


def free_entropy(
    link: str | Link | Task,
    alpha: float,
    Q: ArrayLike,
    *,
    absolute: bool = False,
    steps: int = 24,
    draws: int = 2**11,
    replicates: int = REPLICATES,
) -> Prediction:
    r"""Free entropy per dimension at the overlaps Q; its stationary points are the fixed points of state evolution.

    .. math:: \Phi(Q) = \tfrac12\big[\mathrm{tr}\,Q + \log\det(I - Q)\big] + \alpha \Psi(Q), \qquad
              \nabla\Psi = \tfrac12 \mathbb{E} \sum_t g_t g_t^\top

    :math:`\Psi(Q) - \Psi(0)` is the integral of its gradient along the straight path from 0 to Q, which needs no
    normalised density. Of two branches the one with the larger value is Bayes-optimal.

    Parameters
    ----------
    absolute : add :math:`\Psi(0) = \mathbb{E} \log p(y)`; the link's density must then integrate to one over y.
    steps : Gauss-Legendre nodes on the path.

    Source: derived here.  Status: asymptotic.

    >>> round(float(free_entropy("linear(noise=0.1)", 1.0, [[0.729844]])), 4)
    0.2551
    """
    link, alpha = checked(link), positive("alpha", alpha)
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=2)
    end, eye = overlap_matrix("Q", Q, link.rank), np.eye(link.rank)
    points = points_of(link, draws, replicates, "state evolution")
    found, resolved, largest = np.zeros(replicates), True, float(np.linalg.eigvalsh(end)[-1])
    rule = first_rule(link)
    for x, w in zip(*gauss_legendre(integer("steps", steps, low=2)), strict=True):
        # The path is walked in v = -log(1 - t q_max): E g g^T grows like 1 / (1 - t q) towards exact recovery.
        v = -x * np.log1p(-largest)
        t, speed = (-np.expm1(-v) / largest, np.exp(-v) * -np.log1p(-largest) / largest) if largest > 0 else (x, 1.0)
        V = eye - t * end
        at = gain(link, np.repeat(V[None], replicates, axis=0), points, rule)
        rule, resolved = at.rule, resolved and not at.alarm
        # tr(E[g g^T] dQ)/2 along Q = t Q_end; speed is dt/dx.
        found += 0.5 * w * speed * np.einsum("kab,ab->k", at.product, _sandwich(V, end))
    if absolute:
        found += log_evidence(link, np.zeros_like(end), points)
    prior = 0.5 * (np.trace(end) + np.linalg.slogdet(eye - end)[1])
    blank = 1.0 if resolved else np.nan
    error = alpha * found.std(ddof=1) / np.sqrt(replicates)
    return Prediction(blank * (prior + alpha * found.mean()), blank * error, "asymptotic", resolved)


def _sandwich(V: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """L^-1 Q L^-1 with V = L^2: tr(E[g g^T] Q) = tr(S L^-1 Q L^-1)."""
    v, basis = np.linalg.eigh(V)
    inverse = (basis / np.sqrt(v)) @ basis.T
    return np.asarray(inverse @ Q @ inverse)


@functools.partial(jax.jit, static_argnames=("link", "size"))
def _log_z(link: Link, size: int, normals: jax.Array, root: Roots) -> jax.Array:
    moments = posterior(link, size)

    def one(sequence: tuple[jax.Array, jax.Array]) -> jax.Array:
        x, label = sequence
        drawn = draw(link, x, root)
        return moments(drawn.y, drawn.omega, root.L, label).log_z

    R, n, width = normals.shape
    sequences = normals.reshape(R * n, width), jnp.arange(R * n)
    found: jax.Array = jax.lax.map(one, sequences, batch_size=batch(link, size)).reshape(R, n)
    return found


@float64
def log_evidence(link: Link, Q: np.ndarray, points: Points) -> np.ndarray:
    """Psi(Q) = E log Z(y; omega, V) of every scramble; up to the normalisation of the link's density."""
    # Not refined: the second size of the rule, where it has one.
    found = _log_z(link, first_rule(link).sizes[:2][-1], jnp.asarray(points.normals), roots(np.eye(link.rank) - Q))
    return np.asarray((points.weights * np.asarray(found)).sum(axis=1))
