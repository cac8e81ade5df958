r"""Errors of a layer of finite size: the deterministic equivalent with the planted tasks and the exact moments."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy import linalg

from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, nonnegative
from attnlab_icl.moments import moments
from attnlab_icl.task import Task

MAX_STEPS = 200
# Ridge that stands for 0 where there are fewer contexts than parameters, relative to the largest eigenvalue.
LEAST_RIDGE = 1e-12


@from_law(Task)
def finite_size_errors(task: Task, n: int, ridge: float = 0.0) -> Prediction:
    r"""ICL error of a finite layer after n contexts; ``detail`` holds ``icl``, ``idg``, ``g_task``, ``xi``.

    With (A, B) the moments of the pretraining contexts, (A_0, B_0) those of new tasks, (e_i, U) the eigenpairs of B,
    p = d/n and :math:`\xi(1 - p\sum_i e_i/(e_i+\xi)) = \lambda`,

    .. math:: e_{IDG} = \frac{1 + \rho - \frac1d\sum_{ri}\frac{(AU)_{ri}^2}{e_i}
              + \frac{\xi^2}{d}\sum_{ri}\frac{(AU)_{ri}^2}{e_i(e_i+\xi)^2}}{1 - p\sum_i (e_i/(e_i+\xi))^2},

    and e_ICL from :math:`M = A U (e + \xi)^{-1} U^T` and the variance
    :math:`e_{IDG}\,p \sum_i e_i (U^T B_0 U)_{ii}/(e_i+\xi)^2`.

    Source: derived here.  Status: asymptotic; what remains is O(1/d), with a factor of 0.1 to 3.
    """
    n, d = integer("n", n, low=1), task.d
    at = _in_eigenvectors(task)
    e, p = at.e, d / n
    ridge = nonnegative("ridge", ridge)
    if ridge == 0 and n < d * (d + 1):
        ridge = LEAST_RIDGE * e[-1]
    xi, converged = _effective_ridge(e, p, ridge)
    w = 1 / (e + xi)
    gamma = p * ((e * w) ** 2).sum()
    bias = 1 + task.rho - (at.energy / e).sum() / d + xi**2 / d * (at.energy / e * w**2).sum()
    idg = bias / (1 - gamma)
    variance = idg * p * (e * np.diag(at.second) * w**2).sum()
    icl = 1 + task.rho - 2 / d * (at.first @ w) + w @ at.both @ w / d + variance
    detail = {"icl": float(icl), "idg": float(idg), "g_task": float(icl - idg), "xi": float(xi)}
    return Prediction(float(icl), 0.0, "asymptotic", converged and gamma < 1, detail)


class _Moments(NamedTuple):
    r"""Moments in the eigenvectors of B: e, :math:`\sum_r (AU)_{ri}^2`, and what M meets in the ICL error."""

    e: np.ndarray
    energy: np.ndarray
    first: np.ndarray  # <M, A_0> is this times w = 1 / (e + xi)
    second: np.ndarray  # U^T B_0 U
    both: np.ndarray  # <M B_0, M> is w^T this w


@functools.lru_cache(maxsize=16)
def _in_eigenvectors(task: Task) -> _Moments:
    """Kept: a line against the number of contexts meets the same tasks at each point."""
    A, B = moments(task, "pretraining")
    A0, B0 = moments(task, "new")
    e, U = linalg.eigh(B)
    AU, second = A @ U, U.T @ B0 @ U
    met = AU.T @ AU
    return _Moments(e, np.diag(met).copy(), np.einsum("ri,ri->i", AU, A0 @ U), second, met * second)


def _effective_ridge(e: np.ndarray, p: float, ridge: float) -> tuple[float, bool]:
    """The root xi by Newton from above; the function is convex, so that the iterates descend."""
    # xi = ridge + p sum_i e_i xi/(e_i + xi), and the fraction is below one.
    xi = ridge + p * e.sum()
    for _ in range(MAX_STEPS):
        share = e / (e + xi)
        value = xi * (1 - p * share.sum()) - ridge
        slope = 1 - p * (share**2).sum()
        lower = xi - value / slope
        if not 0 <= lower < xi:
            return float(xi), True
        xi = lower
    return float(xi), False
