"""A claim is one sentence of a paper with a number that decides it: *holds*, *fails* or *undecided*."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from scipy import stats

from attnlab.common.records import CONFIDENCE, Estimate, Records, jackknife

Status = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Threshold:
    """The set of values for which a claim holds, an interval."""

    low: float = -math.inf
    high: float = math.inf

    def contains(self, value: float) -> bool:
        """Whether the claim holds at this value."""
        return bool(self.low <= value <= self.high)

    def distance(self, value: float) -> float:
        """How far the value is from changing sides."""
        return min(abs(value - self.low), abs(value - self.high))

    def __str__(self) -> str:
        if self.low == -math.inf:
            return f"≤ {self.high:g}"
        if self.high == math.inf:
            return f"≥ {self.low:g}"
        return f"in [{self.low:g}, {self.high:g}]"


def at_least(low: float) -> Threshold:
    """The claim holds for values >= low."""
    return Threshold(low=low)


def at_most(high: float) -> Threshold:
    """The claim holds for values <= high."""
    return Threshold(high=high)


def between(low: float, high: float) -> Threshold:
    """The claim holds for values in [low, high]."""
    return Threshold(low, high)


@dataclass(frozen=True)
class Verdict:
    """What a claim came to on a set of records."""

    claim: Claim
    scale: str
    status: Status
    estimate: Estimate | None
    reason: str = ""

    @property
    def expected(self) -> Status:
        """The verdict recorded for this scale."""
        return self.claim.expect.get(self.scale, "holds")

    @property
    def as_recorded(self) -> bool:
        """Whether the verdict is the one on record."""
        return self.status == self.expected

    @property
    def flip_probability(self) -> float:
        """How often noise alone, at the estimated size, would put the value on the other side of the threshold."""
        if self.estimate is None or self.estimate.runs < 2:
            return math.nan
        half = (self.estimate.high - self.estimate.low) / 2
        distance = self.claim.holds.distance(self.estimate.value)
        if half == 0 or math.isinf(distance):
            return 0.0
        freedom = self.estimate.runs - 1
        return float(stats.t.sf(distance / half * _student(freedom), freedom))

    @property
    def runs_needed(self) -> float:
        r"""For an undecided claim, the runs that would decide it at the present value and noise.

        The smallest n whose half-width :math:`t_{n-1}\,s/\sqrt n`, with s from the present interval, is below the
        distance to the threshold. Infinite beyond a billion, NaN where the claim is decided or the noise unknown.
        """
        if self.status != "undecided" or self.estimate is None or self.estimate.runs < 2:
            return math.nan
        runs, half = self.estimate.runs, (self.estimate.high - self.estimate.low) / 2
        distance = self.claim.holds.distance(self.estimate.value)
        spread = half / _student(runs - 1) * math.sqrt(runs)
        if not math.isfinite(spread) or not math.isfinite(distance):
            return math.nan
        few, enough = runs, 2 * runs
        while _student(enough - 1) * spread / math.sqrt(enough) > distance:
            few, enough = enough, 2 * enough
            if enough > 1e9:
                return math.inf
        while enough - few > 1:
            middle = (few + enough) // 2
            narrow = _student(middle - 1) * spread / math.sqrt(middle) <= distance
            few, enough = (few, middle) if narrow else (middle, enough)
        return float(enough)


@dataclass(frozen=True)
class Claim:
    """One sentence and the number that decides it.

    Parameters
    ----------
    id : short and stable, ``system.number`` or ``system.word``.
    says : the sentence, in words a reader of the paper recognises.
    source : arXiv id and place, or *derived here*.
    value : the deciding number, computed from the records. It returns a float, whose uncertainty is then found by the
        jackknife over seeds; or an :class:`Estimate` that brings its own interval (:func:`proportion`).
    holds : the values for which the claim holds.
    because : where the threshold comes from.
    expect : the verdict on record for each scale; a claim known not to show is recorded as such.
    note : for a recorded *fails* or *undecided*, why, and what would decide it: a larger n or d, another law. How many
        replicates would is computed (:attr:`Verdict.runs_needed`).
    """

    id: str
    says: str
    source: str
    value: Callable[[Records], float | Estimate]
    holds: Threshold
    because: str
    expect: Mapping[str, Status] = field(default_factory=dict)
    note: str = ""

    def decide(self, records: Records, scale: str) -> Verdict:
        """Holds or fails when the whole interval is on one side of the threshold, otherwise undecided."""
        try:
            first = self.value(records)
            # A float is repeated on reduced tables, so the annotation narrows to the jackknife's.
            estimate = (
                first if isinstance(first, Estimate) else jackknife(lambda r: float(_number(self.value(r))), records)
            )
        except (LookupError, ValueError, ArithmeticError) as problem:
            return Verdict(self, scale, "undecided", None, f"not enough data: {problem}")
        except TypeError as problem:
            # a result that is None or a word where a number is expected
            return Verdict(self, scale, "undecided", None, f"the records do not hold numbers: {problem}")
        if not all(math.isfinite(x) for x in estimate[:3]):
            return Verdict(self, scale, "undecided", estimate, "the value is not finite")
        inside = [self.holds.contains(x) for x in estimate[:3]]
        status: Status = "holds" if all(inside) else "undecided"
        if self.holds.high < estimate.low or estimate.high < self.holds.low:
            status = "fails"
        return Verdict(self, scale, status, estimate, "" if status == "holds" else self.note)


def _student(freedom: float) -> float:
    """The factor by which a standard error becomes the half-width of the interval."""
    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom))


def _number(value: float | Estimate) -> float:
    return value.value if isinstance(value, Estimate) else value
