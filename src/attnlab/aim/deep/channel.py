r"""The output of two attention layers on two tokens, and what it says about the indices of both.

==========  ===============================================================================================
symbol      meaning
==========  ===============================================================================================
z1, z2      whitened indices of the two layers, (11, 12, 22): h = (sqrt 2 z_11, z_12, sqrt 2 z_22)
u           logit differences of layer 1: u_1 = h_11 - h_12, u_2 = h_22 - h_12, u = U z1, U U^T = [[3, 1], [1, 3]]
B           c I + softmax(beta h1), the map of the tokens through layer 1 with skip strength c
w           logit differences of the output over beta, w = A(u) z2: linear in layer 2
Z           int N(u; U omega_1, V_1 U U^T) N(w; A(u) omega_2, V_2 A A^T) du
==========  ===============================================================================================

The integral over u is two-dimensional; Gauss-Hermite nodes start at the prior and are moved to where the integrand
lives, three times.  Source: derived here from the deep model of arXiv:2506.01582.  Status: quadrature.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.gaussian import gauss_hermite

U = np.array([[np.sqrt(2.0), -1.0, 0.0], [0.0, -1.0, np.sqrt(2.0)]])
ROOT = np.linalg.cholesky(U @ U.T)
FLOORS = (0.5, 0.2, 0.07)  # smallest width of the nodes, in prior standard deviations, at each move
NODES, MOVING = 17, 9  # of one dimension in the integral, and while its nodes are moved, which needs no digits


class Outputs(NamedTuple):
    """The output functions of the two layers, (n, 3) each, and log Z, (n,)."""

    g1: jax.Array
    g2: jax.Array
    log_z: jax.Array


def mixing(u: Any, skip: float, beta: float) -> Any:
    """A(u), (..., 2, 3): the output's logit differences as a linear map of z2."""
    p = jax.nn.sigmoid(beta * u)
    p1, p2 = p[..., 0], p[..., 1]
    rows = [(skip + p1, 1 - p1), (1 - p2, skip + p2)]
    delta = skip + p1 + p2 - 1
    # w_1 = Y_11 - Y_12 and w_2 = Y_22 - Y_21 with Y = B h B^T; B_1 - B_2 = delta (1, -1).
    signs = (1.0, -1.0)
    maps = [
        jnp.stack([np.sqrt(2.0) * s * delta * a, s * delta * (b - a), -np.sqrt(2.0) * s * delta * b], axis=-1)
        for s, (a, b) in zip(signs, rows, strict=True)
    ]
    return jnp.stack(maps, axis=-2)


def deep_outputs(h: np.ndarray, skip: float, beta: float) -> np.ndarray:
    """y for indices of any number of layers and tokens, h of shape (layers, n, T, T): the last softmax."""
    tokens = h.shape[-1]
    B = np.broadcast_to(np.eye(tokens), h.shape[1:])
    for layer in h[:-1]:
        B = (skip * np.eye(tokens) + _softmax(B @ layer @ B.swapaxes(1, 2), beta)) @ B
    return _softmax(B @ h[-1] @ B.swapaxes(1, 2), beta)


