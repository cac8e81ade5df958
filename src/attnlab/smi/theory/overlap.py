"""Matrices of overlaps that a user gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.validation import finite_array


def overlap_matrix(name: str, value: Any, rank: int, *, closed: bool = False) -> np.ndarray:
    """A symmetric matrix with eigenvalues in [0, 1), or [0, 1] if ``closed``; of rank 1 also a number."""
    if np.ndim(value) == 0 and rank == 1:
        value = np.reshape(value, (1, 1))
    Q = finite_array(name, value, shape=(rank, rank)).astype(float)
    # eigvalsh reads one triangle: a matrix that is not symmetric would pass by half of its entries.
    q = np.linalg.eigvalsh(0.5 * (Q + Q.T))
    beyond = q[-1] > 1 + 1e-9 if closed else q[-1] >= 1
    if not np.allclose(Q, Q.T) or q[0] < -1e-9 or beyond:
        end = "]" if closed else ")"
        raise ValueError(f"{name} must be a symmetric matrix with eigenvalues in [0, 1{end}, got eigenvalues {q}")
    return np.asarray(0.5 * (Q + Q.T))
