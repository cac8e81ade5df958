r"""Errors of a pretrained linear attention layer as d grows at fixed ratios.

==========  ==========================================================================================
symbol      meaning
==========  ==========================================================================================
alpha, kappa, tau   examples in a context / d, pretraining tasks / d, contexts / d^2
rho         variance of the label noise
ridge       lambda of the training loss sum_i (y_i - <G, H_i>)^2 + (n/d) lambda |G|^2
x           (1 + rho) / alpha, variance of the noise in the summary of a context
xi          effective ridge;  nu = x + xi
t           lambda / xi, the share of the labels' variation that training does not fit
P           tr (R + x)(R + nu)^-2
==========  ==========================================================================================

Training is ridge regression with feature covariance (1/d) I x (R + x) and target R (R + x)^-1. Every quantity below is
a sum of non-negative terms, except the factor 2 r1 - 1 of g_task: the textbook forms lose up to five digits.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab_icl.task import Task
from attnlab_icl.theory.marchenko_pastur import Traces, traces

# Newton descends monotonically; 27 steps were the most on the grid of the tests.
MAX_STEPS = 60


class Errors(NamedTuple):
    """The four errors, the effective ridge and gamma (the share of degrees of freedom spent on noise)."""

    icl: np.ndarray
    idg: np.ndarray
    training: np.ndarray
    g_task: np.ndarray
    xi: np.ndarray
    gamma: np.ndarray
    converged: np.ndarray


def _takes_task(f: Callable[..., Prediction]) -> Callable[..., Prediction]:
    """f(task, n, ridge) beside f(alpha, kappa, tau, rho, ridge): the task and n give the four ratios."""

    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Prediction:
        if args and isinstance(args[0], Task):
            if twice := sorted({"alpha", "kappa", "tau", "rho"} & options.keys()):
                raise TypeError(f"{f.__name__}: {', '.join(twice)} is given twice, the task has it")
            return f(**of_task(*args, **options))
        return f(*args, **options)

    call.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
    return call


def of_task(task: Task, n: ArrayLike, ridge: ArrayLike = 0.0) -> dict[str, Any]:
    """The ratios of a task and n contexts, as arguments of the functions below."""
    tau = np.asarray(n, dtype=float) / task.d**2
    return {"alpha": task.alpha, "kappa": task.kappa, "tau": tau, "rho": task.rho, "ridge": ridge}


@_takes_task
def icl_error(alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, rho: ArrayLike, ridge: ArrayLike = 0.0) -> Prediction:
    r"""Error on a fresh context of a new task; also called as ``icl_error(task, n, ridge)``.

    .. math:: e_{ICL} = \rho + \nu^2 q + x r_2 + (1 + x) P\, e_{IDG}/\tau

    Source: arXiv:2405.11751, in a form without cancellation derived here.  Status: asymptotic (d -> infinity).

    >>> round(icl_error(10, 0.5, 2, 0.01), 8)
    0.89116386
    """
    return _part("icl", alpha, kappa, tau, rho, ridge)


@_takes_task
def idg_error(alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, rho: ArrayLike, ridge: ArrayLike = 0.0) -> Prediction:
    r"""Error on a fresh context of a pretraining task (in-distribution generalisation).

    .. math:: e_{IDG} = \frac{\rho + \nu^2 a^2 q + x r_2}{1 - \gamma},
              \qquad 1 - \gamma = t + \xi P/\tau

    Source: derived here; at ridge 0 arXiv:2405.11751.  Status: asymptotic (d -> infinity).

    >>> round(idg_error(10, 0.5, 2, 0.01), 8)
    0.1123999
    """
    return _part("idg", alpha, kappa, tau, rho, ridge)


@_takes_task
def training_error(
    alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, rho: ArrayLike, ridge: ArrayLike = 0.0
) -> Prediction:
    r"""Mean squared residual of the training contexts, :math:`t^2 e_{IDG}`.

    Divided by t^2, with t from the data, it is generalised cross-validation: that estimates the IDG error, not the ICL
    error.  Source: derived here.  Status: asymptotic (d -> infinity).

    >>> round(training_error(10, 0.5, 2, 0.01), 8)
    0.02809998
    """
    return _part("training", alpha, kappa, tau, rho, ridge)


@_takes_task
def g_task(alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, rho: ArrayLike, ridge: ArrayLike = 0.0) -> Prediction:
    r"""Memorisation :math:`e_{ICL} - e_{IDG}`, accurate also where the two nearly agree. It can be negative.

    .. math:: g = \frac q\kappa\left\{r_1(1+a)(\nu^2 + x\,e_{IDG}/\tau) + \frac{e_{IDG}}{\tau} a^2 (2 r_1 - 1)\right\}

    Source: derived here.  Status: asymptotic (d -> infinity).

    >>> round(g_task(10, 4, 10, 0.01), 8), bool(g_task(100, 0.05, 0.05, 1) < 0)
    (0.00923103, True)
    """
    return _part("g_task", alpha, kappa, tau, rho, ridge)


@_takes_task
def errors(alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, rho: ArrayLike, ridge: ArrayLike = 0.0) -> Prediction:
    """The ICL error with the others, xi and gamma as ``detail``, in one pass.

    Source: arXiv:2405.11751 and derived here.  Status: asymptotic (d -> infinity).
    """
    return _part("icl", alpha, kappa, tau, rho, ridge)


def _part(name: str, *ratios: ArrayLike) -> Prediction:
    found = solve(*ratios)
    detail = {key: value[()] for key, value in found._asdict().items() if key != "converged"}
    return Prediction(detail[name], 0.0, "asymptotic", found.converged[()], detail)


def solve(alpha: ArrayLike, kappa: ArrayLike, tau: ArrayLike, rho: ArrayLike, ridge: ArrayLike) -> Errors:
    """All errors; the arguments broadcast. At tau = 1 without ridge the errors are infinite."""
    alpha, kappa, tau, rho, ridge = np.broadcast_arrays(*_checked(alpha, kappa, tau, rho, ridge))
    x, inverse_tau = (1 + rho) / alpha, 1 / tau
    xi, t, converged = _effective_ridge(x, kappa, tau, ridge)
    nu = x + xi
    found = traces(nu, kappa)
    P = found.q * (found.a**2 + x)
    with np.errstate(divide="ignore", invalid="ignore"):
        remaining = t + xi * P * inverse_tau  # 1 - gamma
        idg = (rho + nu**2 * found.a**2 * found.q + x * found.r2) / remaining
        noise = np.where(np.isinf(tau), 0.0, idg * inverse_tau)
        icl = rho + nu**2 * found.q + x * found.r2 + (1 + x) * P * noise
        g = _memorisation(found, nu, x, noise, kappa)
        # At the peak t = 0 and e_IDG is infinite; contexts that are interpolated have no residual.
        training = np.where(t == 0, 0.0, t**2 * idg)
    peak = (tau == 1) & (ridge == 0)
    # Its two terms may be infinite with opposite signs there.
    g = np.where(peak, np.where(np.isinf(kappa), 0.0, np.inf), g)
    return Errors(icl, idg, np.where(peak, 0.0, training), g, xi, 1 - remaining, converged)


def _memorisation(found: Traces, nu: np.ndarray, x: np.ndarray, noise: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """g_task from the traces; ``noise`` is e_IDG / tau. The factor 1/kappa is explicit: no digit is lost at large k."""
    a, r1 = found.a, found.r1
    spread = r1 * (1 + a) * (nu**2 + x * noise) + noise * a**2 * (2 * r1 - 1)
    return np.where(np.isinf(kappa), 0.0, found.q / kappa * spread)


def _effective_ridge(
    x: np.ndarray, kappa: np.ndarray, tau: np.ndarray, ridge: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""xi, t and whether xi was found: :math:`\xi(\tau - 1 + \xi S(x + \xi)) = \tau\lambda`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(tau < 1, (1 - tau) * _below_one(x, kappa, tau), 0.0)
        xi, converged = _newton(x, kappa, 1 / tau, ridge)
        xi = np.where(ridge > 0, xi, free)
        t = np.where(ridge > 0, ridge / xi, np.maximum(1 - 1 / tau, 0.0))
    return xi, t, converged | (ridge == 0)


def _below_one(x: np.ndarray, kappa: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """xi / (1 - tau) without ridge for tau < 1, the positive root of a quadratic."""
    # Two forms of one root, each without a difference; c and r are over kappa, which may be infinite.
    c = 1 + x - tau / kappa
    r = np.hypot(c, 2 * np.sqrt(tau * x / kappa))
    return np.asarray(np.where(c >= 0, (c + r) / (2 * tau), 2 * x / kappa / (r - c)))


def _newton(
    x: np.ndarray, kappa: np.ndarray, inverse_tau: np.ndarray, ridge: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The root of a convex function for ridge > 0, from an upper bound: iterates descend until rounding stops them."""
    # xi = ridge + tr[(R + x) xi/(R + x + xi)] / tau, and the fraction is below one.
    xi = ridge + (1 + x) * inverse_tau
    done = ridge == 0
    for _ in range(MAX_STEPS):
        found = traces(x + xi, kappa)
        slope = 1 - inverse_tau + inverse_tau * xi * found.S
        P = found.q * (found.a**2 + x)
        # xi slope - ridge is the convex function, slope + xi P / tau its derivative.
        step = np.maximum((xi * slope - ridge) / (slope + inverse_tau * xi * P), 0.0)
        lower = xi - step
        done = done | ~(lower < xi)
        xi = np.where(done, xi, lower)
        if done.all():
            break
    return xi, done


def _checked(*ratios: ArrayLike) -> list[np.ndarray]:
    """alpha, kappa, tau positive (kappa and tau may be infinite), rho and ridge not negative."""
    arrays = [np.asarray(value, dtype=float) for value in ratios]
    for name, array in zip(("alpha", "kappa", "tau", "rho", "ridge"), arrays, strict=True):
        low = array > 0 if name in ("alpha", "kappa", "tau") else array >= 0
        allowed = "positive" if name in ("alpha", "kappa", "tau") else "at least 0"
        if not low.all():
            raise ValueError(f"{name} must be {allowed}, got {array[~low].ravel()[0]:g}")
        if name not in ("kappa", "tau") and np.isinf(array).any():
            hint = "; the limits of long contexts are on the page of icl" if name == "alpha" else ""
            raise ValueError(f"{name} must be finite, got inf{hint}")
    return arrays
