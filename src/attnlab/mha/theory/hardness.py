"""What the layers of the lower bound's family cost."""

from __future__ import annotations

from math import comb

from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, positive, real
from attnlab.mha.hard import parity_heads


def sq_queries(d: int, size: int, tau: float) -> Prediction:
    r"""Statistical queries of tolerance tau that a parity layer demands, :math:`\binom{d-1}{s}\tau^2`.

    With fewer no learner is better than the predictor that ignores the secret.
    A query's answer depends on the secret through one Fourier coefficient; by Parseval at most 1/tau^2 secrets move
    it by tau.

    Source: derived here (arXiv:2402.04084 proves its own family hard).  Status: bound.

    >>> sq_queries(d=20, size=8, tau=0.01)
    7.5582 (bound)
    """
    d, size = integer("d", d, low=2), integer("size", size, low=1)
    return Prediction(comb(d - 1, size) * real("tau", tau, low=0, high=1) ** 2, status="bound")


def parity_trivial_error(size: int, steepness: float = 2.0) -> Prediction:
    r"""Relative squared error of the best predictor of a parity layer that ignores the secret, :math:`1/(1+\beta^2)`.

    Source: derived here.  Status: exact.

    >>> round(parity_trivial_error(size=6), 3)
    0.348
    """
    beta = parity_heads(integer("size", size, low=1), positive("steepness", steepness))[2]
    return Prediction(1 / (1 + beta**2))