def _softmax(h: np.ndarray, beta: float) -> np.ndarray:
    weights = np.exp(beta * (h - h.max(axis=-1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def logit_differences(y: np.ndarray, beta: float) -> np.ndarray:
    """w of outputs (n, 2, 2)."""
    logs = np.log(np.asarray(y, dtype=np.float64))
    return np.stack([logs[:, 0, 0] - logs[:, 0, 1], logs[:, 1, 1] - logs[:, 1, 0]], axis=-1) / beta


def output_functions(
    w: jax.Array, omega1: jax.Array, omega2: jax.Array, V1: Any, V2: Any, skip: float = 1.0, beta: float = 1.0
) -> Outputs:
    """g of both layers for w (n, 2) and means (n, 3)."""
    centre, spread = omega1 @ U.T, jnp.sqrt(V1) * ROOT
    mean, scale = jnp.zeros((len(w), 2)), jnp.broadcast_to(jnp.eye(2), (len(w), 2, 2))
    for floor in (*FLOORS, None):
        xi, log_w = _plane(NODES if floor is None else MOVING)
        x = mean[:, None] + jnp.einsum("nij,kj->nki", scale, xi)
        u = centre[:, None] + x @ spread.T
        log_p, pull = _second_layer(w, u, omega2, V2, skip, beta)
        determinant = scale[:, 0, 0] * scale[:, 1, 1] - scale[:, 0, 1] * scale[:, 1, 0]
        # Hermite weights are those of N(0, I) in xi: the prior of x over it, and the Jacobian of x = mean + scale xi.
        log_p = log_p + log_w - (x**2).sum(-1) / 2 + (xi**2).sum(-1) / 2 + jnp.log(determinant)[:, None]
        log_z = jax.scipy.special.logsumexp(log_p, axis=1)
        p = jnp.exp(log_p - log_z[:, None])
        if floor is not None:
            mean, scale = _moved(p, x, floor)
    # U^T (V_1 U U^T)^-1 E[u - U omega_1], with u - U omega_1 = sqrt(V_1) ROOT x.
    g1 = jnp.einsum("nk,nki->ni", p, x) @ np.linalg.inv(ROOT) @ U / jnp.sqrt(V1)
    return Outputs(g1, jnp.einsum("nk,nki->ni", p, pull), log_z)


def _plane(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (count^2, 2) of the standard Gaussian in the plane, and log weights."""
    nodes, weights = gauss_hermite(count)
    xi = np.array(list(itertools.product(nodes, nodes)))
    return xi, np.log([a * b for a, b in itertools.product(weights, weights)])


def _second_layer(w: Any, u: Any, omega2: Any, V2: Any, skip: float, beta: float) -> tuple[Any, Any]:
    """log N(w; A omega_2, V_2 A A^T) at every node, and its gradient in omega_2."""
    A = mixing(u, skip, beta)
    gap = w[:, None] - jnp.einsum("nkij,nj->nki", A, omega2)
    C = jnp.einsum("nkij,nklj->nkil", A, A)
    # Two equal rows of attention make A A^T singular; 2 x 2 by hand, as a batch of small solves is slow in XLA.
    determinant = jnp.maximum(C[..., 0, 0] * C[..., 1, 1] - C[..., 0, 1] ** 2, 1e-300)
    solved = jnp.stack(
        [
            (C[..., 1, 1] * gap[..., 0] - C[..., 0, 1] * gap[..., 1]) / determinant,
            (C[..., 0, 0] * gap[..., 1] - C[..., 0, 1] * gap[..., 0]) / determinant,
        ],
        axis=-1,
    )
    log_p = -(gap * solved).sum(-1) / (2 * V2) - jnp.log(determinant) / 2 - jnp.log(2 * np.pi * V2)
    return log_p, jnp.einsum("nkij,nki->nkj", A, solved) / V2


def _moved(p: Any, x: Any, floor: float) -> tuple[Any, Any]:
    """Centre and width of the next nodes: the mean and, somewhat widened, the covariance under the present ones."""
    mean = jnp.einsum("nk,nki->ni", p, x)
    gap = x - mean[:, None]
    covariance = 1.5 * jnp.einsum("nk,nki,nkj->nij", p, gap, gap) + floor**2 * jnp.eye(2)
    a, b, c = covariance[:, 0, 0], covariance[:, 0, 1], covariance[:, 1, 1]
    # Cholesky of 2 x 2 by hand: the compiled one works matrix by matrix.
    first = jnp.sqrt(a)
    second = jnp.sqrt(jnp.maximum(c - b**2 / a, 1e-12))
    zero = jnp.zeros_like(a)
    return mean, jnp.stack([jnp.stack([first, zero], -1), jnp.stack([b / first, second], -1)], axis=-2)
