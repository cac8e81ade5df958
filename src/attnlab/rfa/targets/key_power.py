"""(1/N) sum_i <b, x_i>^p."""

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
class KeyPower(Target):
    """(1/N) sum_i <b, x_i>^p: an average of a function of the keys."""

    p: int = 2
    name: ClassVar[str] = "key_power"

    def __post_init__(self) -> None:
        integer("p", self.p, low=0)

    @property
    def label(self) -> str:
        """<b, x_i>^p."""
        return rf"$\langle b, x_i\rangle{exponent(self.p)}$"

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The average."""
        return np.asarray(((keys @ task.b) ** self.p).mean(axis=1))

    def energies(self, task: Task) -> Energies:
        """Harmonics of the key alone."""
        return {(0, l): float(e) for l, e in enumerate(zonal_energies(self.p, task.d))}

    def tensors(self, task: Task) -> Energies:
        """b^(x)p has norm one."""
        return {(0, self.p): 1.0}

    def degrees(self) -> tuple[int, int]:
        """Of degree p in the keys."""
        return 0, self.p
