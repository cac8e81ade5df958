"""(1/N) sum_i <b, x_i>^p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attnlab.rfa.targets.base import Power

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class KeyPower(Power):
    """(1/N) sum_i <b, x_i>^p: an average of a function of the keys."""

    name: ClassVar[str] = "key_power"
    factors: ClassVar[str] = "b, x_i"
    sides: ClassVar[tuple[int, int]] = (0, 1)

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The average."""
        return np.asarray(((keys @ task.b) ** self.p).mean(axis=1))
