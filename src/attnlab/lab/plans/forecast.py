"""Predictions before anything is simulated: the examples a learner needs, and what no learner can reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnlab.common.reference import Reference
from attnlab.lab import registry
from attnlab.lab.plans.crossing import search

# How far beyond the simulated sizes theory is asked.
REACH = 64


@dataclass(frozen=True)
class Forecast:
    """What a reference says: the error relative to null at the sizes asked, and the size it needs.

    Attributes
    ----------
    n : the smallest size that reaches the target; infinite when none does up to the largest size asked.
    at_most : the theory does not reach below ``n``, so fewer may do.
    status : exact, asymptotic, bound or heuristic.
    sizes, errors : the curve; NaN where the theory does not reach.
    """

    n: float
    at_most: bool
    status: str
    sizes: tuple[int, ...]
    errors: tuple[float, ...]

    def __str__(self) -> str:
        if math.isinf(self.n):
            known = [n for n, error in zip(self.sizes, self.errors, strict=True) if not math.isnan(error)]
            return f"> {max(known)} ({self.status})"
        return f"{'at most ' * self.at_most}{self.n:.0f} ({self.status})"


def is_floor(reference: Reference) -> bool:
    """Whether nobody, or no learner of its kind, falls below it."""
    return reference.status == "bound" or (reference.learner is None and reference.name != "null")


@dataclass(frozen=True)
class Known:
    """The references of one task and learner."""

    task: Any
    learner: Any
    at: Callable[[int], Any] | None = None
    """The learner for n examples, where its size is planned too."""

    def references(self, wanted: Callable[[Reference], bool]) -> list[Reference]:
        """Those that satisfy a condition."""
        return [r for r in registry.references() if r.applies_to(self.task, self.learner) and wanted(r)]

    def error(self, reference: Reference, n: int) -> float:
        """NaN where the theory does not reach."""
        value = reference.error(self.task, self.at(n) if self.at else self.learner, n)
        return math.nan if value is None else float(value)

    def null(self) -> float:
        """Error of the null predictor, NaN where no reference gives it."""
        found = self.references(lambda reference: reference.name == "null")
        return self.error(found[0], 1) if found else math.nan

    def out_of_reach(self, target: float, n: int) -> str:
        """Why the target cannot be reached with n examples, where an exact value or a bound excludes it."""
        null = self.null()
        for reference in self.references(is_floor):
            share = self.error(reference, n) / null
            # an asymptotic value excludes nothing at finite size, and NaN, of an unknown null error, is above no target
            if reference.status in ("exact", "bound") and share > target:
                return f"out of reach: {reference.name} {share:.3g} ({reference.status})"
        return ""

    def need(self, target: float, low: int, high: int, measured_null: float) -> Forecast | None:
        """The examples that this learner needs by theory."""
        own = self.references(lambda reference: reference.learner is not None and not is_floor(reference))
        return self._first(own, target, low, high, measured_null)

    def least(self, target: float, low: int, high: int, measured_null: float) -> Forecast | None:
        """What the Bayes predictor needs, where its error depends on the number of examples."""
        floors = self.references(lambda reference: reference.learner is None and is_floor(reference))
        found = self._first(floors, target, low, high, measured_null)
        return found if found and low < found.n < math.inf else None

    def _first(
        self, references: list[Reference], target: float, low: int, high: int, measured_null: float
    ) -> Forecast | None:
        """The first reference with a value, followed until it comes down to the target."""
        null = self.null()
        # theory gives absolute errors, the target is relative to the null error
        null = measured_null if math.isnan(null) else null
        for reference in references:
            values: dict[int, float] = {}

            # defaults bind the present reference: a closure would see the last one of the loop
            def error(n: int, reference: Reference = reference, values: dict[int, float] = values) -> float:
                values[n] = self.error(reference, n) / null
                # where theory does not reach, the search must look at larger sizes
                return math.inf if math.isnan(values[n]) else values[n]

            search(error, target, low, REACH * high)
            # the search visits few sizes far from the target; a picture needs the whole curve
            for n in _drawn(low, high):
                error(n)
            if not all(map(math.isnan, values.values())):
                return _forecast(values, target, reference.status)
        return None


def _drawn(low: int, high: int) -> list[int]:
    """Sizes between which a straight line passes for the curve."""
    count = max(2, round(2 * math.log2(high / low)) + 1)
    return sorted({round(low * (high / low) ** (i / (count - 1))) for i in range(count)})


def _forecast(values: dict[int, float], target: float, status: str) -> Forecast:
    sizes = sorted(values)
    reached = [n for n in sizes if values[n] <= target]
    before = [n for n in sizes if reached and n < reached[0]]
    # the smallest size that was asked, or the first one within reach of theory, is at the target already
    at_most = bool(reached) and (not before or math.isnan(values[before[-1]]))
    return Forecast(
        float(reached[0]) if reached else math.inf, at_most, status, tuple(sizes), tuple(values[n] for n in sizes)
    )
