r"""The test error of ridge regression with infinitely many heads, without a fitted constant.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
lam_i       eigenvalues of the kernel operator;  f_i^2 energy of the target in their eigenspaces
kappa       effective ridge: sum_i lam_i/(lam_i + kappa) + ridge/kappa = n
ridge       n lam plus the trace of the eigenvalues too small to be listed
gamma       (1/n) sum_i (lam_i/(lam_i + kappa))^2, the share of degrees of freedom spent on noise
==========  =======================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from attnlab.common.arrays import ArrayLike
from attnlab.common.solution import Solution
from attnlab.common.validation import finite_array, nonnegative, one_of
from attnlab.rfa.task import Task
from attnlab.rfa.theory.complexity import modes
from attnlab.rfa.theory.spectrum import Spectrum, spectrum


@dataclass(frozen=True)
class LearningCurve:
    """Predicted test error along n.

    Attributes
    ----------
    n : sample sizes.
    error : mean squared error of f* divided by Var(f*).
    kappa : effective ridge.
    converged : whether the fixed point was found at every n.
    """

    n: np.ndarray
    error: np.ndarray
    kappa: np.ndarray
    converged: bool


def learning_curve(task: Task, n: ArrayLike, model: str = "rfa", ridge: float = 1e-6) -> LearningCurve:
    r"""Deterministic equivalent of the test error of (kernel) ridge regression at sample size n.

    .. math:: \frac{\mathcal E}{\mathrm{Var} f_*} = \frac{1}{\mathrm{Var} f_*}\left[
              \frac{\sum_i f_i^2 \kappa^2/(\lambda_i + \kappa)^2 + \sigma^2}{1 - \gamma} - \sigma^2\right]

    Source: omniscient risk estimate (arXiv:2006.13198, arXiv:2110.03922) with the spectra derived here.
    Status: asymptotic (n and the number of modes large, number of heads infinite); heuristic at finite d.

    >>> curve = learning_curve(Task(target="key_power", p=2), [256, 2048])
    >>> curve.converged, bool(curve.error[0] > 0.5 > curve.error[1])
    (True, True)
    """
    sizes = finite_array("n", np.atleast_1d(np.asarray(n, dtype=float)), ndim=1)
    if (sizes < 1).any():
        raise ValueError(f"n must be >= 1, got {sizes.min():g}")
    ridge = nonnegative("ridge", ridge)
    one_of("model", model, ("rfa", "rfmlp"))
    energy, eigenvalue = modes(task, model)
    bulk = spectrum(task.d, task.n_keys, model)
    noise = task.noise_std**2
    errors, kappas, converged = [], [], True
    for size in sizes:
        solution = effective_ridge(bulk, float(size), ridge)
        kappa = solution.value
        share = bulk.eigenvalue / (bulk.eigenvalue + kappa)
        spent = float(bulk.multiplicity @ share**2) / size
        bias = float(np.sum(energy * (kappa / (eigenvalue + kappa)) ** 2))
        errors.append(((bias + noise) / (1 - spent) - noise) / task.variance)
        kappas.append(kappa)
        converged = converged and solution.converged and bool(spent < 1)
    return LearningCurve(sizes, np.array(errors), np.array(kappas), converged)


def effective_ridge(bulk: Spectrum, n: float, ridge: float) -> Solution[float]:
    r"""The effective ridge kappa.

    .. math:: \sum_i \frac{\lambda_i}{\lambda_i+\kappa} + \frac{n\lambda + \mathrm{tail}}{\kappa} = n

    Source: arXiv:2006.13198.  Status: exact solution of the fixed-point equation.
    """
    constant = n * ridge + bulk.tail

    def excess(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        return float(bulk.multiplicity @ (bulk.eigenvalue / (bulk.eigenvalue + kappa)) + constant / kappa - n)

    low, high = np.log(1e-30), np.log(bulk.trace + ridge + 1.0) + 5
    if excess(low) < 0:
        return Solution(0.0, constant == 0, 0, abs(excess(low)) / n)
    root, report = optimize.brentq(excess, low, high, xtol=1e-13, full_output=True)
    return Solution(float(np.exp(root)), bool(report.converged), int(report.iterations), abs(excess(root)) / n)
