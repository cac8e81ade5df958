r"""The first-order picture: linearised attention as one regression.

For weak attention :math:`y_a \approx \bar x\,\bar W + \sum_i x_a \Theta_i C_a W_i` with the covariance
:math:`C_a = \frac1k \sum_b (x_b - \bar x)^\top (x_b - \bar x)`. Regressing y on the products
:math:`x_a \otimes \mathrm{vech}(C_a)`, the mean token and the query gives, for each output s, the tensor

.. math:: S[p, q, r, s] = M[pq, rs] + M[pr, qs], \qquad M = \sum_i \mathrm{vec}\,\Theta_i\, \mathrm{vec}\,W_i^\top

of which only this symmetrised form shows, because key and value are read from the same token (derived here).
Alternating least squares recovers the rank-m matrix M, and with it the span of the heads.
"""

from __future__ import annotations

import numpy as np

from attnlab.mha.engine.variable_projection import chunks
from attnlab.mha.layer import Rows

_SWEEPS = 30


def moment_features(d: int) -> int:
    """Number of regression features."""
    return d * d * (d + 1) // 2 + 2 * d


def moment_tensor(rows: Rows) -> np.ndarray:
    """The symmetrised first-order tensor ``S (d, d, d, d_out)`` by ridge regression."""
    d, outputs = rows.Q.shape[1], rows.Y.shape[1]
    size = moment_features(d)
    gram, sides = np.zeros((size, size)), np.zeros((size, outputs))
    for part in chunks(len(rows), size):
        features = _features(rows.take(part))
        gram += features.T @ features
        sides += features.T @ rows.Y[part]
    # Fewer rows than the d^3 / 2 features leave many solutions; a small ridge takes a small one.
    gram[np.diag_indices_from(gram)] += 1e-6 * np.trace(gram) / size
    coefficients = np.linalg.solve(gram, sides)[: size - 2 * d].reshape(d, -1, outputs)
    first, second = np.triu_indices(d)
    S = np.zeros((d, d, d, outputs))
    S[:, first, second] = coefficients
    S[:, second, first] = coefficients
    # A diagonal entry is met once in the sum over pairs, an off-diagonal one twice.
    S[:, range(d), range(d)] *= 2
    return S


def decompose(S: np.ndarray, m: int, sweeps: int = _SWEEPS) -> tuple[np.ndarray, np.ndarray]:
    """Attention matrices and projections whose symmetrised product is nearest to S, by alternating least squares."""
    d, outputs = len(S), S.shape[-1]
    # The first guess takes S for M; the sweeps then account for its second term.
    left, sizes, right = np.linalg.svd(S.reshape(d * d, d * outputs), full_matrices=False)
    theta = (left[:, :m] * np.sqrt(sizes[:m])).T.reshape(m, d, d)
    w = (right[:m].T * np.sqrt(sizes[:m])).T.reshape(m, d, outputs)
    for _ in range(sweeps):
        w = _solve_w(S, theta)
        theta = _solve_theta(S, w)
    return theta, _solve_w(S, theta)


def moment_basis(rows: Rows, m: int) -> np.ndarray:
    """Orthonormal basis ``(m, d, d)`` of the span of the heads as first-order moments show it."""
    theta, _ = decompose(moment_tensor(rows), m)
    d = theta.shape[1]
    return np.linalg.qr(theta.reshape(m, -1).T)[0].T.reshape(m, d, d)


def _features(rows: Rows) -> np.ndarray:
    d = rows.Q.shape[1]
    centre = rows.K.mean(axis=1)
    centred = rows.K - centre[:, None]
    C = centred.transpose(0, 2, 1) @ centred / rows.K.shape[1]
    first, second = np.triu_indices(d)
    products = (rows.Q[:, :, None] * C[:, None, first, second]).reshape(len(rows), -1)
    return np.concatenate([products, centre, rows.Q], axis=1)


def _solve_w(S: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Least squares for W: S[p,q,r,s] = sum_i Theta_i[p,q] W_i[r,s] + Theta_i[p,r] W_i[q,s]."""
    m, d, _ = theta.shape
    eye = np.eye(d)
    design = np.einsum("ipq,rt->pqrit", theta, eye) + np.einsum("ipr,qt->pqrit", theta, eye)
    solved = np.linalg.lstsq(design.reshape(d**3, m * d), S.reshape(d**3, -1), rcond=None)[0]
    return solved.reshape(m, d, -1)


def _solve_theta(S: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Least squares for Theta, one row p at a time (they do not mix)."""
    m, d, _ = w.shape
    eye = np.eye(d)
    design = np.einsum("irs,qt->qrsit", w, eye) + np.einsum("iqs,rt->qrsit", w, eye)
    solved = np.linalg.lstsq(design.reshape(-1, m * d), S.reshape(d, -1).T, rcond=None)[0]
    return solved.reshape(m, d, d).transpose(0, 2, 1)
