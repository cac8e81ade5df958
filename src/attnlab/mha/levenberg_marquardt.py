r"""Levenberg-Marquardt on the projected problem: second order in Theta, exact in W.

A step solves :math:`(H + \mu\,\mathrm{diag} H)\,\delta = g`; it is kept when the error falls (then mu / 5), otherwise
mu grows by 4 and the step is tried again, eight times at most.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from attnlab.common.threads import single_threaded_blas
from attnlab.mha.layer import Rows
from attnlab.mha.normal_equations import NormalEquations, normal_equations, normal_equations_in
from attnlab.mha.varpro import Regression, regress

_TRIES = 8
# With fewer unknowns than this the solution of the equations is too small for a threaded BLAS.
_SMALL = 1000


@dataclass(frozen=True)
class Fit:
    """A fitted layer: parameters, relative squared error on the rows it was fitted to, and how the fit ended.

    ``converged`` says that the error reached the tolerance or stopped falling, not that the layer is the planted one.
    """

    theta: np.ndarray
    w: np.ndarray
    nmse: float
    n_steps: int
    converged: bool
    history: tuple[float, ...]


def levenberg_marquardt(
    rows: Rows,
    theta: np.ndarray,
    *,
    max_steps: int = 120,
    basis: np.ndarray | None = None,
    tolerance: float = 1e-22,
    progress: float = 1e-3,
    patience: int = 8,
    deadline: float = np.inf,
) -> Fit:
    """Fit the layer to rows from a start.

    Parameters
    ----------
    theta : start, ``(m, d, d)``.
    basis : ``(l, d, d)``; with it each head moves in this span only (m l unknowns instead of m d^2).
    tolerance : stop when the relative squared error is below.
    progress, patience : stop when ``patience`` steps in a row each lower the error by less than this share.
    deadline : value of ``time.monotonic()`` after which no further step is begun.
    """
    with single_threaded_blas() if theta.size < _SMALL else nullcontext():
        fit, mu = regress(rows, theta), 1e-2
        history = [fit.nmse(rows.Y)]
        slow, converged = 0, history[0] < tolerance
        while not converged and len(history) <= max_steps and time.monotonic() < deadline:
            equations = (
                normal_equations(rows, theta, fit) if basis is None else normal_equations_in(rows, theta, fit, basis)
            )
            accepted = _step(rows, theta, equations, basis, history[-1], mu)
            if accepted is None:
                converged = True
                break
            theta, fit, mu = accepted
            history.append(fit.nmse(rows.Y))
            slow = slow + 1 if history[-1] > (1 - progress) * history[-2] else 0
            converged = history[-1] < tolerance or slow >= patience
    return Fit(theta, fit.W, history[-1], len(history) - 1, converged, tuple(history))


def _step(
    rows: Rows, theta: np.ndarray, equations: NormalEquations, basis: np.ndarray | None, error: float, mu: float
) -> tuple[np.ndarray, Regression, float] | None:
    """The first damped step that lowers the error, with its damping for the next; None when none does."""
    diagonal = np.maximum(np.diag(equations.H), np.finfo(float).eps * np.trace(equations.H) / len(equations.g))
    for _ in range(_TRIES):
        delta = _solve(equations, mu * diagonal)
        if delta is not None:
            move = (
                delta.reshape(theta.shape) if basis is None else np.tensordot(delta.reshape(len(theta), -1), basis, 1)
            )
            fit = regress(rows, theta + move)
            if fit.nmse(rows.Y) < error:
                return theta + move, fit, max(mu / 5, 1e-15)
        mu *= 4
    return None


def _solve(equations: NormalEquations, damping: np.ndarray) -> np.ndarray | None:
    """Cholesky solution of the damped equations; None when rounding made them indefinite."""
    damped = equations.H.copy()
    damped[np.diag_indices_from(damped)] += damping
    try:
        factor = linalg.cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    solution: np.ndarray = linalg.cho_solve(factor, equations.g, check_finite=False)
    return solution if np.isfinite(solution).all() else None
