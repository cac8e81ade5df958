r"""Separating the heads in one direction w: the vectors :math:`b_i = wW_i` and the logits, by lifted linear equations.

:math:`S = \sigma(t)` and :math:`S' = \sigma(t + \log(p/q))` satisfy :math:`(p - q) S S' + q S' - p S = 0`. Let y, y' be
the mixtures :math:`\sum_i S_i b_i`, :math:`\sum_i S'_i b_i` in coordinates of their m-dimensional span, and
:math:`x_i` the unmixing vectors, :math:`x_i \cdot b_j = [i = j]`. Then every query gives one linear equation

.. math:: (p - q)\, y^\top X y' + x \cdot (q y' - p y) = 0

in a symmetric matrix X and a vector x, whose solutions are exactly :math:`X = \sum_i a_i x_i x_i^\top`,
:math:`x = \sum_i a_i x_i`: an m-dimensional space, from which two random elements give the x_i as eigenvectors of
:math:`X_a X_b^{-1}`. No iteration, no derivatives, no sign to choose; it needs m <= d_out independent b_i. A few
Gauss-Newton steps on a slice, where the logits are affine, then use all equations at once.

Source: derived here.  Status: exact with exact answers, for generic directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.special import expit, logit

from attnlab.mha.queries.oracle import Box

# Copies of u and of u - w; the first is the plain pair.
KINDS = ((1, 1), (1, 2), (2, 1))
SCALES = (1.0, 0.5, 2.0, 0.25, 4.0, 8.0)
UNKNOWN_HEADS = 16  # for how many heads the queries are made when their number is not given
_GOOD = 30.0  # residuals up to this many times the error of an answer are accepted
_CLIP = 1e-6
# Weight of the equation sum_i wW_i = w Wbar beside those of the answers: the sum is known more exactly than an answer,
# and where logits are small it is what tells their size from that of the values.
SUM_WEIGHT = 10.0


@dataclass(frozen=True)
class Separation:
    """Heads in one direction w: ``B (m, o)`` rows wW_i, ``A (p, m)`` their logits on the slice, and how well they fit.

    ``residual`` is the rms of what the heads leave of the answers, ``start`` that of the lifted equations alone.
    """

    w: np.ndarray
    B: np.ndarray
    A: np.ndarray  # the constant of a layer with biases is left out
    scale: float
    residual: float
    start: float
    n_iter: int
    singular_values: np.ndarray

    @property
    def strengths(self) -> np.ndarray:
        """Root mean square of each head's logit, for u of the length of w."""
        return np.linalg.norm(self.A, axis=0) / np.sqrt(len(self.A)) / self.scale


def separate(
    box: Box, w: np.ndarray, n_heads: int | None, n_points: int, scales: tuple[float, ...], rng: np.random.Generator
) -> Separation:
    """Heads of one direction; slices of other sizes are tried until the answers are met to their error."""
    good = _GOOD * max(box.noise, 1e-15)
    best: Separation | None = None
    for scale in scales:
        found = _on_slice(box, w, n_heads, n_points, scale, rng)
        if best is None or found.residual < best.residual:
            best = found
        if best.residual < good:
            break
    assert best is not None
    return best


def accepted(found: Separation, noise: float) -> bool:
    """Whether the heads explain the answers up to their error."""
    return bool(found.residual < _GOOD * max(noise, 1e-15))


def count_heads(singular_values: np.ndarray, floor: float) -> int:
    """The place of the largest ratio of neighbouring singular values above the floor of the errors.

    Counting the values above the floor alone finds one head too many now and then.
    """
    above = int(np.sum(singular_values > floor))
    if above == 0:
        return 0
    following = np.maximum(np.append(singular_values[1:], 0.0), floor)
    return int(np.argmax((singular_values / following)[:above])) + 1


def points_for(m: int, margin: int = 40) -> int:
    """Points of a slice that the lifted equations of m heads ask for."""
    return margin + m * (m + 3)


