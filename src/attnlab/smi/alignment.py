"""Estimates compared with the truth up to the symmetry of the link."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attnlab.common.validation import finite_array, one_of
from attnlab.smi.link import SYMMETRIES, matrices
from attnlab.smi.symmetry import group


class Aligned(NamedTuple):
    """The estimate in the orientation nearest to the truth, its overlaps and squared cosines.

    ``M`` is W_hat W^T / d, ``cos2`` the squared cosine of each direction with its own.
    """

    W: np.ndarray
    M: np.ndarray
    cos2: np.ndarray


def align(W_hat: Any, W: Any, symmetry: Any = "none") -> Aligned:
    """The member G of a group for which G W_hat is nearest to W.

    Parameters
    ----------
    W_hat, W : (r, d), estimate and truth.
    symmetry : ``none``, ``sign`` (of each row), ``joint_sign``, ``permutation``, ``hyperoctahedral`` (signed
        permutations), ``orthogonal`` (Procrustes) or a list of orthogonal r x r matrices.

    >>> W = np.eye(2, 5)
    >>> align(-W, W, "sign").cos2
    array([1., 1.])
    """
    W = finite_array("W", W, ndim=2)
    W_hat = finite_array("W_hat", W_hat, shape=W.shape)
    rank, d = W.shape
    if isinstance(symmetry, str):
        one_of("symmetry", symmetry, SYMMETRIES)
    else:
        symmetry = matrices(symmetry, rank)
    overlap = W_hat @ W.T
    if symmetry == "orthogonal":
        left, _, right = np.linalg.svd(overlap)
        # Procrustes: tr(G W_hat W^T) is largest at V U^T, made of the singular vectors.
        best = right.T @ left.T
    else:
        # |G W_hat - W|^2 depends on an orthogonal G through tr(G W_hat W^T) alone.
        members = group(symmetry, rank)
        best = members[int(np.argmax([np.sum(G * overlap.T) for G in members]))]
    turned = best @ W_hat
    M = turned @ W.T / d
    norms = (turned**2).sum(axis=1) * (W**2).sum(axis=1) / d**2
    return Aligned(turned, M, np.diagonal(M) ** 2 / np.maximum(norms, 1e-300))
