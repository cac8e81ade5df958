r"""The points route: importance sampling with a mixture of Gaussians at the modes of the posterior.

proposal = 0.2 N(0, I) + 0.8 sum_m pi_m N(mode_m, 1.3^2 H_m^-1), with pi_m proportional to the root of the Laplace
evidence. Each component has the same number of points (stratified), weights are target / mixture. The modes are found
by Newton's method from s = 0 and fixed points, never from the planted z, which would hide missed modes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from scipy.special import ndtr

from attnlab.smi.draws import sobol_normals
from attnlab.smi.link import Link
from attnlab.smi.posterior.result import Blocks, Moments, Posterior, weighted
from attnlab.smi.posterior.target import Target, coordinates, over_nodes, target
from attnlab.smi.symmetry import group

STARTS = 7
NEWTON_STEPS = 12
WIDER = 1.3
PRIOR_SHARE = 0.2
STEPS = (1.0, 0.3, 0.05, 0.0)
MAX_IMAGES = 8


def points_moments(link: Link, size: int, blocks: Blocks) -> Posterior:
    """Weighted sums over two independent sets of points of one sequence."""
    dimension = coordinates(link)
    sets = [jnp.asarray(ndtr(sobol_normals(dimension, size // 2, ("points", which)))) for which in (0, 1)]
    starts = jnp.asarray(np.vstack([np.zeros(dimension), 1.5 * sobol_normals(dimension, 8, ("starts",))[:STARTS]]))

    def moments(y: jax.Array, omega: jax.Array, L: jax.Array, label: jax.Array) -> Moments:
        at = target(link, y, omega, L)
        shifts = jax.random.uniform(jax.random.fold_in(jax.random.key(0), label), (2, dimension))

        def log_target(c: jax.Array) -> jax.Array:
            return jnp.asarray(jax.scipy.special.logsumexp(jnp.stack([value for value, _ in at(c)])))

        components = _components(link, log_target, _with_images(link, starts, omega, L))
        found = [_sums(at, components, shifted(u, by), blocks) for u, by in zip(sets, shifts, strict=True)]
        (mean, second, log_z, ess), (again, second_again, _, ess_again) = found
        mean, again = mean.reshape(omega.shape), again.reshape(omega.shape)
        return Moments(mean, second, again, second_again, log_z, jnp.minimum(ess, ess_again))

    return moments


def shifted(uniforms: jax.Array, by: jax.Array) -> jax.Array:
    """Normal numbers with their negatives, so that odd functions sum to zero.

    Each sequence shifts the points by its own amount. Otherwise sequences with equal outputs would have equal errors,
    which no average over sequences removes and no error bar shows.
    """
    # Rounding may reach 0 or 1, where the inverse is infinite.
    half = ndtri(jnp.clip((uniforms + by) % 1.0, 1e-15, 1 - 1e-15))
    return jnp.concatenate([half, -half])


def _with_images(link: Link, starts: jax.Array, omega: jax.Array, L: jax.Array) -> jax.Array:
    """The starts, and the images of the estimate omega under the symmetry of the link."""
    if link.solve is not None:
        return starts
    others = [G for G in group(link.symmetry, link.rank, MAX_IMAGES) if not np.allclose(G, np.eye(link.rank))]
    images = [((omega @ jnp.asarray(G) - omega) @ jnp.linalg.inv(L)).reshape(1, -1) for G in others]
    return jnp.concatenate([starts, *images])


class Components(NamedTuple):
    """Centres (m, k) of the mixture, roots of the covariances with inverses (m, k, k) and log determinants, log shares.

    All from one eigenvalue problem: independent calls of LAPACK at once can stop XLA's pool of threads for ever.
    """

    centres: jax.Array
    roots: jax.Array
    inverses: jax.Array
    log_roots: jax.Array
    shares: jax.Array


def _components(link: Link, log_target: Callable[[jax.Array], jax.Array], starts: jax.Array) -> Components:
    """The prior comes first, then a component for the mode that each start leads to."""
    k = starts.shape[1]
    prior = Components(jnp.zeros((1, k)), jnp.eye(k)[None], jnp.eye(k)[None], jnp.zeros(1), jnp.zeros(1))
    if not link.smooth:
        return prior
    centres, values, curvatures = jax.vmap(functools.partial(mode_of, log_target))(starts)
    eigenvalues, vectors = jnp.linalg.eigh(curvatures)
    # The prior alone has curvature 1; far less belongs to a saddle, where a component must not grow without bound.
    eigenvalues = jnp.clip(jnp.abs(eigenvalues), 0.5, 1e8)
    scales = WIDER / jnp.sqrt(eigenvalues)
    evidence = values - 0.5 * jnp.log(eigenvalues).sum(axis=1)
    shares = jax.nn.log_softmax(0.5 * evidence) + np.log1p(-PRIOR_SHARE)
    roots, inverses = vectors * scales[:, None, :], vectors.mT / scales[:, :, None]
    modes = Components(centres, roots, inverses, jnp.log(scales).sum(axis=1), shares)
    prior = prior._replace(shares=jnp.full(1, np.log(PRIOR_SHARE)))
    return Components(*(jnp.concatenate(pair) for pair in zip(prior, modes, strict=True)))


def mode_of(
    log_target: Callable[[jax.Array], jax.Array], start: jax.Array, steps: int = NEWTON_STEPS
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Newton's method with clipped curvature and a short line search; returns also the value and the curvature."""
    slope, curve = jax.grad(log_target), jax.hessian(log_target)

    def step(_: Any, c: jax.Array) -> jax.Array:
        eigenvalues, vectors = jnp.linalg.eigh(-curve(c))
        move = vectors @ ((vectors.T @ slope(c)) / jnp.clip(jnp.abs(eigenvalues), 0.5, 1e8))
        # Two standard deviations of the prior at most: Newton's step is without bound where the target is flat.
        move = move * jnp.minimum(1.0, 2.0 / jnp.maximum(jnp.linalg.norm(move), 1e-30))
        tried = c + jnp.asarray(STEPS)[:, None] * jnp.nan_to_num(move)
        values = jnp.nan_to_num(jax.vmap(log_target)(tried), nan=-jnp.inf)
        return tried[jnp.argmax(values)]

    mode = jax.lax.fori_loop(0, steps, step, start)
    return mode, log_target(mode), jnp.nan_to_num(-curve(mode))


def _sums(at: Target, components: Components, points: jax.Array, blocks: Blocks) -> tuple[jax.Array, ...]:
    """Moments from K points of each component, with deterministic-mixture weights."""
    centres, roots, inverses, log_roots, shares = components
    k = centres.shape[1]
    c = (centres[:, None] + jnp.einsum("mij,kj->mki", roots, points)).reshape(-1, k)
    inner = jnp.einsum("mij,pmj->pmi", inverses, c[:, None] - centres)
    log_proposal = jax.scipy.special.logsumexp(shares - log_roots - 0.5 * (inner**2).sum(axis=2), axis=1)
    # A stratum of share pi_m has K points, so each of them counts pi_m / K.
    log_stratum = jnp.repeat(shares, len(points)) - np.log(len(points))
    branches = [(value + log_stratum - log_proposal, s) for value, s in over_nodes(at)(c.T)]
    return weighted(branches, blocks)
