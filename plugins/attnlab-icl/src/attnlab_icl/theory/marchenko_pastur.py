r"""Traces of the Marchenko-Pastur law, written without a difference of nearly equal numbers.

R is the covariance of k tasks in d dimensions, kappa = k/d, and tr is Tr/d. All formulas are in 1/kappa, so that
kappa = infinity needs no case of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction


class Traces(NamedTuple):
    """Traces of resolvents of R at -nu."""

    S: np.ndarray  # tr (R + nu)^-1
    a: np.ndarray  # kappa / (kappa + S)
    r1: np.ndarray  # tr R (R + nu)^-1
    q: np.ndarray  # tr (R + nu)^-2
    r2: np.ndarray  # tr R^2 (R + nu)^-2


def traces(nu: ArrayLike, kappa: ArrayLike) -> Traces:
    r"""All traces at once.

    .. math:: a = \frac{\kappa}{\kappa + S},\quad \mathrm{tr}\frac{R}{R+\nu} = aS,\quad
              \mathrm{tr}\frac{1}{(R+\nu)^2} = K S^2,\quad K = \frac{(\kappa+S)^2}{\kappa^2 + 2\kappa S + (1-\kappa)S^2}

    Source: derived here.  Status: exact for the Marchenko-Pastur law.

    >>> [round(float(value), 12) for value in traces(0.3, 0.5)[:3]]
    [2.0, 0.2, 0.4]
    """
    nu, inverse = np.asarray(nu, dtype=float), 1 / np.asarray(kappa, dtype=float)
    S = _stieltjes(nu, inverse)
    a = 1 / (1 + S * inverse)
    r1 = a * S
    # For kappa > 1 the last term is at most S/kappa, so that the denominator does not cancel.
    K = (1 + S * inverse) ** 2 / (1 + 2 * S * inverse + S**2 * inverse * (inverse - 1))
    return Traces(S, a, r1, K * S**2, r1**2 * K * (a + nu * S * inverse))


def stieltjes(nu: ArrayLike, kappa: ArrayLike) -> Prediction:
    r""":math:`S = \mathrm{tr}(R + \nu)^{-1}`, the root of :math:`\nu S^2/\kappa + (\nu + 1 - 1/\kappa)S - 1 = 0`.

    Source: derived here from the Marchenko-Pastur law.  Status: exact.

    >>> round(stieltjes(0.3, 0.5), 12)
    2.0
    """
    nu, kappa = np.asarray(nu, dtype=float), np.asarray(kappa, dtype=float)
    if not (np.all(nu > 0) and np.all(kappa > 0)):
        raise ValueError(f"nu and kappa must be positive, got nu={nu.min():g}, kappa={kappa.min():g}")
    return Prediction(_stieltjes(nu, 1 / kappa)[()])


def _stieltjes(nu: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    b = nu + 1 - inverse
    r = np.hypot(b, 2 * np.sqrt(nu * inverse))
    # Two forms of the same root; each adds numbers of one sign.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(b >= 0, 2 / (b + r), (r - b) / (2 * nu * inverse)))
