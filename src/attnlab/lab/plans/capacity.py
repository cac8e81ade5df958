"""Learners whose size is planned with the number of examples: heads, units."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnlab.common.reference import Capacity
from attnlab.lab import registry
from attnlab.lab.describe import settings
from attnlab.lab.request import spec
from attnlab.lab.spec import changed

# No learner is simulated beyond this size, even if theory needs more.
LARGEST = 10_000


@dataclass(frozen=True, eq=False)
class Planned:
    """A request whose number of examples, and with it the size of the learner, is open."""

    point: Mapping[str, Any]

    @functools.cached_property
    def _smallest(self) -> tuple[Any, Any]:
        # theory needs the task and the learner's parameters; the number of examples is passed to it apart
        return spec({**self.point, "n_train": 1}).build()

    @functools.cached_property
    def capacity(self) -> Capacity | None:
        """The size that is planned too; None where there is none, or where the request sets it."""
        task, learner = self._smallest
        given = set(settings("learner", self.point)) | changed(learner)
        fitting = [item for item in registry.capacities() if item.applies_to(task, learner)]
        return next((item for item in fitting if item.parameter not in given), None)

    @functools.cached_property
    def _sizes(self) -> dict[int, int | None]:
        return {}

    def size(self, n: int) -> int | None:
        """The size for n examples; None where theory does not reach: the learner's default stays.

        Theory is asked at the next power of two, since an answer takes seconds: a few heads more than needed.
        """
        above = 1 << (n - 1).bit_length()
        if above not in self._sizes:
            needed = self.capacity.needed(*self._smallest, above) if self.capacity else None
            # an infinite size could not be built: the default stays, as where theory does not reach
            known = needed is not None and math.isfinite(float(needed))
            self._sizes[above] = min(max(1, math.ceil(float(needed or 1))), LARGEST) if known else None
        return self._sizes[above]

    def at(self, n: int) -> dict[str, Any]:
        """The request for n examples."""
        size = self.size(n)
        own = {f"learner.{self.capacity.parameter}": size} if self.capacity and size else {}
        return {**self.point, **own, "n_train": n}

    def build(self, n: int) -> tuple[Any, Any]:
        """The task and the learner for n examples."""
        return spec(self.at(n)).build()

    def text(self, n: float) -> str:
        """The planned size for n examples in words, such as ``n_heads = 412``."""
        size = self.size(round(n)) if math.isfinite(n) else None
        return f"{self.capacity.parameter} = {size}" if self.capacity and size else ""
