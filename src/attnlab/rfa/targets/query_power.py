"""<b, x_0>^p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attnlab.rfa.targets.base import Power

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class QueryPower(Power):
    """<b, x_0>^p: a function of the query alone."""

    name: ClassVar[str] = "query_power"
    factors: ClassVar[str] = "b, x_0"
    sides: ClassVar[tuple[int, int]] = (1, 0)

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The power."""
        return np.asarray((query @ task.b) ** self.p)
