"""(1/N) sum_i <x_0, x_i>^p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from attnlab.rfa.targets.base import Energies, Power, scores

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class Correlation(Power):
    """(1/N) sum_i <x_0, x_i>^p: a function of the correlations, without a planted direction."""

    name: ClassVar[str] = "correlation"
    factors: ClassVar[str] = "x_0, x_i"
    sides: ClassVar[tuple[int, int]] = (1, 1)

    @property
    def correlation_power(self) -> int:
        """P."""
        return self.p

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The average."""
        return np.asarray((scores(query, keys) ** self.p).mean(axis=1))

    def tensors(self, task: Task) -> Energies:
        """The symmetric identity of degree p."""
        # Its squared norm is the dimension of the symmetric tensors of degree p.
        return {(self.p, self.p): float(np.sqrt(special.comb(task.d + self.p - 1, self.p)))}
