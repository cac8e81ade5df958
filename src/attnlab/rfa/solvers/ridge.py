r"""Ridge regression on features that arrive block by block.

.. math:: \min_\theta \tfrac1n \|y - \Phi\theta\|^2 + \lambda\|\theta\|^2
          \quad\Longleftrightarrow\quad \theta = \Phi^T\alpha, \ (\Phi\Phi^T + n\lambda I)\,\alpha = y

========  ==============================================================
symbol    meaning
========  ==============================================================
Phi       features (n, P), seen only as blocks of columns
G         Gram matrix Phi Phi^T (n, n)
lam       ridge;  n lam is the shift of the Gram matrix
========  ==============================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.rfa.backend import Backend, Features
from attnlab.rfa.solvers.few_keys import gram_of_scores, has_few_keys

Blocks = Iterable[Any]


def gram(features: Blocks, n: int, device: Backend) -> Any:
    """Phi Phi^T (lower triangle), accumulated over blocks: memory O(n^2 + n block)."""
    G = device.zeros((n, n))
    for block in features:
        G = device.add_gram(G, block)
    return G


def whole_gram(features: Features) -> Any:
    """Phi Phi^T (lower triangle) the cheaper way: from the features, or from the scores where keys are few."""
    if has_few_keys(features):
        return gram_of_scores(features)
    spread = features.backend.spread_gram(features.feature_map, features.tokens)
    if spread is not None:
        return spread
    return gram(features.passing(), features.shape[0], features.backend)


def product(A: Any, B: Any, device: Backend) -> np.ndarray:
    """A B in the device's precision, returned in float64."""
    return np.asarray(device.add_product(device.zeros((A.shape[0], B.shape[1])), A, B), dtype=np.float64)


def pull_back(features: Blocks, alpha: np.ndarray, device: Backend) -> np.ndarray:
    """theta = Phi^T alpha, in feature order."""
    return np.concatenate([product(block.T, alpha, device) for block in features])


def apply(features: Features, theta: np.ndarray) -> np.ndarray:
    """Phi theta: predictions."""
    device, start = features.backend, 0
    f = device.zeros((features.shape[0], theta.shape[1]))
    for block in features.passing():
        f = device.add_product(f, block, theta[start : start + block.shape[1]])
        start += block.shape[1]
    return np.asarray(f, dtype=np.float64)


def dual(features: Features, Y: np.ndarray, ridge: float, *, keep: bool) -> np.ndarray:
    """theta from the n x n system. With ``keep`` the features stay in memory, otherwise they are computed twice."""
    n, device = len(Y), features.backend
    # The Gram matrix of scores, and one shared by several devices, are formed without blocks that could be kept.
    if keep and not has_few_keys(features) and getattr(device, "count", 1) == 1:
        blocks: Blocks = list(features)
        G = gram(blocks, n, device)
    else:
        blocks, G = features.passing(), whole_gram(features)
    return pull_back(blocks, device.solve(G, n * ridge, Y), device)


def primal(features: Features, Y: np.ndarray, ridge: float) -> np.ndarray:
    """theta from the P x P system, for fewer features than examples."""
    n, device = len(Y), features.backend
    Phi = np.concatenate([np.asarray(block) for block in features], axis=1)
    A = device.zeros((Phi.shape[1], Phi.shape[1]))
    # add_gram forms A A^T: of the transpose that is Phi^T Phi.
    return device.solve(device.add_gram(A, device.put(Phi.T)), n * ridge, Phi.T.astype(np.float64) @ Y)


def nested_predictions(features: Features, Y: np.ndarray, sizes: Sequence[int], ridge: float, keep: bool) -> np.ndarray:
    """f (tests, sizes * k) of the fits to the first n examples, for each n, at the examples after the len(Y)-th.

    One Gram matrix, and weights that are drawn once for training and test where the features are kept.
    """
    n, device = len(Y), features.backend
    keep = keep and not has_few_keys(features)
    blocks: Blocks = list(features) if keep else features.passing()
    train = replace(features, tokens=features.tokens[:n])
    G = gram((block[:n] for block in blocks), n, device) if keep else whole_gram(train)
    # The Gram matrix of the first m examples is a leading block.
    alphas = [device.solve(G[:m, :m], m * ridge, Y[:m]) for m in sizes]
    # An example that a fit has not seen has coefficient zero.
    alpha = np.concatenate([np.concatenate([a, np.zeros((n - len(a), a.shape[1]))]) for a in alphas], axis=1)
    f = device.zeros((features.shape[0] - n, alpha.shape[1]))
    for block in blocks:
        f = device.add_product(f, block[n:], product(block[:n].T, alpha, device))
    return np.asarray(f, dtype=np.float64)