def _on_slice(
    box: Box, w: np.ndarray, n_heads: int | None, n_points: int, scale: float, rng: np.random.Generator
) -> Separation:
    """Lifted equations and Gauss-Newton on u = tau E, a random slice of dimension p."""
    heads = UNKNOWN_HEADS if n_heads is None else n_heads
    # On the slice the logits of a head have p unknowns in place of d.
    p = min(box.d, max(4, heads))
    # E and tau are scaled so that u is about as long as w times the scale.
    E = np.linalg.norm(w) * scale / np.sqrt(box.d) * rng.standard_normal((p, box.d))
    tau = rng.standard_normal((n_points, p)) / np.sqrt(p)
    answers = np.stack([box.mixture(tau @ E, w, kind) for kind in KINDS])
    _, sizes, right = np.linalg.svd(answers.reshape(-1, box.outputs), full_matrices=False)
    # The norm of a matrix of noise is noise (sqrt(rows) + sqrt(columns)); exact answers leave their rounding.
    floor = max(3 * box.noise * (np.sqrt(len(KINDS) * n_points) + np.sqrt(box.outputs)), 1e-13 * sizes[0])
    m = count_heads(sizes, floor) if n_heads is None else min(n_heads, len(sizes))
    if m == 0:
        raise ValueError("attention cannot be seen: the answers do not depend on it (W = 0 in this direction)")
    span = right[:m]
    G = answers @ span.T
    unmixing = _lifted(G, rng)
    # Without biases the logit of u = 0 is zero: the slice needs no constant.
    points = np.column_stack([tau, np.ones(n_points)]) if box.bias else tau
    A = np.linalg.lstsq(points, logit(np.clip(G[0] @ unmixing.T, _CLIP, 1 - _CLIP)), rcond=None)[0]
    A, B, path = polish(G, points, A, np.log([p_ / q_ for p_, q_ in KINDS]), w @ box.w_sum @ span.T)
    # What no heads in the span can explain belongs to the residual.
    outside = np.sum((answers - G @ span) ** 2)
    rms = [float(np.sqrt((loss + outside) / answers.size)) for loss in (path[0], path[-1])]
    return Separation(w, B @ span, A[:p], scale, rms[1], rms[0], len(path) - 1, sizes)


