r"""What training with weight decay reaches: the minimiser of the empirical risk with the nuclear norm of S.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
lambda      weight decay: sum of losses + d lambda Tr S (tied), d lambda |S|_* (untied)
a           c k alpha, c = 2 (tied) or 1 (untied): measurements per parameter
delta, eps  blur and threshold: the minimiser has the spectrum of eta (S_0 + delta GOE - eps)_+
df          degrees of freedom (:mod:`attnlab.aim.theory.soft_threshold`)
==========  =========================================================================================

    squared loss on logits:  a delta^2 = MSE_1(delta, eps) + noise,   eps (a - df(delta, eps)) = c lambda

Source: arXiv:2509.24914 (nuclear-norm identity, claims 3.1 and 4.1, corollary 3.2); solution derived here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from attnlab.aim.channels import NotSolved
from attnlab.aim.spectrum import tied as tied_prior
from attnlab.aim.task import Task
from attnlab.aim.theory.output import LIMIT
from attnlab.aim.theory.soft_threshold import Thresholded, degrees_of_freedom, thresholded
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import nonnegative, one_of, positive

LOSSES = ("logits", "cross_entropy", "squared_output")
BLURS = np.log(np.geomspace(0.004, 30, 24))  # log delta, where its root is looked for first
REACH = 16  # factors of e, at either end, by which that range is widened until it holds a root


@dataclass(frozen=True, eq=False, repr=False)
class ERM(Prediction):
    """The minimiser: ``value`` is its error |S - S_hat|^2 / d.

    Parameters
    ----------
    overlap, self_overlap : Tr(S S_hat)/d and Tr(S_hat^2)/d.
    scale, blur, threshold : eta, delta and eps; S_hat has the spectrum of eta (S_0 + delta GOE - eps)_+.
    dof, rank, trace : degrees of freedom, share of non-zero eigenvalues, and trace, per dimension.
    train_loss : per measured component (logits) or |y - y_hat|^2 per sequence (cross-entropy).
    """

    overlap: float = 0.0
    self_overlap: float = 0.0
    scale: float = 1.0
    blur: float = 0.0
    threshold: float = 0.0
    dof: float = 0.0
    rank: float = 0.0
    trace: float = 0.0
    train_loss: float = 0.0


@from_law(Task, "rho", "tokens", **LIMIT)
def erm(task: Task, alpha: float, *, weight_decay: float = 0.0, loss: str = "logits") -> ERM:
    r"""The minimiser of :math:`\sum_\mu \ell(y^\mu, h^\mu(S)) + d\lambda\,\mathrm{Tr}S` over S >= 0 (untied: nuclear
    norm).

    Equal to the minimum of the factored loss with coupled decay lambda |W|^2 / sqrt(r d) where the width is at least
    the rank. ``weight_decay=0`` is the limit lambda -> 0+: the interpolator of smallest trace, the same for every loss
    whose minimum is the exact fit. Its error is 0 from :func:`erm_recovery_threshold` on.

    Parameters
    ----------
    loss : ``logits`` (half the squared measured part of z), ``cross_entropy`` (softmax, two tied tokens), or
        ``squared_output``, whose proximal operator is not convex: only without decay.

    Source: arXiv:2509.24914; derived here.  Status: asymptotic (d -> infinity); untied self-attention with decay or
    noise is not solved.

    >>> round(float(erm(0.15, rho=0.5)), 5)
    0.161
    """
    alpha, decay = positive("alpha", alpha), nonnegative("weight_decay", weight_decay)
    one_of("loss", loss, LOSSES)
    k = _measurements(task)
    if loss == "squared_output" and decay > 0:
        raise NotSolved(
            "loss='squared_output' is solved without weight_decay only: its proximal operator is not convex, and the "
            "iteration finds wrong minima"
        )
    if task.layout.two_variances and (decay > 0 or task.law.noise > 0):
        raise NotSolved("weight_decay and noise of untied self-attention are not solved; attention='cross' is")
    if loss == "cross_entropy" and decay > 0:
        from attnlab.aim.theory.cross_entropy import solve_cross_entropy

        return solve_cross_entropy(task, alpha, decay)
    a = task.layout.rate * k * alpha
    if decay == 0 and task.law.noise == 0 and a >= _perfect(task.rho, task.tied):
        return _recovered(task)
    return _solve(task, a, task.layout.rate * decay)


def _measurements(task: Task) -> int:
    """k, for laws whose S the minimiser can be."""
    k = task.law.informative(task.layout)
    if k is None:
        raise NotSolved(f"channel must be softmax or linear for empirical risk minimisation, got {task.law.name!r}")
    if task.tied and np.isinf(task.rho):
        raise NotSolved("rho must be finite for tied S = W W^T: a centred S has negative eigenvalues")
    return k


def _recovered(task: Task) -> ERM:
    Q, rho = task.prior.second_moment(task.rho), min(task.rho, 1.0)
    slope = task.prior.small_noise_slope(task.rho)
    known = {"overlap": Q, "self_overlap": Q, "dof": slope, "rank": rho, "trace": task.prior.prior_mean(task.rho)}
    return ERM(0.0, status="asymptotic", **known)


def _solve(task: Task, a: float, penalty: float) -> ERM:
    """Root in delta; at each delta the threshold eps."""
    prior, rho, noise = task.prior, task.rho, task.law.noise

    @functools.lru_cache(maxsize=512)
    def at(log_delta: float) -> tuple[float, Thresholded]:
        delta = float(np.exp(log_delta))
        top = float(prior.edges(delta**2, rho)[-1])
        eps = _threshold(lambda e: degrees_of_freedom(delta, e, rho, prior), a, penalty, top)
        return eps, thresholded(delta, eps, rho, prior)

    def gap(log_delta: float) -> float:
        return float(np.log((at(log_delta)[1].error + noise) / (a * np.exp(2 * log_delta))))

    root, roots = _last_root(gap, task)
    eps, found = at(root)
    return ERM(
        found.error,
        status="asymptotic",
        converged=roots == 1,
        overlap=found.O,
        self_overlap=found.J,
        blur=float(np.exp(root)),
        threshold=eps,
        dof=found.df,
        rank=found.rank,
        trace=found.trace,
        train_loss=a * float(np.exp(2 * root)) * (1 - found.df / a) ** 2,
    )


def _last_root(gap: Callable[[float], float], task: Task) -> tuple[float, int]:
    """The last of the places where a function of log delta falls through zero, and their number."""
    grid, values = BLURS.tolist(), [gap(x) for x in BLURS]
    for _ in range(REACH):
        if values[0] <= 0:  # next to the recovery threshold, or with far more data than parameters
            grid, values = [grid[0] - 1, *grid], [gap(grid[0] - 1), *values]
        if values[-1] > 0:  # few data or much noise
            grid, values = [*grid, grid[-1] + 1], [*values, gap(grid[-1] + 1)]
    change = [i for i in range(len(grid) - 1) if values[i] > 0 >= values[i + 1]]
    if not change:
        raise NotSolved(f"no effective noise between {np.exp(grid[0]):.1g} and {np.exp(grid[-1]):.1g} solves {task}")
    i = change[-1]
    return float(brentq(gap, grid[i], grid[i + 1], xtol=1e-11)), len(change)


def _threshold(df: Callable[[float], float], a: float, penalty: float, top: float) -> float:
    """eps (a - df) = penalty; without penalty df = a, or 0 where even the unthresholded fit has fewer."""
    start = 0.0
    if df(0.0) > a:
        start = float(brentq(lambda e: df(e) - a, 0.0, top, xtol=1e-13))
    if penalty == 0:
        return start
    # -penalty at the start; beyond the bulk df = 0, and eps a exceeds the penalty at the upper end.
    return float(brentq(lambda e: e * (a - df(e)) - penalty, start, max(top, start) + penalty / a + 1, xtol=1e-13))


@from_law(Task, "rho", "tokens", **LIMIT)
def erm_recovery_threshold(task: Task) -> Prediction:
    r"""The alpha from which on the interpolator of smallest trace is S itself (no noise):

    .. math:: ck\alpha = \min_{0\le\tau\le 2}\, 2\rho - \rho^2 + \rho(1-\rho)\tau^2 + (3 - c)(1-\rho)^2 I(\tau), \qquad
              I(\tau) = \int (s - \tau)_+^2\,d\mathrm{sc}(s)

    and 1 for rho >= 1. Always above the Bayes-optimal one for rho < 1.

    Source: D. Amelunxen et al. (2014); derived here.  Status: asymptotic (d -> infinity).

    >>> round(float(erm_recovery_threshold(0.5)), 6)
    0.211087
    """
    k = _measurements(task)
    if task.law.noise > 0:
        return Prediction(float("inf"), status="asymptotic")
    return Prediction(_perfect(task.rho, task.tied) / (task.layout.rate * k), status="asymptotic")


@functools.lru_cache(maxsize=256)
def _perfect(rho: float, tied: bool) -> float:
    if rho >= 1:
        return 1.0
    sides = 1 if tied else 2
    value = lambda t: 2 * rho - rho**2 + rho * (1 - rho) * t**2 + sides * (1 - rho) ** 2 * semicircle_excess(t)  # noqa: E731
    return float(minimize_scalar(value, bounds=(0, 2), method="bounded", options={"xatol": 1e-10}).fun)


def semicircle_excess(tau: Any) -> Any:
    r"""I(tau) = (1 + tau^2)(1/2 - arcsin(tau/2)/pi) - tau sqrt(4 - tau^2)(26 + tau^2)/(24 pi), 0 <= tau <= 2."""
    tau = np.asarray(tau, dtype=float)
    tail = tau * np.sqrt(4 - tau**2) * (26 + tau**2) / (24 * np.pi)
    return (1 + tau**2) * (0.5 - np.arcsin(tau / 2) / np.pi) - tail


@from_law(Task, "rho", "tokens", "noise", **LIMIT)
def erm_interpolation_threshold(task: Task) -> Prediction:
    r"""The alpha up to which noisy data are still interpolated as lambda -> 0: a = df(delta, 0) with
    :math:`J(\delta, 0) - \delta^2 df(\delta, 0) = Q_0 + noise`.

    Source: arXiv:2509.24914, corollary 3.2.  Status: asymptotic (d -> infinity).

    >>> round(4 * float(erm_interpolation_threshold(0.5, noise=0.25)), 5)
    0.61393
    """
    k, noise = _measurements(task), task.law.noise
    if not noise > 0:
        raise ValueError(f"noise must be > 0 for an interpolation threshold, got channel {task.law}")
    total = task.prior.second_moment(task.rho) + noise

    def gap(log_delta: float) -> float:
        delta = float(np.exp(log_delta))
        found = thresholded(delta, 0.0, task.rho, task.prior)
        return float(total - (found.J - delta**2 * found.df))

    root, roots = _last_root(gap, task)
    delta = float(np.exp(root))
    a = thresholded(delta, 0.0, task.rho, task.prior).df
    return Prediction(a / (task.layout.rate * k), 0.0, "asymptotic", roots == 1, detail={"blur": delta})


def erm_density(x: Any, result: ERM, rho: float, *, tied: bool = True) -> np.ndarray:
    """Density of the non-zero eigenvalues (singular values if untied) of the minimiser at x > 0; the atom at 0 has the
    mass 1 - ``result.rank``.

    Source: derived here.  Status: asymptotic (d -> infinity).
    """
    from attnlab.aim.spectrum import singular

    prior, x = (tied_prior if tied else singular), np.asarray(x, dtype=float)
    # x = eta (s - eps) of an eigenvalue s in the bulk.
    law = prior.density(x / result.scale + result.threshold, result.blur**2, rho) / result.scale
    # The symmetrised law of singular values has half of its mass at each sign.
    return np.where(x > 0, (1 if tied else 2) * law, 0.0)
