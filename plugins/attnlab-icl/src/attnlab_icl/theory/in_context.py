r"""Errors of the two estimators that are given the law: ridge regression in context, and the mean over the k tasks."""

from __future__ import annotations

import functools

import numpy as np
from scipy import integrate, stats

from attnlab.common.arrays import ArrayLike
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import one_of
from attnlab_icl.task import TASKS, Task, Tasks
from attnlab_icl.theory.marchenko_pastur import traces

# Stands for a ridge of 0: small enough that nothing else is seen, large enough that its square is a normal number.
LEAST = 1e-100


def ridge_error(alpha: ArrayLike, rho: ArrayLike, ridge: ArrayLike | None = None) -> Prediction:
    r"""Ridge regression on one context, :math:`\hat w = (X^TX + m I)^{-1}X^Ty`; m = rho (None) is Bayes-optimal.

    With the traces at :math:`\nu = m/\alpha` and ratio alpha, :math:`e = \rho + \nu^2 q + (\rho/\alpha) a^2 q`. The
    same for new and pretraining tasks.  Source: arXiv:2306.15063; derived here.  Status: asymptotic (d -> infinity).

    >>> round(ridge_error(2, 0.1), 8)
    0.18442888
    """
    alpha, rho = np.asarray(alpha, dtype=float), np.asarray(rho, dtype=float)
    if not (np.all(alpha > 0) and np.all(rho >= 0)):
        raise ValueError(f"alpha must be positive and rho at least 0, got alpha={alpha.min():g}, rho={rho.min():g}")
    penalty = rho if ridge is None else np.asarray(ridge, dtype=float)
    if np.any(penalty < 0):
        raise ValueError(f"ridge must be at least 0, got {penalty.min():g}")
    nu = np.maximum(penalty / alpha, LEAST)
    found = traces(nu, alpha)
    return Prediction((rho + nu**2 * found.q + rho / alpha * found.a**2 * found.q)[()], 0.0, "asymptotic")


@from_law(Task)
def dmmse_error(task: Task, tasks: Tasks = "new") -> Prediction:
    r"""The posterior mean over the k pretraining tasks; leading finite-size effect of new tasks.

    .. math:: e_{ICL} = \rho + 2 - \frac{2\alpha c_k}{\sqrt{d(\alpha^2 + \frac32\alpha + \rho\alpha)}},
              \qquad c_k = \mathbb{E}\max_{j \le k} g_j,

    and :math:`e_{IDG} = \rho`, which is reached exponentially fast in d.

    Source: derived here.  Status: heuristic (new tasks); the approach to rho + 2 is slow, as sqrt(log k / d).

    >>> round(dmmse_error(Task(d=64, l=640, k=64)), 4)
    1.4639
    """
    if task.k is None:
        raise ValueError("k=None draws a new task for every context: there is no finite list of tasks for dMMSE")
    if one_of("tasks", tasks, TASKS) == "pretraining":
        return Prediction(task.rho, 0.0, "asymptotic")
    alpha, rho = task.alpha, task.rho
    gain = 2 * alpha * largest_normal(task.k) / np.sqrt(task.d * (alpha**2 + 1.5 * alpha + rho * alpha))
    return Prediction(float(rho + 2 - gain), 0.0, "heuristic")


@functools.lru_cache(maxsize=256)
def largest_normal(k: int) -> float:
    """Mean of the largest of k standard normal numbers."""

    def density(z: float) -> float:
        return float(k * z * stats.norm.pdf(z) * stats.norm.cdf(z) ** (k - 1))

    # The maximum stands near sqrt(2 log k), a peak that a rule on the whole interval could miss.
    return float(integrate.quad(density, -10, 15, limit=200, points=[0.0, float(np.sqrt(2 * np.log(k + 1)))])[0])
