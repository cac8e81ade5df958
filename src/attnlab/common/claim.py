"""A claim is one sentence of a paper with a statistic that decides it.

Its verdict is *holds*, *fails*, *undecided* or *not measured*.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from attnlab.common import power
from attnlab.common.intervals import EVERYTHING, Bounds, Fixed, Measured
from attnlab.common.records import CONFIDENCE, Estimate, Records, identity
from attnlab.common.statistics import Statistic

Status = Literal["holds", "fails", "undecided", "not measured"]
STATUSES: tuple[Status, ...] = ("holds", "fails", "undecided", "not measured")


@dataclass(frozen=True)
class Threshold:
    """The set of values for which a claim holds, an interval."""

    low: float = -math.inf
    high: float = math.inf

    def contains(self, value: float) -> bool:
        """Whether the claim holds at this value."""
        return bool(self.low <= value <= self.high)

    def decide(self, bounds: Bounds) -> Status:
        """What an interval says: a side, if all of it lies there."""
        low, high = bounds
        # the values that hold form an interval: with both ends inside, all of the measured one is
        if self.contains(low) and self.contains(high):
            return "holds"
        return "fails" if self.high < low or high < self.low else "undecided"

    @property
    def bounds(self) -> Bounds:
        """Both ends."""
        return self.low, self.high

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
    """What a claim came to on a set of records.

    ``cells`` counts the rows that the statistic reads, ``unconverged`` those of them whose learner did not converge;
    ``extended`` is true if replicates were added after a look at an undecided verdict.
    """

    claim: Claim
    scale: str
    status: Status
    estimate: Estimate | None
    reason: str = ""
    measured: Measured | None = None
    cells: int = 0
    unconverged: int = 0
    extended: bool = False

    @property
    def registered(self) -> Status:
        """The verdict that is registered for this scale."""
        return self.claim.expected(self.scale)

    @property
    def as_registered(self) -> bool:
        """Whether the verdict is the registered one."""
        return self.status == self.registered

    @property
    def contradicts(self) -> bool:
        """Whether it is the opposite of the registered one; *undecided* is a lack of replicates, no other outcome."""
        return {self.status, self.registered} == {"holds", "fails"}

    # Kept: the page of a run asks for the numbers of all claims each time a figure is finished.
    @functools.cached_property
    def p_value(self) -> float:
        """The smallest level at which the interval lies on the side where the claim holds; 1 if the value does not."""
        return self._smallest_level("holds")

    def _smallest_level(self, side: Status) -> float:
        if self.measured is None or self.claim.holds.decide((self.measured.value,) * 2) != side:
            return math.nan if self.measured is None else 1.0
        low, high = -12.0, 0.0  # of the decimal logarithm; the interval at level 1 - 10^high is the value itself
        if self._side(low) == side:
            # below 10^low p-values are not told apart; a computation without noise has p = 0
            return 10**low if not isinstance(self.measured, Fixed) else 0.0
        # a thousandth of the logarithm is 0.2 % of p; ``high`` always lies on the side, so p is not understated
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (low, middle) if self._side(middle) == side else (middle, high)
        return float(10**high)

    def _side(self, exponent: float) -> Status:
        assert self.measured is not None
        return self.claim.holds.decide(self.measured.interval(1 - 10**exponent))

    @functools.cached_property
    def replicates_needed(self) -> float:
        """For an undecided claim, the replicates that would decide it at the present value and noise; otherwise NaN."""
        if self.status != "undecided" or self.measured is None or not math.isfinite(self.measured.value):
            return math.nan
        return power.replicates_needed(self.measured, self.claim.holds.bounds, CONFIDENCE)

    @functools.cached_property
    def smallest_effect(self) -> float:
        """How far inside the threshold the truth must be for this design to show it with probability 80 %."""
        if self.measured is None or not math.isfinite(self.measured.value):
            return math.nan
        return power.smallest_effect(self.measured, self.claim.holds.bounds, CONFIDENCE)


@dataclass(frozen=True)
class Claim:
    """One sentence and the statistic that decides it.

    Parameters
    ----------
    id : short and stable, ``system.number`` or ``system.word``.
    says : the sentence, in words a reader of the paper recognises.
    source : arXiv id and place, or *derived here*.
    statistic : the deciding number and its interval, by kind (:mod:`attnlab.common.statistics`).
    holds : the values for which the claim holds.
    because : where the threshold comes from.
    registered : the verdict predicted for each scale, *holds* unless said; never counted as a measurement.
    note : for a predicted *fails* or *undecided*, why, and what would decide it: a larger n or d, another law.
    replicates : independent replicates without which nothing is decided.
    kind : *exploratory* if form or threshold were fixed after a look at data, until fresh seeds have decided it.
    """

    id: str
    says: str
    source: str
    statistic: Statistic
    holds: Threshold
    because: str
    registered: Mapping[str, Status] = field(default_factory=dict)
    note: str = ""
    replicates: int = 3
    kind: Literal["confirmatory", "exploratory"] = "confirmatory"

    def expected(self, scale: str) -> Status:
        """The verdict that is registered: *holds* unless the claim registers another."""
        return self.registered.get(scale, "holds")

    def decide(self, records: Records, scale: str) -> Verdict:
        """Holds or fails when the whole interval is on one side of the threshold, otherwise undecided."""
        try:
            measured = self.statistic.measure(records)
            bounds = measured.interval(CONFIDENCE) if math.isfinite(measured.value) else EVERYTHING
            estimate = Estimate(measured.value, *bounds, measured.units)
            # a row that several quantities read counts once
            rows = {identity(row): row for row in self.statistic.rows(records)}.values()
        except LookupError as problem:
            return Verdict(self, scale, "not measured", None, f"no data: {problem}")
        except (ValueError, ArithmeticError) as problem:
            return Verdict(self, scale, "undecided", None, f"the value cannot be computed: {problem}")
        except TypeError as problem:
            # a result that is None or a word where a number is expected
            return Verdict(self, scale, "undecided", None, f"the records do not hold numbers: {problem}")
        status, reason = self._decide(measured, estimate)
        # None stands for a learner that does not say, which is no failure
        unconverged = sum(row.get("converged") is False for row in rows)
        return Verdict(self, scale, status, estimate, reason, measured, len(rows), unconverged)

    def _decide(self, measured: Measured, estimate: Estimate) -> tuple[Status, str]:
        value, low, high, units = estimate
        if not math.isfinite(value):
            return "undecided", "the value is not finite"
        # one unit and an interval of width zero are right for a computation without noise
        if not isinstance(measured, Fixed):
            if units < self.replicates:
                return "undecided", f"{units} independent replicates; the claim asks for {self.replicates}"
            if low == high:
                return "undecided", f"all {units} replicates give the same number, which says nothing of the noise"
        status = self.holds.decide((low, high))
        if status == "undecided" and math.isinf(high - low):
            return status, f"{units} replicates without an interval: too few, or all give the same number"
        return status, "" if status == "holds" else self.note
