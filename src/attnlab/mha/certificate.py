r"""What can be said about a fitted layer from examples it has never seen, with probability 1 - delta.

The loss of an example is :math:`\ell = \|\hat Y - Y\|^2 / (k\,o)`. With n untouched examples two statements are made,
each with probability :math:`1 - \delta/2`, so that both hold with :math:`1 - \delta`:

* mean, by the empirical Bernstein inequality for a variable in [0, b]:
  :math:`\mathbb{E}\ell \le \bar\ell + \sqrt{2 V \ln(4/\delta)/n} + 7 b \ln(4/\delta) / (3(n-1))`;
* tail: the largest error seen, :math:`\epsilon_{\max}`, is exceeded with probability at most :math:`\ln(2/\delta)/n`.

The mean needs a range. Either the user bounds the labels, and on the cube the layer's outputs are bounded by
:math:`\sum_i \|\hat W_i[:, s]\|_1`: then b is the square of the sum of both. Or nothing is assumed and the statement is
about the loss cut at b, :math:`\mathbb{E}\min(\ell, b)`, with b chosen before the untouched examples are seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import finite_array, positive, real


@dataclass(frozen=True)
class Certificate:
    """Statements that hold together with probability 1 - delta over the certificate examples.

    Attributes
    ----------
    n : untouched examples used.
    mean_loss : their mean squared error per output number.
    loss_bound : upper bound on the expected squared error, cut at ``cut``; infinite where no such statement is made.
    cut : the value at which a loss is cut before its mean is bounded; infinite when ``label_bound`` makes it needless.
    label_bound : the bound on the absolute labels that the user vouches for, None when there is none.
    largest_error : the largest absolute error of any output number seen.
    tail_probability : a fresh example exceeds ``largest_error`` with at most this probability.
    """

    n: int
    delta: float
    mean_loss: float
    loss_bound: float
    cut: float
    label_bound: float | None
    largest_error: float
    tail_probability: float

    def __str__(self) -> str:
        return (
            f"with probability {1 - self.delta:g} over {self.n} untouched examples: {self._mean()}the error of any "
            f"output exceeds {self.largest_error:.2g} on at most {self.tail_probability:.2g} of all examples"
        )

    def _mean(self) -> str:
        if self.loss_bound >= self.cut:  # no statement, or one that the cut alone makes true
            return ""
        if self.label_bound is not None:
            return f"mean squared error <= {self.loss_bound:.2g} if no label exceeds {self.label_bound:g}, and "
        return f"mean of the squared error, cut at {self.cut:.2g}, <= {self.loss_bound:.2g}, and "


def certify(
    predicted: ArrayLike,
    observed: ArrayLike,
    *,
    label_bound: float | None = None,
    output_bound: float = np.inf,
    cut: float | None = None,
    delta: float = 0.05,
) -> Certificate:
    """Certificate from predictions on untouched examples.

    Parameters
    ----------
    predicted, observed : ``(n, k, o)``.
    label_bound : largest absolute label that can occur, with ``output_bound`` the largest absolute prediction: the mean
        of the whole loss is bounded.
    cut : the loss is cut at this number, which must not depend on these examples, and the mean of that is bounded.
    delta : the probability that a statement is wrong.
    """
    truth = finite_array("observed", observed, ndim=3)
    errors = finite_array("predicted", predicted, ndim=3) - truth
    delta = real("delta", delta, low=0, high=1, open_low=True, open_high=True)
    if label_bound is not None:
        check_labels(truth, label_bound)
    n, losses = len(errors), np.mean(errors**2, axis=(1, 2))
    bounded = label_bound is not None and np.isfinite(output_bound)
    if bounded and label_bound is not None:
        # The loss is a mean of squares, none of which is larger.
        b = (output_bound + label_bound) ** 2
    else:
        b = positive("cut", cut) if cut else np.inf
    return Certificate(
        n=n,
        delta=delta,
        mean_loss=float(losses.mean()),
        loss_bound=empirical_bernstein(np.minimum(losses, b), b, delta / 2),
        cut=np.inf if bounded else float(b),
        label_bound=label_bound if bounded else None,
        largest_error=float(np.abs(errors).max()),
        tail_probability=min(1.0, float(np.log(2 / delta) / n)),
    )


def check_labels(y: np.ndarray, label_bound: float) -> None:
    """Refuse a bound that these labels break."""
    largest = float(np.abs(y).max())
    if largest > positive("label_bound", label_bound):
        raise ValueError(f"label_bound must be at least the largest label ({largest:g}), got {label_bound:g}")


def empirical_bernstein(losses: np.ndarray, b: float, delta: float) -> float:
    """Upper bound on the mean of a variable in [0, b] (A. Maurer and M. Pontil, arXiv:0907.3740, theorem 4)."""
    n = len(losses)
    if n < 2 or not np.isfinite(b):
        return np.inf
    log = np.log(2 / delta)
    # The theorem is about the unbiased variance.
    return float(losses.mean() + np.sqrt(2 * losses.var(ddof=1) * log / n) + 7 * b * log / (3 * (n - 1)))


def output_bound(W: np.ndarray) -> float:
    r"""Largest output of a layer on the cube, :math:`\max_s \sum_i \|W_i[:, s]\|_1`."""
    return float(np.abs(W).sum(axis=(0, 1)).max())
