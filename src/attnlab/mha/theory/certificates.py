"""How wide a certificate is, and how many untouched examples it takes."""

from __future__ import annotations

import numpy as np

from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, nonnegative, positive, real


def certificate_width(n: int, bound: float, delta: float = 0.05, variance: float = 0.0) -> Prediction:
    r"""What the empirical Bernstein bound adds to the mean loss of n examples with losses in [0, bound].

    .. math:: \sqrt{2 V \ln(4/\delta)/n} + 7 b \ln(4/\delta)/(3(n-1))

    Half of delta is spent here, half on the tail statement.

    Source: arXiv:0907.3740, theorem 4.  Status: exact (the width of a bound).
    """
    n, log = integer("n", n, low=2), _log(delta)
    spread = np.sqrt(2 * nonnegative("variance", variance) * log / n)
    return Prediction(float(spread + 7 * positive("bound", bound) * log / (3 * (n - 1))))


def certificate_examples(target: float, bound: float, delta: float = 0.05) -> Prediction:
    """Untouched examples after which an exact fit is certified to have mean loss at most ``target``.

    Source: arXiv:0907.3740, theorem 4, with variance zero.  Status: exact.
    """
    needed = 1 + 7 * positive("bound", bound) * _log(delta) / (3 * positive("target", target))
    return Prediction(int(np.ceil(needed)))


def tail_probability(n: int, delta: float = 0.05) -> Prediction:
    r"""Probability with which a fresh example may exceed the largest error of n examples, :math:`\ln(2/\delta)/n`.

    Source: (1 - p)^n <= delta / 2.  Status: bound.
    """
    log = np.log(2 / real("delta", delta, low=0, high=1, open_low=True))
    return Prediction(float(min(1.0, log / integer("n", n, low=1))), status="bound")


def _log(delta: float) -> float:
    return float(np.log(4 / real("delta", delta, low=0, high=1, open_low=True, open_high=True)))
