r"""Subsets J of K tokens with weight :math:`\exp\sum_{j\in J} s_j`: the posterior of several locations.

All recursions add one token at a time and run over the size of the subset, in the logarithm: nothing underflows.
"""

from __future__ import annotations

import numpy as np
from scipy import special


def inclusion(score: np.ndarray, count: int) -> np.ndarray:
    """Probability (n, L) that a token is in J; the rows sum to K. A score of -inf is a token that is not there."""
    if count == 1:
        return np.asarray(special.softmax(score, axis=1))
    below, above = _sizes(score, count), _sizes(score[:, ::-1], count)[::-1]
    # J without token l: j elements before it and K - 1 - j after it
    others = special.logsumexp(below[:-1, :, :count] + above[1:, :, count - 1 :: -1], axis=2)
    return np.asarray(np.exp(score + others.T - below[-1, :, count, None]))


def _sizes(score: np.ndarray, count: int) -> np.ndarray:
    """Log of the total weight of the subsets of each size among the first l tokens, (L + 1, n, K + 1)."""
    n, L = score.shape
    total = np.full((L + 1, n, count + 1), -np.inf)
    total[:, :, 0] = 0.0
    for l in range(L):
        # Token l is out of the subset, or in it. In logarithms, since scores of order nu = d/2 overflow as weights.
        total[l + 1, :, 1:] = np.logaddexp(total[l, :, 1:], score[:, l, None] + total[l, :, :-1])
    return total


def posterior_variance(score: np.ndarray, z: np.ndarray, count: int) -> np.ndarray:
    r"""Variance of :math:`\sum_{j\in J} z_j` over J, for each row.

    With total weight, mean and variance for each size, adding a token mixes "without it" and "with it":
    the variance of a mixture is the mean of the variances plus that of the means.
    """
    n, L = score.shape
    weight = np.full((n, count + 1), -np.inf)
    weight[:, 0] = 0.0
    mean, variance = np.zeros((n, count + 1)), np.zeros((n, count + 1))
    for l in range(L):
        with_it = score[:, l, None] + weight[:, :-1]
        # Mean and variance of a mixture are updated token by token: sums of squares would cancel where one subset has
        # all weight.
        total = np.logaddexp(weight[:, 1:], with_it)
        # 0/0 where no subset of this size exists yet
        p = np.exp(np.where(np.isfinite(total), with_it - np.where(np.isfinite(total), total, 0.0), -np.inf))
        shifted = mean[:, :-1] + z[:, l, None]
        spread = p * (1 - p) * (shifted - mean[:, 1:]) ** 2
        variance[:, 1:] = (1 - p) * variance[:, 1:] + p * variance[:, :-1] + spread
        mean[:, 1:] = (1 - p) * mean[:, 1:] + p * shifted
        weight[:, 1:] = total
    return variance[:, count]
