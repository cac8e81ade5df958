"""(1/N) sum_i Y_a(x_0) Y_b(x_i), one harmonic of each degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attnlab.common.validation import integer
from attnlab.rfa.sphere import gegenbauer, harmonic_dimension
from attnlab.rfa.targets.base import Energies, Target

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class Harmonic(Target):
    """(1/N) sum_i Y_a(x_0) Y_b(x_i): zonal harmonics of unit norm about u and b, of degrees ``harmonic`` = (a, b)."""

    harmonic: tuple[int, int] = (0, 2)
    name: ClassVar[str] = "harmonic"

    def __post_init__(self) -> None:
        if len(self.harmonic) != 2:
            raise ValueError(f"harmonic must be a pair of degrees (a, b), got {self.harmonic!r}")
        a, b = (integer("harmonic", degree, low=0) for degree in self.harmonic)
        object.__setattr__(self, "harmonic", (a, b))

    @property
    def label(self) -> str:
        """Y_a(x_0) Y_b(x_i)."""
        return rf"$Y_{{{self.harmonic[0]}}}(x_0)\,Y_{{{self.harmonic[1]}}}(x_i)$"

    def _scale(self, d: int) -> float:
        a, b = self.harmonic
        return float(np.sqrt(harmonic_dimension(a, d) * harmonic_dimension(b, d)))

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The product."""
        a, b = self.harmonic
        of_query = gegenbauer(a, task.d, query @ task.u)[a]
        of_keys = gegenbauer(b, task.d, keys @ task.b)[b].mean(axis=1)
        return np.asarray(self._scale(task.d) * of_query * of_keys)

    def energies(self, task: Task) -> Energies:
        """One, in one place."""
        return {self.harmonic: 1.0}

    def tensors(self, task: Task) -> Energies:
        """Coefficients of the two Gegenbauer polynomials, each read off at degree + 1 points."""
        query, key = (_monomials(l, task.d) for l in self.harmonic)
        scale = self._scale(task.d)
        products = {(r, s): abs(scale * x * y) for r, x in enumerate(query) for s, y in enumerate(key)}
        # Coefficients of the other parity are zero up to rounding; kept, they would be priced as terms.
        return {degrees: float(norm) for degrees, norm in products.items() if norm > 1e-12}


def _monomials(l: int, d: int) -> np.ndarray:
    nodes = np.cos(np.pi * (np.arange(l + 1) + 0.5) / (l + 1))
    return np.linalg.solve(np.vander(nodes, increasing=True), gegenbauer(l, d, nodes)[l])
