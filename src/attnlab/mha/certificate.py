r"""What can be said about a fitted layer from examples it has never seen, with probability 1 - delta.

The loss of an example is :math:`\ell = \|\hat Y - Y\|^2 / (k\,o) \in [0, b]`. With n untouched examples:

* empirical Bernstein: :math:`\mathbb{E}\ell \le \bar\ell + \sqrt{2 V \ln(2/\delta)/n} + 7 b \ln(2/\delta) / (3(n-1))`;
* tail: the largest error seen, :math:`\epsilon_{\max}`, is exceeded with probability at most :math:`\ln(1/\delta)/n`.

The range b needs bounded labels: on the cube :math:`|\hat F_s| \le \sum_i \|\hat W_i[:, s]\|_1`, and the labels are
bounded by the user or by the same number for the fitted layer with a margin. Gaussian tokens have no such bound:
only the tail statement holds there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import finite_array, real


@dataclass(frozen=True)
class Certificate:
    """Statements that hold with probability 1 - delta over the certificate examples.

    Attributes
    ----------
    n : untouched examples used.
    mean_loss : their mean squared error per output number.
    loss_bound : upper bound on the expected squared error (infinite without a bound on the labels).
    largest_error : the largest absolute error of any output number seen.
    tail_probability : a fresh example exceeds ``largest_error`` with at most this probability.
    """

    n: int
    delta: float
    mean_loss: float
    loss_bound: float
    largest_error: float
    tail_probability: float

    def __str__(self) -> str:
        return (
            f"with probability {1 - self.delta:g}: mean squared error <= {self.loss_bound:.2g}, and the error of any "
            f"output exceeds {self.largest_error:.2g} on at most {self.tail_probability:.2g} of all examples "
            f"(n = {self.n})"
        )


def certify(
    predicted: ArrayLike, observed: ArrayLike, *, bound: float | None = None, delta: float = 0.05
) -> Certificate:
    """Certificate from predictions on untouched examples.

    Parameters
    ----------
    predicted, observed : ``(n, k, o)``.
    bound : largest possible absolute difference of two output numbers, |prediction - label|; None when there is none.
    delta : the probability that a statement is wrong.
    """
    errors = finite_array("predicted", predicted, ndim=3) - finite_array("observed", observed, ndim=3)
    delta = real("delta", delta, low=0, high=1, open_low=True, open_high=True)
    n = len(errors)
    losses = np.mean(errors**2, axis=(1, 2))
    largest = float(np.abs(errors).max())
    if bound is not None and largest > bound:
        raise ValueError(f"bound must be at least the largest error seen ({largest:g}), got {bound:g}")
    return Certificate(
        n=n,
        delta=delta,
        mean_loss=float(losses.mean()),
        loss_bound=np.inf if bound is None else empirical_bernstein(losses, bound**2, delta),
        largest_error=largest,
        tail_probability=min(1.0, float(np.log(1 / delta) / n)),
    )


def empirical_bernstein(losses: np.ndarray, b: float, delta: float) -> float:
    """Upper bound on the mean of a variable in [0, b] (A. Maurer and M. Pontil, arXiv:0907.3740, theorem 4)."""
    n = len(losses)
    if n < 2:
        return np.inf
    log = np.log(2 / delta)
    return float(losses.mean() + np.sqrt(2 * losses.var(ddof=1) * log / n) + 7 * b * log / (3 * (n - 1)))


def output_bound(W: np.ndarray) -> float:
    r"""Largest output of a layer on the cube, :math:`\max_s \sum_i \|W_i[:, s]\|_1`."""
    return float(np.abs(W).sum(axis=(0, 1)).max())
