r"""The same Levenberg-Marquardt steps for large layers: the equations are solved by conjugate gradients, never written.

With :math:`P = I - Z(Z^\top Z)^{-1}Z^\top` and the patterns of the point, :math:`Jv` and :math:`J^\top u` are products
over rows: about :math:`4R(md^2 + 2mkd + 3mdo)` flops for both, where the equations themselves take
:math:`\tfrac32 R(md^2)^2` and their factor :math:`\tfrac13(md^2)^3`. The preconditioner is a Kronecker product,

.. math:: H \approx \overline{q q^\top} \otimes S, \qquad S_{iq,jq'} = \sum_a (M^{(i)}_a M^{(j)\top}_a)_{qq'} ,

exact where a row's query is independent of its keys and W is not projected out (symbols of
:mod:`attnlab.mha.engine.variable_projection`).

Source: derived here.  Status: heuristic (a local search from a start).
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
from scipy import linalg

from attnlab.common.threads import single_threaded_blas
from attnlab.mha.engine.damped import StopRule, damped_steps
from attnlab.mha.engine.levenberg_marquardt import Fit, Projected, as_fit, levenberg_marquardt
from attnlab.mha.engine.variable_projection import (
    Regression,
    chunks,
    key_covariances,
    key_responses,
    row_patterns,
    through_patterns,
)
from attnlab.mha.layer import Rows

# From so many entries of Theta on the products are cheaper than the equations.
LARGE = 1000
# A step need not be exact: the loop around it keeps it only if the error falls.
_CG_STEPS, _CG_TOL = 80, 0.1
# Rows behind the preconditioner, which changes the number of conjugate steps and not where they lead.
_PROBED_ROWS = 512
# Keeps both factors of the preconditioner definite where the tokens span less than d dimensions.
_EPS = 1e-12


def fit_rows(rows: Rows, theta: np.ndarray, **limits: Any) -> Fit:
    """Fit the layer on this machine's BLAS, by the equations or by products as its size says."""
    solver: Callable[..., Fit] = iterated_levenberg_marquardt if theta.size >= LARGE else levenberg_marquardt
    return solver(rows, theta, **limits)


def iterated_levenberg_marquardt(rows: Rows, theta: np.ndarray, **limits: Any) -> Fit:
    """Fit the layer to rows from a start; limits as in :func:`levenberg_marquardt`."""
    with single_threaded_blas():

        def steps_from(at: Projected) -> Callable[[float], Projected | None]:
            linearised = Linearised(rows, at.theta, at.fit)

            def step(mu: float) -> Projected | None:
                move = linearised.solve(mu)
                return Projected.at(rows, at.theta + move) if np.isfinite(move).all() else None

            return step

        return as_fit(*damped_steps(Projected.at(rows, theta), steps_from, StopRule(**limits)))


class Linearised:
    """The projected problem at a point: products with J^T J, the slope J^T R, and a preconditioner."""

    def __init__(self, rows: Rows, theta: np.ndarray, fit: Regression) -> None:
        self.rows, self.fit, self.shape = rows, fit, theta.shape
        self.patterns = row_patterns(rows, theta)
        self.parts = list(chunks(len(rows), 2 * theta.shape[0] * theta.shape[1]))
        self.slope = self._transposed(fit.residual)
        some = rows.take(slice(None, None, ceil(len(rows) / _PROBED_ROWS)))
        C = key_covariances(some, theta, (row_patterns(some, theta) @ some.K).reshape(len(some), -1))
        M = key_responses(C, fit.W).transpose(0, 2, 1, 3).reshape(theta.shape[0] * theta.shape[1], -1)
        self.S = M @ M.T * (len(rows) / len(some))
        self.S[np.diag_indices_from(self.S)] += _EPS * np.trace(self.S) + np.finfo(float).tiny
        queries = rows.Q.T @ rows.Q / len(rows)
        queries[np.diag_indices_from(queries)] += _EPS * np.trace(queries)
        self.queries = linalg.cho_factor(queries)
        self.diagonal = np.outer(np.diag(queries), np.diag(self.S))

    def product(self, v: np.ndarray) -> np.ndarray:
        """J^T J v; unknowns are laid out ``(p, (i, q))``."""
        W, Z = self.fit.W.reshape(-1, self.fit.W.shape[-1]), self.fit.Z
        moved = np.empty_like(self.fit.residual)
        for part in self.parts:
            moved[part] = through_patterns(self.rows.Q[part] @ v, self.patterns[part], self.rows.K[part]) @ W
        moved -= Z @ linalg.cho_solve((self.fit.factor, True), Z.T @ moved, check_finite=False)
        return self._transposed(moved)

    def solve(self, mu: float) -> np.ndarray:
        """The step, ``(m, d, d)``: (J^T J + mu D) x = J^T R by preconditioned conjugate gradients."""
        m, d, _ = self.shape
        # Damping enters one factor only: a sum of two Kronecker products has no cheap inverse.
        keys = linalg.cho_factor(self.S + mu * np.diag(np.diag(self.S)))

        def scaled(v: np.ndarray) -> np.ndarray:
            by_keys = linalg.cho_solve(keys, v.T, check_finite=False).T
            return linalg.cho_solve(self.queries, by_keys, check_finite=False)

        x, left = np.zeros_like(self.slope), self.slope.copy()
        direction = scaled(left)
        size = first = np.vdot(left, direction)
        for _ in range(_CG_STEPS):
            # Written so that a NaN ends the loop too.
            if not size > _CG_TOL**2 * first:
                break
            image = self.product(direction) + mu * self.diagonal * direction
            length = size / np.vdot(direction, image)
            x += length * direction
            left -= length * image
            smaller = scaled(left)
            size, before = np.vdot(left, smaller), size
            direction = smaller + size / before * direction
        return x.reshape(d, m, d).transpose(1, 0, 2)

    def _transposed(self, u: np.ndarray) -> np.ndarray:
        """J^T u for u orthogonal to Z."""
        W = self.fit.W.reshape(-1, self.fit.W.shape[-1])
        total = np.zeros((self.shape[1], len(W)))
        for part in self.parts:
            total += self.rows.Q[part].T @ through_patterns(u[part] @ W.T, self.patterns[part], self.rows.K[part])
        return total
