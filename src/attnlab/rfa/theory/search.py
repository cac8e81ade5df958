r"""The equations of finitely many heads on the Gram matrices of a sample, solved where no spectrum is known.

The symbols are those of :mod:`attnlab.rfa.theory.sampled`. The unknowns are x = (log kappa (1 + delta_0),
log (1 + delta_0) / (1 + delta_c)), and H = (1 + delta_0) / G is what is factored.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

STEPS = 60
# Of the logarithms of kappa and of the ratio of the classes: far below the statistical error.
TOLERANCE = 1e-6
DIFFERENCE = 1e-5


class Sampled(NamedTuple):
    """Tokens of m examples and K_c / m by class, with the number of features of each class in one unit."""

    tokens: np.ndarray
    parts: np.ndarray
    counts: np.ndarray

    def of(self, units: float) -> Sampled:
        """The classes of infinitely many heads are one."""
        whole = self.parts.sum(axis=0, keepdims=True)
        return self._replace(parts=whole, counts=self.counts[:1]) if math.isinf(units) else self


class Traces(NamedTuple):
    """What the Gram matrices say at x.

    ``mismatch`` is the second part of x that follows, less the one given: zero at the solution. ``log_shrunk`` is
    - log (1 + delta_0).
    """

    df: float
    log_nu: float
    log_shrunk: float
    mismatch: np.ndarray

    def flat(self) -> np.ndarray:
        """All numbers in a row."""
        return np.concatenate([[self.df, self.log_nu, self.log_shrunk], self.mismatch])


class Solved(NamedTuple):
    """Where the equations hold, and the slopes in x_0 along the solutions: of x, and of (df, log nu, log_shrunk)."""

    x: np.ndarray
    df: float
    log_nu: float
    log_shrunk: float
    along: np.ndarray
    slopes: np.ndarray
    jacobian: np.ndarray | None = None


def factor_of(sample: Sampled, x: np.ndarray) -> np.ndarray | None:
    """Cholesky factor of 1 / G with the factor 1 / (1 + delta_0) taken out; None below rounding."""
    H = np.tensordot(np.exp(np.append(0.0, x[1:])), sample.parts, 1)
    H[np.diag_indices(len(H))] += math.exp(x[0])
    # The matrix is symmetric: its transpose is the Fortran order that LAPACK overwrites without a copy.
    factor, failed = lapack.dpotrf(H.T, lower=1, overwrite_a=1)
    return None if failed else np.asarray(factor)


def _traces(sample: Sampled, units: float, x: np.ndarray) -> Traces | None:
    """None where the features would be overfull: df above their number, or above m."""
    factor = factor_of(sample, x)
    if factor is None:
        return None
    m, ratio = len(factor), np.exp(np.append(0.0, x[1:]))
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    # One triangle is zero: every pair of examples is met once. The transpose has the order in memory of K.
    traces = np.array([2 * np.vdot(K, inverse.T) - np.diag(K) @ np.diag(inverse) for K in sample.parts])
    # delta_c = t_c / p_c with G = (1 + delta_0) / H reads 1 / (1 + delta_c) = 1 - r_c tr(K_c / H) / p_c.
    shrunk, df = 1 - ratio * traces / (units * sample.counts), float(ratio @ traces)
    if (shrunk <= 0).any() or df >= m:
        return None
    log_shrunk = math.log(shrunk[0])
    return Traces(df, x[0] + log_shrunk - math.log(1 - df / m), log_shrunk, np.log(shrunk[1:]) - log_shrunk - x[1:])


def search(sample: Sampled, n: float, units: float, ridge: float, near: Solved | None) -> Solved | None:
    """The solution; ``near``, one of another sample, is where it begins.

    Broyden's method: the Jacobian costs a factor for each unknown, so it is updated, and computed at the end. Beside a
    saturated class of features an updated Jacobian may lead astray; a new one at every step, Newton's method, does not.
    """
    return _search(sample, n, units, ridge, near, updated=True) or _search(sample, n, units, ridge, None, updated=False)


def _search(
    sample: Sampled, n: float, units: float, ridge: float, near: Solved | None, *, updated: bool
) -> Solved | None:
    trace = float(np.trace(sample.parts, axis1=1, axis2=2).sum())
    x: np.ndarray = np.append(math.log(trace / n), np.zeros(len(sample.counts) - 1)) if near is None else near.x
    here = _traces(sample, units, x)
    while here is None:  # a larger ridge fills less
        x = x + np.eye(len(x))[0]
        here = _traces(sample, units, x)
    jacobian, exact = None if near is None else near.jacobian, False
    for _ in range(STEPS):
        if jacobian is None:
            jacobian, exact = _differences(sample, units, x, here), True
            if jacobian is None:
                return None
        step = _newton_step(here, jacobian, n, ridge)
        if np.abs(step).max() < TOLERANCE:
            if exact:
                return _solved(x, here, jacobian)
            jacobian = None
            continue
        step *= min(1.0, 2.0 / np.abs(step).max())
        following, whole = _traces(sample, units, x + step), updated
        while following is None and np.abs(step).max() > TOLERANCE:
            step, whole = step / 2, False
            following = _traces(sample, units, x + step)
        # Below the rounding error of the kernel a ridge carries no information.
        if following is None or math.exp((x + step)[0]) < 1e-7 * trace:
            return None
        # A step that had to be shortened says that the Jacobian is of elsewhere.
        miss = following.flat() - here.flat() - jacobian @ step
        jacobian, exact = (jacobian + np.outer(miss, step) / (step @ step) if whole else None), False
        x, here = x + step, following
    return None


def _solved(x: np.ndarray, at: Traces, jacobian: np.ndarray) -> Solved:
    inner = jacobian[3:]
    along = np.append(1.0, -np.linalg.solve(inner[:, 1:], inner[:, 0])) if len(inner) else np.ones(1)
    return Solved(x, at.df, at.log_nu, at.log_shrunk, along, jacobian[:3] @ along, jacobian)


def _differences(sample: Sampled, units: float, x: np.ndarray, here: Traces) -> np.ndarray | None:
    moved = [_traces(sample, units, x + DIFFERENCE * e) for e in np.eye(len(x))]
    if any(t is None for t in moved):
        return None
    return np.stack([(t.flat() - here.flat()) / DIFFERENCE for t in moved if t is not None], axis=1)


def _newton_step(here: Traces, jacobian: np.ndarray, n: float, ridge: float) -> np.ndarray:
    # n lam / nu counts with the degrees of freedom; its logarithm falls as log nu grows.
    held = n * ridge * math.exp(-here.log_nu)
    equations = np.vstack([jacobian[0] - held * jacobian[1], jacobian[3:]])
    return np.asarray(np.linalg.solve(equations, -np.append(here.df + held - n, here.mismatch)))
