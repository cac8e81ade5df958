"""<b, x_0>^p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attnlab.common.validation import integer
from attnlab.rfa.sphere import zonal_energies
from attnlab.rfa.targets.base import Energies, Target, exponent

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class QueryPower(Target):
    """<b, x_0>^p: a function of the query alone."""

    p: int = 2
    name: ClassVar[str] = "query_power"

    def __post_init__(self) -> None:
        integer("p", self.p, low=0)

    @property
    def label(self) -> str:
        """<b, x_0>^p."""
        return rf"$\langle b, x_0\rangle{exponent(self.p)}$"

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The power."""
        return np.asarray((query @ task.b) ** self.p)

    def energies(self, task: Task) -> Energies:
        """Harmonics of the query alone."""
        return {(l, 0): float(e) for l, e in enumerate(zonal_energies(self.p, task.d))}

    def tensors(self, task: Task) -> Energies:
        """b^(x)p has norm one."""
        return {(self.p, 0): 1.0}

    def degrees(self) -> tuple[int, int]:
        """Of degree p in the query."""
        return self.p, 0
