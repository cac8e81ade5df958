r"""State evolution: the Bayes-optimal overlaps as d grows at fixed alpha = n/d.

One step, in a form without an inverse of V:

.. math:: V_{new} = L \big((1 + \epsilon) L^2 + \alpha S\big)^{-1} L, \qquad V = L^2,\; Q = I - V

Every scramble of the points runs its own fixed point; the spread of their ends is the error bar. Averaging S over the
scrambles in one iteration would hide the error near a transition, where the map amplifies it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnlab.common.prediction import Prediction
from attnlab.common.validation import finite_array, integer, positive, real
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, power_of_two
from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import Rule
from attnlab.smi.theory.gains import Gain, gain, normals_of

SIDE = 1e-6  # side information that lets an unlearned direction grow, in every step
INFORMED = 1e-3  # V of the informed start
EXACT = 1e-8  # V below which the directions are recovered exactly
SMALL = 1e-2  # an eigenvalue of Q or V below it must also settle relative to its size
GUARD = 50  # iterations in which the residual must fall by 10 %


@dataclass(frozen=True, eq=False, repr=False)
class StateEvolution(Prediction):
    """A fixed point: ``value`` is Q and ``error`` its standard error over the scrambles of the points.

    Parameters
    ----------
    V, S : error covariance I - Q, and information gained from one sequence, there.
    trajectory : Q of the mean over scrambles at each iteration, (n_iter + 1, r, r).
    resolved : whether the posteriors were integrated accurately; if not, Q, V and S are NaN.
    nishimori_gap : relative difference of two estimates of tr S that agree for a right posterior.
    ess : 1 % quantile of the effective sample size of a posterior.
    n_iter, residual : iterations made, and the largest change of V by one more undamped step.
    """

    V: Any = None
    S: Any = None
    trajectory: Any = None
    resolved: bool = True
    nishimori_gap: float = 0.0
    ess: float = np.inf
    n_iter: int = 0
    residual: float = 0.0
    link: Link | None = None

    @property
    def Q(self) -> np.ndarray:
        """Overlap of the posterior mean with the truth."""
        return np.asarray(self.value)

    @property
    def Q_error(self) -> np.ndarray:
        """Standard error of each entry of Q."""
        return np.asarray(self.error)

    @cached_property
    def test_error(self) -> Prediction:
        """Bayes-optimal squared error of a fresh output, summed over its entries."""
        from attnlab.smi.theory.generalization import generalization_error

        assert self.link is not None
        return generalization_error(self.link, self.Q)


def step(V: np.ndarray, S: np.ndarray, alpha: float, side: float = 0.0) -> np.ndarray:
    """The next V (R, r, r): (I + Qh)^-1 with Qh = alpha L^-1 S L^-1 + side I."""
    v, basis = np.linalg.eigh(V)
    L = (basis * np.sqrt(np.clip(v, 0.0, None))[:, None, :]) @ basis.swapaxes(1, 2)
    new = L @ np.linalg.solve((1 + side) * V + alpha * S, L)
    return np.asarray(0.5 * (new + new.swapaxes(1, 2)))


def start_matrix(start: Any, rank: int) -> tuple[np.ndarray, float]:
    """First V, and the side information of the branch."""
    if isinstance(start, str):
        if start == "uninformed":
            return np.eye(rank) / (1 + SIDE), SIDE
        if start == "informed":
            return INFORMED * np.eye(rank), 0.0
        raise ValueError(f"start must be 'uninformed', 'informed' or a matrix Q, got {start!r}")
    Q = finite_array("start", start, shape=(rank, rank)).astype(float)
    q = np.linalg.eigvalsh(0.5 * (Q + Q.T))
    if not np.allclose(Q, Q.T) or q[0] < -1e-12 or q[-1] >= 1:
        raise ValueError(f"start must be a symmetric matrix Q with eigenvalues in [0, 1), got eigenvalues {q}")
    return np.eye(rank) - Q, 0.0


def alarm(found: Gain) -> str:
    """Why the numbers cannot be trusted; empty if they can."""
    if not (np.isfinite(found.product).all() and np.isfinite(found.cross).all()):
        return "log_density, log_partition or solve is not finite"
    if not found.resolved:
        return f"the posterior is too narrow for the integration rule (effective sample size {found.ess:.3g})"
    gap, error = found.gap
    size = float(np.trace(found.product.mean(axis=0)))
    if abs(gap) > max(0.02 * size, 4 * error, 1e-12):
        return f"the Nishimori identity fails: E m m^T and E m s^T differ by {gap:.3g} of {size:.3g}"
    return ""


def state_evolution(
    link: Any,
    alpha: float,
    start: Any = "uninformed",
    *,
    draws: int = 2**11,
    replicates: int = REPLICATES,
    damping: float = 0.0,
    tol: float = 1e-5,
    max_iter: int = 500,
) -> StateEvolution:
    r"""Overlaps Q of the Bayes-optimal estimate of the directions from n = alpha d sequences.

    .. math:: \hat Q = \alpha\, \mathbb{E} \sum_t g_t g_t^\top, \qquad Q = \hat Q (I + \hat Q)^{-1}

    Parameters
    ----------
    link : a :class:`~attnlab.smi.Link`, the name of a shipped one, or a task.
    start : ``"uninformed"`` with infinitesimal side information in every step, ``"informed"`` from V = 0.001, or a
        matrix Q from which a branch is continued. Where the first two end apart, the problem is hard at this alpha.
    draws, replicates : sequences of each scrambled Sobol sequence, and their number.
    damping : share of the old V kept in a step; the residual is that of the undamped map.

    Source: arXiv:2502.00901; numerics derived here.  Status: asymptotic.

    >>> round(float(state_evolution("linear", 1.0).Q[0, 0]), 2)
    0.73
    """
    link = checked(link)
    alpha = positive("alpha", alpha)
    damping = real("damping", damping, low=0.0, high=1.0, open_high=True)
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=2)
    tol, max_iter = positive("tol", tol), integer("max_iter", max_iter, low=1)
    first, side = start_matrix(start, link.rank)
    normals = normals_of(link, draws, replicates, "state evolution")
    V = np.repeat(first[None], replicates, axis=0)
    run = _iterate(link, alpha, V, normals, side, damping, tol, max_iter)
    if run.reason:
        warnings.warn(f"state evolution at alpha = {alpha:g} is not resolved: {run.reason}", stacklevel=2)
    elif not run.converged:
        warnings.warn(
            f"state evolution at alpha = {alpha:g} did not converge (residual {run.residual:.2g})",
            stacklevel=2,
        )
    V = run.V
    if side and not run.reason:
        V = _without_side(link, alpha, run, normals, damping, tol, max_iter)
    return _result(link, V, run, replicates)


@dataclass
class _Run:
    V: np.ndarray
    trajectory: list[np.ndarray]
    converged: bool
    residual: float
    found: Gain
    reason: str

    @property
    def n_iter(self) -> int:
        return len(self.trajectory) - 1


def _iterate(
    link: Link,
    alpha: float,
    V: np.ndarray,
    normals: np.ndarray,
    side: float,
    damping: float,
    tol: float,
    max_iter: int,
    rule: Rule | None = None,
) -> _Run:
    trajectory, residuals = [np.eye(link.rank) - V.mean(axis=0)], []
    converged, eye = False, np.eye(link.rank)
    for _ in range(max_iter):
        found = gain(link, V, normals, rule)
        rule = found.rule
        if reason := alarm(found):
            return _Run(V, trajectory, False, np.nan, found, reason)
        new = step(V, found.product, alpha, side)
        residuals.append(float(np.abs(new - V).max()))
        settled = residuals[-1] <= tol and _small_settled(eye - V, eye - new) and _small_settled(V, new)
        V = damping * V + (1 - damping) * new
        trajectory.append(eye - V.mean(axis=0))
        if settled or np.linalg.eigvalsh(V)[:, -1].max() < EXACT:
            converged = True
            break
        # Before its peak the residual is the growth of a direction that is being learned.
        since_peak = len(residuals) - int(np.argmax(residuals))
        if since_peak > GUARD and residuals[-1] > max(tol, 0.9 * residuals[-1 - GUARD]):
            break
    return _Run(V, trajectory, converged, residuals[-1], found, "")


def _small_settled(old: np.ndarray, new: np.ndarray) -> bool:
    """Whether small eigenvalues settle relative to their size: one may still grow or fall at every step."""
    before, after = np.linalg.eigvalsh(old), np.linalg.eigvalsh(new)
    small = before < SMALL
    return bool((np.abs(after - before) <= 2e-3 * np.abs(before))[small].all())


def _without_side(
    link: Link, alpha: float, run: _Run, normals: np.ndarray, damping: float, tol: float, max_iter: int
) -> np.ndarray:
    """V with the directions set to 1 whose overlap is proportional to the side information."""
    v, basis = np.linalg.eigh(run.V)
    if (1 - v > SMALL).all():
        return run.V
    again = _iterate(link, alpha, run.V, normals, 4 * SIDE, damping, tol, max_iter, run.found.rule)
    raised = 1 - np.einsum("kia,kij,kja->ka", basis, again.V, basis)
    proportional = (1 - v <= SMALL) & (raised > 2 * (1 - v))
    return np.asarray((basis * np.where(proportional, 1.0, v)[:, None, :]) @ basis.swapaxes(1, 2))


def _result(link: Link, V: np.ndarray, run: _Run, replicates: int) -> StateEvolution:
    found = run.found
    Q = np.eye(link.rank) - V
    # A rotation to eigenvectors and back leaves 1e-16 where Q vanishes.
    Q = np.where(np.abs(Q) < 1e-13, 0.0, Q)
    gap, size = found.gap[0], float(np.trace(found.product.mean(axis=0)))
    blank = np.nan if run.reason else 1.0
    return StateEvolution(
        Q.mean(axis=0) * blank,
        Q.std(axis=0, ddof=1) / np.sqrt(replicates) * blank,
        "asymptotic",
        run.converged,
        V=V.mean(axis=0) * blank,
        S=found.product.mean(axis=0) * blank,
        trajectory=np.stack(run.trajectory),
        resolved=not run.reason,
        nishimori_gap=gap / max(size, 1e-300),
        ess=found.ess,
        n_iter=run.n_iter,
        residual=run.residual,
        link=link,
    )
