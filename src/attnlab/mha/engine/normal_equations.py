r"""Kaufman's Gauss-Newton equations of the projected problem, without ever writing the Jacobian down.

Its column (i, p, q) is the outer product :math:`q_{ap} M^{(i)}_a[q, :]` (symbols of
:mod:`attnlab.mha.engine.variable_projection`), so

.. math::
    (J^\top J)_{ipq,\,jp'q'} = \sum_a q_{ap} q_{ap'}\, (M^{(i)}_a M^{(j)\top}_a)_{qq'} , \qquad
    (Z^\top J_s)_{jr,\,ipq} = \sum_{q'} \Big[\sum_a z^{(j)}_{ar} q_{ap}\, C^{(i)}_a[q, q']\Big] W_i[q', s]

Both sums over rows are products of two tall matrices, in which the symmetric pairs (p, p'), (q, q') of C and
((q, i), (q', j)) are kept once: about :math:`\tfrac32 m^2 d^4` flops a row, 2 d_out / 3 times fewer than a symmetric
product of J with itself.

Rows are taken in chunks by several threads. The arrays of a chunk are made once for each thread: touching fresh pages
would cost as much as the products.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import linalg

from attnlab.common.threads import in_spans, thread_count
from attnlab.mha.engine.variable_projection import Regression, chunks, key_covariances, key_responses, row_patterns
from attnlab.mha.layer import Rows

# A chunk has enough rows that its products outweigh adding their results up, and not more than fit in this memory.
_CHUNK_BYTES = 16_000_000
_CHUNK_ROWS = 256
# With fewer rows than this a thread costs more than it saves.
_ROWS_OF_A_THREAD = 1000


class NormalEquations(NamedTuple):
    """Gauss-Newton matrix and descent direction's right-hand side of the projected problem."""

    H: np.ndarray
    g: np.ndarray