def _lifted(G: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unmixing vectors ``(m, m)`` from the mixtures of all kinds in span coordinates, ``G (kinds, N, m)``."""
    m, y = G.shape[-1], G[0]
    first, second = np.triu_indices(m)
    system, size = lifted_equations(G)
    # The null space has m dimensions; its vectors are brought back from columns of norm one.
    null = np.linalg.svd(system, full_matrices=True)[2][-m:] / size
    X = np.zeros((m, m, m))
    X[:, first, second] = X[:, second, first] = null[:, : len(first)]
    vectors = _common_eigenvectors(X, rng)
    # The equations fix each vector up to its length, which the relation of S and S' then gives.
    for i, x in enumerate(vectors):
        number = sum(float((p * (y @ x) - q * (o @ x)) @ ((p - q) * (y @ x) * (o @ x))) for (p, q), o in _pairs(G))
        weight = sum(float(np.sum(((p - q) * (y @ x) * (o @ x)) ** 2)) for (p, q), o in _pairs(G))
        vectors[i] = x * number / max(weight, np.finfo(float).tiny)
    return vectors


def lifted_equations(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrix of the equations in (X, x), ``(2 N, m (m + 3) / 2)``, its columns of norm one, and their norms before."""
    first, second = np.triu_indices(G.shape[-1])
    y, blocks = G[0], []
    for (p, q), other in _pairs(G):
        products = y[:, first] * other[:, second] + y[:, second] * other[:, first]
        # The sum of both orders counts a diagonal pair twice.
        products[:, first == second] /= 2
        blocks.append(np.column_stack([(p - q) * products, q * other - p * y]))
    system = np.concatenate(blocks)
    size = np.linalg.norm(system, axis=0)
    return system / size, size


def _pairs(G: np.ndarray) -> list[tuple[tuple[int, int], np.ndarray]]:
    return list(zip(KINDS[1:], G[1:], strict=True))


def _common_eigenvectors(X: np.ndarray, rng: np.random.Generator, tries: int = 8) -> np.ndarray:
    """The vectors x_i of matrices that are all combinations of x_i x_i^T; of several random pairs the clearest."""
    best, widest = np.eye(len(X)), -1.0
    for _ in range(tries):
        a, b = (np.tensordot(rng.standard_normal(len(X)), X, 1) for _ in range(2))
        try:
            # Jennrich: a b^-1 has the vectors of all slices as eigenvectors. The tries keep the mixture with the widest
            # eigenvalue gap.
            values, vectors = np.linalg.eig(np.linalg.solve(b.T, a.T).T)
        except np.linalg.LinAlgError:
            continue
        apart = np.abs(values[:, None] - values) / (np.abs(values[:, None]) + np.abs(values) + 1e-300)
        # Complex eigenvalues come from noise: any real pair is preferred to them.
        gap = float(np.min(apart + np.eye(len(X)))) - (np.abs(values.imag).max() > 0)
        if gap > widest:
            best, widest = np.real(vectors).T, gap
    return best / np.linalg.norm(best, axis=1, keepdims=True)


def polish(
    G: np.ndarray, tau: np.ndarray, A: np.ndarray, shifts: np.ndarray, total: np.ndarray, max_iter: int = 60
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Gauss-Newton in the logits ``tau A`` with B eliminated (Kaufman): A, B and the squared residuals.

    ``G (kinds, N, o)`` are the mixtures, ``shifts`` what each kind adds to the logits, ``total`` the known sum of B.
    """
    targets, mu = np.concatenate([G.reshape(-1, G.shape[-1]), SUM_WEIGHT * total[None]]), 1e-3
    B, left, basis, slopes = _eliminated(targets, tau, A, shifts)
    path = [float(np.sum(left**2))]
    while len(path) <= max_iter and path[-1] > 0:
        # Column (a, i) of the Jacobian is tau_a S'_i b_i: an outer product, of which only Gram matrices are needed.
        T = np.concatenate([*(tau[:, :, None] * s[:, None, :] for s in slopes), np.zeros((1, *A.shape))])
        T = T.reshape(len(targets), -1)
        T -= basis @ (basis.T @ T)
        H = (T.T @ T) * np.tile(B @ B.T, (tau.shape[1], tau.shape[1]))
        g = np.einsum("nj,nj->j", T, np.tile(left @ B.T, (1, tau.shape[1])))
        diagonal = np.maximum(np.diag(H), np.finfo(float).eps * np.trace(H) / len(H) + np.finfo(float).tiny)
        for _ in range(8):
            try:
                step = linalg.cho_solve(linalg.cho_factor(H + np.diag(mu * diagonal)), g).reshape(A.shape)
                trial = _eliminated(targets, tau, A + step, shifts)
            except (linalg.LinAlgError, ValueError):
                mu *= 6
                continue
            if np.sum(trial[1] ** 2) < path[-1]:
                break
            mu *= 6
        else:
            break
        A, (B, left, basis, slopes), mu = A + step, trial, max(mu / 8, 1e-14)
        path.append(float(np.sum(left**2)))
        if path[-1] > (1 - 1e-3) * path[-2]:
            break
    return A, B, path


def _eliminated(
    targets: np.ndarray, tau: np.ndarray, A: np.ndarray, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """B by least squares, the residual, an orthonormal basis of the sigmoids, and their slopes for each kind."""
    shares = [expit(tau @ A + shift) for shift in shifts]
    S = np.concatenate([*shares, np.full((1, A.shape[1]), SUM_WEIGHT)])
    basis, triangle = np.linalg.qr(S)
    B = linalg.solve_triangular(triangle, basis.T @ targets)
    return B, targets - S @ B, basis, [s * (1 - s) for s in shares]
