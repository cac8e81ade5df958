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
from attnlab.mha.engine.normal_equations import NormalEquations, normal_equations, normal_equations_in
from attnlab.mha.engine.variable_projection import Regression, regress
from attnlab.mha.layer import Rows

EXACT_FIT, SETTLED, SEARCHED = "error below tol", "error stopped falling", "all candidates compared"
OUT_OF_STEPS, OUT_OF_TIME = "max_iter reached", "max_seconds reached"
_TRIES = 8
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


def levenberg_marquardt(
    rows: Rows,
    theta: np.ndarray,
    *,
    max_iter: int = 120,
    basis: np.ndarray | None = None,
    tol: float = 1e-22,
    progress: float = 1e-3,
    patience: int = 8,
    deadline: float = np.inf,
) -> Fit:
    """Fit the layer to rows from a start.

    Parameters
    ----------
    theta : start, ``(m, d, d)``.
    basis : ``(l, d, d)``; with it each head moves in this span only (m l unknowns instead of m d^2).
    tol : stop when the relative squared error is below.
    progress, patience : stop when ``patience`` steps in a row each lower the error by less than this share.
    deadline : value of ``time.monotonic()``; no step is begun that would end after it, judged by the longest so far.
    """
    with single_threaded_blas() if theta.size < _SMALL else nullcontext():
        fit, mu = regress(rows, theta), 1e-2
        history, watch = [fit.nmse(rows.Y)], StopRule(max_iter, tol, progress, patience, deadline)
        if basis is None and np.isfinite(deadline):
            watch.longest = step_seconds(len(rows), *theta.shape[:2])
        while not (reason := watch.reason(history)):
            equations = (
                normal_equations(rows, theta, fit) if basis is None else normal_equations_in(rows, theta, fit, basis)
            )
            accepted = _step(rows, theta, equations, basis, history[-1], mu)
            if accepted is None:
                reason = SETTLED
                break
            theta, fit, mu = accepted
            history.append(fit.nmse(rows.Y))
    return Fit(theta, fit.W, history[-1], len(history) - 1, reason, tuple(history))


class StopRule:
    """When an iteration ends: exact, settled, or at the limit of its steps or of its time."""

    def __init__(self, max_iter: int, tol: float, progress: float, patience: int, deadline: float) -> None:
        self.max_iter, self.tol, self.progress, self.patience = max_iter, tol, progress, patience
        self.deadline = deadline
        self.slow, self.longest, self.last = 0, 0.0, time.monotonic()

    def reason(self, history: list[float]) -> str:
        """Why to stop after the errors so far; empty to go on."""
        now = time.monotonic()
        # The first call follows no step; from then on what a step takes is known, and an estimate is forgotten.
        if len(history) > 1:
            self.longest = max(self.longest if len(history) > 2 else 0.0, now - self.last)
        self.last = now
        if len(history) > 1:
            self.slow = self.slow + 1 if history[-1] > (1 - self.progress) * history[-2] else 0
        if history[-1] < self.tol:
            return EXACT_FIT
        if self.slow >= self.patience:
            return SETTLED
        if len(history) > self.max_iter:
            return OUT_OF_STEPS
        return OUT_OF_TIME if now + self.longest > self.deadline else ""


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
