"""State evolution: the Bayes-optimal overlaps as d grows at fixed alpha = n/d."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnlab.common.advice import advise
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, positive, real
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, power_of_two
from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import first_rule
from attnlab.smi.task import Task
from attnlab.smi.theory.gains import points_of
from attnlab.smi.theory.generalization import generalization_error
from attnlab.smi.theory.iteration import EXACT, SMALL, ZERO, Map, Run
from attnlab.smi.theory.overlap import overlap_matrix

SIDE = 1e-6  # side information that lets an unlearned direction grow, in every step
NOISY_SIDE = 1e-3  # the same where S carries the noise of inner points, which hides smaller overlaps
INFORMED = 1e-3  # V of the informed start


@dataclass(frozen=True, eq=False, repr=False)
class StateEvolution(Prediction):
    """A fixed point: ``value`` is Q and ``error`` its standard error over the scrambles of the points.

    Parameters
    ----------
    V, S : error covariance I - Q, and information gained from one sequence, there.
    trajectory : Q of the mean over scrambles at each iteration, leaps included, (n_iter + 1, r, r).
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

    @property
    def exact(self) -> bool:
        """Whether all directions are recovered exactly; V then falls by the factor ``detail["rate"]`` in a step."""
        return bool(np.linalg.eigvalsh(self.V)[-1] < EXACT) if self.resolved else False

    @cached_property
    def test_error(self) -> Prediction:
        """Bayes-optimal squared error of a fresh output, summed over its entries."""
        assert self.link is not None
        return generalization_error(self.link, self.Q)


def state_evolution(
    link: str | Link | Task,
    alpha: float,
    start: Any = "uninformed",
    *,
    draws: int = 2**11,
    replicates: int = REPLICATES,
    damping: float = 0.0,
    tol: float = 1e-5,
    max_iter: int = 500,
    nodes: int | None = None,
    leaps: bool = True,
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
    nodes : of the integration rule (a side of the grid, or points of a component); refined as needed unless given.
    leaps : follow geometric series of changes to their end, in far fewer iterations; without, the trajectory is that of
        the map itself, as message passing takes it.

    A direction whose overlap is proportional to the side information has the overlap 0.

    Source: arXiv:2502.00901; numerics derived here.  Status: asymptotic.

    >>> round(float(state_evolution("linear", 1.0).Q[0, 0]), 4)
    0.7298
    """
    link = checked(link)
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=2)
    moves = Map(
        link,
        positive("alpha", alpha),
        points_of(link, draws, replicates, "state evolution"),
        real("damping", damping, low=0.0, high=1.0, open_high=True),
        positive("tol", tol),
        integer("max_iter", max_iter, low=1),
        leaps,
    )
    first, side = _start(start, link)
    run = moves.run(np.repeat(first[None], replicates, axis=0), side, first_rule(link, nodes))
    if side and not run.reason:
        run = _without_side(moves, run, side)
    if run.reason:
        advise(f"state evolution at alpha = {alpha:g} is not resolved: {run.reason}", stacklevel=2)
    elif not run.converged:
        message = f"state evolution at alpha = {alpha:g} did not converge (residual {run.residuals[-1]:.2g})"
        advise(message, stacklevel=2)
    return _result(moves, run)


def _start(start: Any, link: Link) -> tuple[np.ndarray, float]:
    """First V, and the side information of the branch."""
    if isinstance(start, str):
        if start == "uninformed":
            side = NOISY_SIDE if link.route == "points" else SIDE
            # V of the side information alone.
            return np.eye(link.rank) / (1 + side), side
        if start == "informed":
            return INFORMED * np.eye(link.rank), 0.0
        raise ValueError(f"start must be 'uninformed', 'informed' or a matrix Q, got {start!r}")
    return np.eye(link.rank) - overlap_matrix("start", start, link.rank), 0.0


def _without_side(moves: Map, run: Run, side: float) -> Run:
    """The fixed point without side information, on which directions whose overlap is proportional to it have none."""
    v, basis = np.linalg.eigh(run.V)
    if v.max() < EXACT:
        return run
    if (1 - v <= SMALL).any():
        again = moves.run(run.V, 4 * side, run.found.rule)
        raised = 1 - np.einsum("kia,kij,kja->ka", basis, again.V, basis)
        # Four times the side information: a learned overlap stays, one that lives on it grows fourfold; 2 lies between.
        proportional = (1 - v <= SMALL) & (raised > 2 * (1 - v))
        V = (basis * np.where(proportional, 1.0, v)[:, None, :]) @ basis.swapaxes(1, 2)
    else:
        V = run.V
    if not run.converged:
        return Run(V, run.trajectory, False, run.residuals, run.found, rate=run.rate)
    # The learned overlaps lose what the side information added to them.
    last = moves.run(V, 0.0, run.found.rule)
    trajectory, rate = run.trajectory + last.trajectory[1:], max(run.rate, last.rate)
    return Run(last.V, trajectory, last.converged, run.residuals[-1:] + last.residuals, last.found, last.reason, rate)


def _result(moves: Map, run: Run) -> StateEvolution:
    found, eye, R = run.found, np.eye(moves.link.rank), len(run.V)
    Q = eye - run.V
    Q = np.where(np.abs(Q) < ZERO, 0.0, Q)
    blank = np.nan if run.reason else 1.0
    # Spread over scrambles, the part of the way to the fixed point that is left, and what the noise of points hides.
    error = (
        np.hypot(Q.std(axis=0, ddof=1) / np.sqrt(R), run.distance * (Q.mean(axis=0) != 0)) + moves.alpha * found.floor
    )
    S = found.product.mean(axis=0)
    gained = moves.alpha * np.linalg.eigvalsh(0.5 * (S + S.T))[0] if np.isfinite(S).all() else np.nan
    return StateEvolution(
        Q.mean(axis=0) * blank,
        error * blank,
        "asymptotic",
        run.converged,
        {"rate": float(1 / gained) if gained > 0 else np.inf, "alpha": moves.alpha},
        V=run.V.mean(axis=0) * blank,
        S=S * blank,
        trajectory=eye - np.stack(run.trajectory),
        resolved=not run.reason,
        nishimori_gap=found.gap[0] / max(found.size, 1e-300),
        ess=found.ess,
        n_iter=len(run.trajectory) - 1,
        residual=run.residuals[-1],
        link=moves.link,
    )
