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
from typing import Any

import numpy as np
from scipy import linalg

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
    if keep and not has_few_keys(features):
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
    return device.solve(device.add_gram(A, device.put(Phi.T)), n * ridge, Phi.T.astype(np.float64) @ Y)


def nested_solve(G: np.ndarray, Y: np.ndarray, sizes: Sequence[int], shifts: Sequence[float]) -> list[np.ndarray]:
    """Solve the leading blocks G[:n, :n] + shift I for several n.

    A Cholesky factor's leading block is the factor of the leading block, so equal shifts need one factorisation.
    """
    if len(set(shifts)) > 1:
        return [_factor_solve(_factor(G[:n, :n], s), Y[:n]) for n, s in zip(sizes, shifts, strict=True)]
    L = _factor(G[: max(sizes), : max(sizes)], shifts[0])
    return [_factor_solve(L[:n, :n], Y[:n]) for n in sizes]


def _factor(G: np.ndarray, shift: float) -> np.ndarray:
    A = np.array(G, dtype=np.float64, order="F")
    A.flat[:: len(A) + 1] += shift
    return np.asarray(linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False))


def _factor_solve(L: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.asarray(linalg.cho_solve((L, True), Y, check_finite=False))
