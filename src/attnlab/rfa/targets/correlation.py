"""(1/N) sum_i <x_0, x_i>^p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from attnlab.common.validation import integer
from attnlab.rfa.sphere import zonal_energies
from attnlab.rfa.targets.base import Energies, Target, exponent, scores

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class Correlation(Target):
    """(1/N) sum_i <x_0, x_i>^p: a function of the correlations, without a planted direction."""

    p: int = 2
    name: ClassVar[str] = "correlation"

    def __post_init__(self) -> None:
        integer("p", self.p, low=0)

    @property
    def label(self) -> str:
        """<x_0, x_i>^p."""
        return rf"$\langle x_0, x_i\rangle{exponent(self.p)}$"

    @property
    def correlation_power(self) -> int:
        """P."""
        return self.p

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The average."""
        return np.asarray((scores(query, keys) ** self.p).mean(axis=1))

    def energies(self, task: Task) -> Energies:
        """P_l(<x_0, x_i>) is the reproducing kernel of degree l, of degree l in both."""
        return {(l, l): float(e) for l, e in enumerate(zonal_energies(self.p, task.d))}

    def tensors(self, task: Task) -> Energies:
        """The symmetric identity of degree p."""
        return {(self.p, self.p): float(np.sqrt(special.comb(task.d + self.p - 1, self.p)))}

    def degrees(self) -> tuple[int, int]:
        """Of degree p in both."""
        return self.p, self.p
