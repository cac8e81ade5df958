r"""State evolution of several attention layers with skip connections.

==========  ============================================================================================
symbol      meaning
==========  ============================================================================================
V_l         errors of S_l
q_hat_l     2 alpha E|g_l|^2 of layer l; its cross term vanishes for the centred prior (flip S_2 -> -S_2)
            and is measured to be 3 % (rho = .5) to 7 % (rho = 2) of the diagonal otherwise, and left out
c           skip strength
==========  ============================================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.aim.channels import NotSolved
from attnlab.aim.spectrum import check_rho, denoising_mmse, prior_mean, second_moment
from attnlab.aim.theory.deep_layers import layer_strengths, unresolved
from attnlab.common.seeds import Seed, seed_sequence, stream
from attnlab.common.validation import integer, nonnegative, positive


@dataclass(frozen=True)
class DeepEvolution:
    """Errors of the layers at the end, their path, and the Monte Carlo standard error of one step at the end."""

    value: np.ndarray
    converged: bool
    n_iter: int
    residual: float
    trajectory: np.ndarray
    step_error: np.ndarray


def deep_strength(
    V1: float,
    V2: float,
    rho: float = float("inf"),
    *,
    skip: float = 1.0,
    beta: float = 1.0,
    samples: int = 2048,
    seed: Seed = 0,
) -> tuple[np.ndarray, np.ndarray]:
    r"""E[g g^T] over the two layers, (2, 2), and the standard errors of its entries.

    The quadrature for g is checked by :math:`E|g_l|^2 = E\langle g_l, z_l - \omega_l\rangle/V_l \le 3/V_l`, which a
    posterior mean obeys; where it does not (steep first layers, beta of 3 and more), there is no value.

    Source: derived here.  Status: exact up to Monte Carlo over (omega, y) and the quadrature
    for g.
    """
    rho, V = check_rho(rho), np.array([positive("V1", V1), positive("V2", V2)])
    normals = stream(seed, "theory", "aim").standard_normal((integer("samples", samples, low=2), 2, 2, 3))
    # The known means sqrt(rho) I of two layers overlap.
    cross = prior_mean(rho) ** 2
    q = np.array([[second_moment(rho) - V[0], cross], [cross, second_moment(rho) - V[1]]])
    values, vectors = np.linalg.eigh(q)
    # Without knowledge q is singular for a finite rho, and rounding makes an eigenvalue negative.
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    omega = np.einsum("lk,nki->nli", root, normals[:, 0])
    z = omega + np.sqrt(V)[:, None] * normals[:, 1]
    g = np.stack(_gradients(z, omega, V, float(nonnegative("skip", skip)), float(positive("beta", beta))), axis=1)
    products = np.einsum("nli,nki->nlk", g, g)
    with np.errstate(over="ignore", invalid="ignore"):  # g may be anything where the nodes miss the posterior
        alignment = (g * (z - omega) / V[:, None]).sum(axis=2)
        problem = unresolved((g**2).sum(axis=2).T, alignment.T, 3 / V)
    if problem:
        raise NotSolved(f"the quadrature does not resolve beta={beta:g}, layer_strengths may: {problem}")
    return products.mean(axis=0), products.std(axis=0) / np.sqrt(len(products))


def _gradients(
    z: np.ndarray, omega: np.ndarray, V: np.ndarray, skip: float, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    import jax

    with jax.enable_x64(True):
        g1, g2 = _compiled(skip, beta)(z, omega, V)
        return np.asarray(g1), np.asarray(g2)


@functools.lru_cache(maxsize=8)
def _compiled(skip: float, beta: float) -> Any:
    import jax
    import jax.numpy as jnp

    from attnlab.aim.deep.channel import U, mixing, output_functions

    @jax.jit
    def gradients(z: Any, omega: Any, V: Any) -> Any:
        A = mixing(z[:, 0] @ U.T, skip, beta)
        w = jnp.einsum("nij,nj->ni", A, z[:, 1])
        out = output_functions(w, omega[:, 0], omega[:, 1], V[0], V[1], skip, beta)
        return out.g1, out.g2

    return gradients


def deep_state_evolution(
    alpha: float,
    rho: float = float("inf"),
    *,
    tokens: int = 2,
    skip: float = 1.0,
    beta: float = 1.0,
    start: Sequence[float] = (1.0, 1.0),
    samples: int = 2048,
    points: int = 512,
    max_iter: int = 60,
    tol: float = 1e-3,
    seed: Seed = 0,
) -> DeepEvolution:
    r"""Iterate V_l <- F(1/(2 alpha E|g_l|^2)) for all layers from ``start``, one error for each layer: ones know
    nothing, small values are informed.

    The same random numbers are used in every step, so that the map is deterministic and has a fixed point. Two layers
    and two tokens use :func:`deep_strength`, others (up to three and four, centred prior) :func:`layer_strengths`.

    Source: derived here; the cross term of q_hat is left out (exact for rho = infinity).  Status: asymptotic, Monte
    Carlo.
    """
    alpha, rho = positive("alpha", alpha), check_rho(rho)
    path = [np.array([positive("start", v) for v in start])]
    planar = len(start) == 2 and tokens == 2
    if not planar and not np.isinf(rho):
        raise NotSolved(f"rho must be inf beyond two layers and two tokens, got {rho:g}: the cross term is not known")
    residual, spread = np.inf, np.zeros(len(start))
    options: Any = {"skip": skip, "beta": beta, "samples": samples, "seed": seed_sequence(seed)}
    for _ in range(integer("max_iter", max_iter, low=1)):
        if planar:
            V1, V2 = (float(v) for v in path[-1])
            strength, error = (np.diag(found) for found in deep_strength(V1, V2, rho, **options))
        else:
            found = layer_strengths(path[-1].tolist(), tokens=tokens, points=points, **options)
            strength, error = found.value, found.error
        # g divides by V, and changes are measured in log V: recovery stops here and not at 0.
        path.append(np.maximum(denoising_mmse(1 / (2 * alpha * strength), rho), 1e-6))
        # d log F / d log q_hat is between -1 and 0, so the relative error of q_hat bounds that of V.
        spread = path[-1] * error / strength
        residual = float(np.abs(np.log(path[-1] / path[-2])).max())
        if residual < tol:
            break
    return DeepEvolution(path[-1], residual < tol, len(path) - 1, residual, np.array(path), spread)