def normal_equations(rows: Rows, theta: np.ndarray, fit: Regression) -> NormalEquations:
    """The equations in all entries of Theta."""
    m, d, _ = theta.shape
    step = _rows_of_a_chunk(m, d)

    def sums(first: int, last: int) -> _Sums:
        total = _Sums(theta, fit, min(step, last - first))
        for start in range(first, last, step):
            total.add(rows, slice(start, min(start + step, last)))
        return total

    threads = min(thread_count(), max(1, len(rows) // _ROWS_OF_A_THREAD))
    parts = in_spans(sums, len(rows), threads)
    total = parts[0]
    for part in parts[1:]:
        total.merge(part)
    H = _unpack_products(total.products, m, d)
    U = _projected_columns(total.cross, fit)
    # J^T P J = J^T J - U^T U with U = L^{-1} Z^T J: W follows each move of Theta.
    H -= U.T @ U
    return NormalEquations(H, total.slope.transpose(2, 0, 1).reshape(-1))


def _rows_of_a_chunk(m: int, d: int) -> int:
    """Rows of a chunk, whose largest array has (m d)^2 numbers a row."""
    return max(_CHUNK_ROWS, min(m * d * d, _CHUNK_BYTES // (8 * (m * d) ** 2)))


class _Sums:
    """Sums over rows: ``products`` (J^T J), ``cross`` (Z^T J before W), both packed, and ``slope`` (J^T R)."""

    def __init__(self, theta: np.ndarray, fit: Regression, rows: int) -> None:
        m, d, outputs = fit.W.shape
        self.theta, self.fit = theta, fit
        pairs, all_pairs = coordinate_pairs(d), coordinate_pairs(d * m)
        t, all_t = len(pairs.first), len(all_pairs.first)
        self.products, self.more_products = np.zeros((t, all_t)), np.empty((t, all_t))
        self.cross, self.more_cross = np.zeros((m * t, m * d * d)), np.empty((m * t, m * d * d))
        self.slope = np.zeros((d, d, m))
        # The arrays of a chunk; coordinate and head are laid out (q, i).
        self.C, self.packed_C = np.empty((rows, d, m * d)), np.empty((rows, m * t))
        self.M, self.turned_M = np.empty((rows, d * m, outputs)), np.empty((rows, outputs, d * m))
        self.MM, self.packed_MM = np.empty((rows, d * m, d * m)), np.empty((rows, all_t))
        self.QQ, self.other_Q = np.empty((rows, t)), np.empty((rows, t))
        self.QZ = np.empty((rows, d, m * d))
        self.pairs_of_C = (pairs.first * m * d + np.arange(m)[:, None] * d + pairs.second).reshape(-1)

    def add(self, rows: Rows, part: slice) -> None:
        """Add the rows of a chunk."""
        some, (m, d, outputs) = rows.take(part), self.fit.W.shape
        r, k, keys = len(some), some.K.shape[1], some.K.transpose(0, 2, 1)
        patterns = row_patterns(some, self.theta)
        weighted = some.K[:, :, None] - (patterns @ some.K)[:, None]
        weighted *= patterns.transpose(0, 2, 1)[..., None]
        values = np.empty((r * k, m, outputs))
        for i in range(m):
            np.matmul(weighted.reshape(r * k, m, d)[:, i], self.fit.W[i], out=values[:, i])
        # The weighted differences sum to zero, so that plain keys times them are already the covariance.
        np.matmul(keys, weighted.reshape(r, k, m * d), out=self.C[:r])
        np.matmul(keys, values.reshape(r, k, m * outputs), out=self.M[:r].reshape(r, d, m * outputs))
        self._add_products(some.Q, self.M[:r])
        self._add_cross(some.Q, self.fit.Z[part], self.C[:r])
        missed = np.matmul(values.reshape(r, k * m, outputs), self.fit.residual[part, :, None]).reshape(r, k, m)
        self.slope += np.tensordot(some.Q, keys @ missed, (0, 0))

    def merge(self, other: _Sums) -> None:
        """Add the sums of another span of rows."""
        self.products += other.products
        self.cross += other.cross
        self.slope += other.slope

    def _add_products(self, Q: np.ndarray, M: np.ndarray) -> None:
        r, pairs = len(Q), coordinate_pairs(Q.shape[1])
        # The transpose is copied because NumPy sends A @ A.T to a routine that is slow for small A.
        np.copyto(self.turned_M[:r], M.transpose(0, 2, 1))
        np.matmul(M, self.turned_M[:r], out=self.MM[:r])
        _gather(self.MM[:r], coordinate_pairs(M.shape[1]).flat, self.packed_MM[:r])
        QQ = _gather(Q, pairs.first, self.QQ[:r])
        QQ *= _gather(Q, pairs.second, self.other_Q[:r])
        self.products += np.matmul(QQ.T, self.packed_MM[:r], out=self.more_products)

    def _add_cross(self, Q: np.ndarray, Z: np.ndarray, C: np.ndarray) -> None:
        r = len(Q)
        QZ = np.multiply(Q[:, :, None], Z[:, None, :], out=self.QZ[:r]).reshape(r, -1)
        packed = _gather(C, self.pairs_of_C, self.packed_C[:r])
        self.cross += np.matmul(packed.T, QZ, out=self.more_cross)


def _gather(array: np.ndarray, index: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Chosen numbers of every row; with ``mode`` other than raise the result is written in place, without a copy."""
    return np.take(array.reshape(len(array), -1), index, axis=1, out=out, mode="clip")


def normal_equations_in(rows: Rows, theta: np.ndarray, fit: Regression, basis: np.ndarray) -> NormalEquations:
    """The same equations when every Theta_i moves in the span of ``basis (l, d, d)``: m l unknowns."""
    m, d, _ = theta.shape
    unknowns, outputs = m * len(basis), fit.W.shape[-1]
    H, g = np.zeros((unknowns, unknowns)), np.zeros(unknowns)
    cross = np.zeros((m * d, outputs * unknowns))
    for part in chunks(len(rows), 2 * m * d * d):
        some, Z = rows.take(part), fit.Z[part]
        M = key_responses(key_covariances(some, theta, Z), fit.W)
        moved = (some.Q @ basis).transpose(1, 0, 2)
        J = np.concatenate([moved @ M[i] for i in range(m)], axis=1).transpose(0, 2, 1)
        flat = np.ascontiguousarray(J).reshape(-1, unknowns)
        H += flat.T @ flat
        g += flat.T @ fit.residual[part].reshape(-1)
        cross += Z.T @ J.reshape(len(some), -1)
    U = linalg.solve_triangular(fit.factor, cross, lower=True).reshape(-1, unknowns)
    return NormalEquations(H - U.T @ U, g)


class Pairs(NamedTuple):
    """The pairs (p <= p') of d coordinates, their place in a flat d x d matrix, and the number of every pair."""

    first: np.ndarray
    second: np.ndarray
    flat: np.ndarray
    number: np.ndarray


@lru_cache(maxsize=32)
def coordinate_pairs(d: int) -> Pairs:
    """The pairs of d coordinates."""
    first, second = np.triu_indices(d)
    number = np.zeros((d, d), dtype=int)
    number[first, second] = number[second, first] = np.arange(len(first))
    return Pairs(first, second, first * d + second, number)


def _unpack_products(packed: np.ndarray, m: int, d: int) -> np.ndarray:
    """From pairs (p <= p') and ((q, i) <= (q', j)) to the symmetric matrix over (i, p, q)."""
    whole: np.ndarray = packed[coordinate_pairs(d).number][:, :, coordinate_pairs(d * m).number].reshape(
        d, d, d, m, d, m
    )
    return whole.transpose(3, 0, 2, 5, 1, 4).reshape(m * d * d, m * d * d)


def _projected_columns(cross: np.ndarray, fit: Regression) -> np.ndarray:
    """``L^{-1} Z^T J`` for every output, stacked: rows (head, coordinate, output), columns (i, p, q)."""
    m, d, outputs = fit.W.shape
    columns = np.empty((m * d, outputs, m, d, d))
    solved = linalg.solve_triangular(fit.factor, cross.reshape(-1, m * d).T, lower=True).reshape(m * d, m, -1, d)
    for i in range(m):
        # axes: (head and coordinate of z, q, q', p)
        whole = solved[:, i, coordinate_pairs(d).number.reshape(-1)].reshape(m * d * d, d, d)
        seen = np.matmul(fit.W[i].T, whole).reshape(m * d, d, outputs, d)
        columns[:, :, i] = seen.transpose(0, 2, 3, 1)
    return columns.reshape(m * d * outputs, m * d * d)
