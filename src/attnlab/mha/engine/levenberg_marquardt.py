r"""Levenberg-Marquardt on the projected problem: second order in Theta, exact in W.

A step solves :math:`(H + \mu\,\mathrm{diag} H)\,\delta = g`; it is kept when the error falls (then mu / 5), otherwise
mu grows by 4 and the step is tried again, eight times at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from attnlab.common.threads import single_threaded_blas
from attnlab.mha.engine.damped import EXACT_FIT, SEARCHED, SETTLED, StopRule, damped_steps
from attnlab.mha.engine.normal_equations import NormalEquations, normal_equations, normal_equations_in
from attnlab.mha.engine.variable_projection import Regression, regress
from attnlab.mha.layer import Rows

# Time for dozens of products, little beside a fit.
_PROBE_SECONDS = 0.02
# With fewer unknowns than this the solution of the equations is too small for a threaded BLAS.
_SMALL = 1000


@dataclass(frozen=True)
class Fit:
    """A fitted layer: parameters, relative squared error on the rows it was fitted to, and how the fit ended.

    ``reason`` says why it stopped; the fit converged when the error reached the tolerance or stopped falling, which
    does not mean that the layer is the planted one.
    """

    theta: np.ndarray
    w: np.ndarray
    nmse: float
    n_iter: int
    reason: str
    history: tuple[float, ...]

    @property
    def converged(self) -> bool:
        """Whether the fit ended by its own rule and not by a limit."""
        return self.reason in (EXACT_FIT, SETTLED, SEARCHED)


def levenberg_marquardt(rows: Rows, theta: np.ndarray, *, basis: np.ndarray | None = None, **limits: Any) -> Fit:
    """Fit the layer to rows from a start.

    Parameters
    ----------
    theta : start, ``(m, d, d)``.
    basis : ``(l, d, d)``; with it each head moves in this span only (m l unknowns instead of m d^2).
    limits : of a :class:`StopRule`.
    """
    with single_threaded_blas() if theta.size < _SMALL else nullcontext():
        watch = StopRule(**limits)
        if basis is None and np.isfinite(watch.deadline):
            # Before the first step nothing else is known of its length.
            watch.longest = step_seconds(len(rows), *theta.shape[:2])

        def steps_from(at: Projected) -> Callable[[float], Projected | None]:
            if basis is None:
                return _steps(rows, at, normal_equations(rows, at.theta, at.fit), None)
            return _steps(rows, at, normal_equations_in(rows, at.theta, at.fit, basis), basis)

        return as_fit(*damped_steps(Projected.at(rows, theta), steps_from, watch))


class Projected(NamedTuple):
    """Attention matrices, the regression for W at them, and its relative squared error."""

    theta: np.ndarray
    fit: Regression
    error: float

    @classmethod
    def at(cls, rows: Rows, theta: np.ndarray) -> Projected:
        """The regression at these attention matrices."""
        fit = regress(rows, theta)
        return cls(theta, fit, fit.nmse(rows.Y))


def as_fit(at: Projected, history: list[float], reason: str) -> Fit:
    """The result of damped steps."""
    return Fit(at.theta, at.fit.W, history[-1], len(history) - 1, reason, tuple(history))


def step_seconds(rows: int, m: int, d: int) -> float:
    """About how long a step takes, from the rate of a small matrix product at this moment."""
    a, products, begun = np.ones((192, 192)), 0, time.perf_counter()
    while (taken := time.perf_counter() - begun) < _PROBE_SECONDS:
        a @ a
        products += 1
    seconds_of_a_flop = taken / (2 * products * 192**3)
    # The two products over rows, the projection and the factor, at a quarter of the rate of a product.
    size = m * d * d
    return 4 * seconds_of_a_flop * (1.5 * rows * size**2 + 1.4 * size**3)


def _steps(
    rows: Rows, at: Projected, equations: NormalEquations, basis: np.ndarray | None
) -> Callable[[float], Projected | None]:
    """Damped steps from one linearisation."""
    # Marquardt's scaling: mu then means the same in any unit of the tokens. The floor damps entries of Theta that no
    # row depends on, whose diagonal is zero.
    diagonal = np.maximum(np.diag(equations.H), np.finfo(float).eps * np.trace(equations.H) / len(equations.g))

    def step(mu: float) -> Projected | None:
        delta = _solve(equations, mu * diagonal)
        if delta is None:
            return None
        shape = at.theta.shape
        move = delta.reshape(shape) if basis is None else np.tensordot(delta.reshape(len(at.theta), -1), basis, 1)
        return Projected.at(rows, at.theta + move)

    return step


def _solve(equations: NormalEquations, damping: np.ndarray) -> np.ndarray | None:
    """Cholesky solution of the damped equations; None when rounding made them indefinite."""
    # The factor takes the place of its argument, and H serves the next mu.
    damped = equations.H.copy()
    damped[np.diag_indices_from(damped)] += damping
    try:
        factor = linalg.cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    solution: np.ndarray = linalg.cho_solve(factor, equations.g, check_finite=False)
    return solution if np.isfinite(solution).all() else None
