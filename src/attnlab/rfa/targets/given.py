"""A target given as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from attnlab.common.validation import finite_array
from attnlab.rfa.targets.base import Target

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class Given(Target):
    """``function(query (n, d), keys (n, N, d)) -> (n,)``, of which nothing else is known."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    name: ClassVar[str] = "given"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"target must be a name, a Target or a function of query and keys, got {self.function!r}")

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The function, checked."""
        return finite_array("target(query, keys)", self.function(query, keys), shape=(len(query),))
