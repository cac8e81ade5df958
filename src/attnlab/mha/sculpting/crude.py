r"""Phase 1: a crude estimate of the sum of projections, :math:`\bar W = \sum_i W_i`."""

from __future__ import annotations

import numpy as np


def crude_sum(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    r"""The moment :math:`\frac1N \sum_n \frac1k X_n^\top J Y_n`, J the all-ones matrix (arXiv:2402.04084).

    Column sums of a pattern are one on average and tokens are uncorrelated, so its mean is near the sum. To first order
    in Theta it is (derived here)

    .. math:: \sum_i \Big[I + \tfrac{k-1}{k} \Theta_i - \tfrac{2(k-1)}{k^2} \mathrm{diag}(\Theta_i)\Big] W_i ,

    off by about the largest operator norm of a head: small when the heads have many comparable singular values.
    """
    n, k, _ = X.shape
    return X.sum(axis=1).T @ y.sum(axis=1) / (n * k)
