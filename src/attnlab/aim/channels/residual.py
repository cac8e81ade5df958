"""What is known of the indices of a fresh sequence: estimate and residual, both Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.aim.indices import Layout


@dataclass(frozen=True)
class Residual:
    """Whitened indices z = omega + residual. In untied self-attention the parts of z that the symmetric and the
    antisymmetric part of S make have residual variances of their own, ``Vs`` and ``Va``; otherwise they are equal.
    """

    layout: Layout
    total: float
    Vs: float
    Va: float

    @property
    def V(self) -> float:
        """Residual variance of h_ab, a != b, and the error of S per dimension."""
        return (self.Vs + self.Va) / 2

    def entry(self, row: int, column: int) -> float:
        """Residual variance of the whitened h_ab: only the symmetric part of S makes h_aa of self-attention."""
        return self.Vs if row == column and not self.layout.cross else self.V

    def draw(self, normals: np.ndarray, noise: float = 0.0) -> Any:
        """Residuals from standard normals (n, p), with white noise added to the whitened indices."""
        return self._coloured(normals, self.Vs + noise, self.Va + noise)

    def estimate(self, normals: np.ndarray) -> Any:
        """Estimates omega from standard normals (n, p)."""
        return self._coloured(normals, self.total - self.Vs, self.total - self.Va)

    def _coloured(self, normals: np.ndarray, symmetric: float, antisymmetric: float) -> Any:
        if symmetric == antisymmetric:
            return np.sqrt(symmetric) * normals
        of_symmetric = normals @ self.layout.symmetric
        return np.sqrt(symmetric) * of_symmetric + np.sqrt(antisymmetric) * (normals - of_symmetric)
