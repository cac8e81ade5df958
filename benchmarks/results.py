"""Results of a run as one JSON file: the machine, the rows of each part; and what changed between two of them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

# A row that was measured once has no spread; smaller changes of it are taken for noise.
UNKNOWN_SPREAD = 0.2
RATES = ("sgemm GFLOP/s", "dgemm GFLOP/s", "copy GB/s")


@dataclass
class Results:
    """Rows by part, seconds that each part took and its day, and parts that failed with their error."""

    machine: dict[str, Any]
    rows: dict[str, list[Row]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    days: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Replace the file in one step, so that a cut run leaves the rows it had."""
        rows = [
            {"part": part, **asdict(row), "met": row.met} for part, part_rows in self.rows.items() for row in part_rows
        ]
        parts = {"seconds": self.seconds, "days": self.days, "failed": self.failed}
        content = {"machine": self.machine, **parts, "rows": finite(rows)}
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(path.name + ".new")
        beside.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
        beside.replace(path)

    @classmethod
    def read(cls, path: Path) -> Results:
        """What ``write`` wrote; fields that this version does not know are ignored."""
        try:
            content = json.loads(path.read_text())
            known = {each.name for each in fields(Row)}
            rows: dict[str, list[Row]] = {}
            for entry in content["rows"]:
                values = {name: value for name, value in entry.items() if name in known}
                values["value"] = math.nan if values["value"] is None else values["value"]
                rows.setdefault(entry["part"], []).append(Row(**values))
            parts = (content.get(name, {}) for name in ("seconds", "failed", "days"))
            return cls(content["machine"], rows, *parts)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise ValueError(f"{path} does not hold benchmark results: {problem}") from problem

    def beside(self, earlier: Results) -> Results:
        """The parts of an earlier run on the same machine, to which those of this run are added."""
        names = ("device",) if "device" in self.machine else ("processor", "cores")
        old, new = (", ".join(str(each.machine.get(name)) for name in names) for each in (earlier, self))
        if old != new:
            raise ValueError(f"the file holds results of {old}, this is {new}: choose another file")
        return Results(
            self.machine, dict(earlier.rows), dict(earlier.seconds), dict(earlier.failed), dict(earlier.days)
        )

    def all_rows(self) -> list[Row]:
        """The rows of every part."""
        return [row for part in self.rows.values() for row in part]


def finite(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """JSON has no NaN and no infinity: they are written as null."""
    return [{k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()} for row in rows]


@dataclass(frozen=True)
class Change:
    """One row in two runs."""

    name: str
    before: Row
    after: Row

    @property
    def threshold(self) -> float:
        """Twice the two spreads; for a row without spread a fifth of its value."""
        return sum(
            2 * row.spread if row.spread is not None else UNKNOWN_SPREAD * abs(row.value) / 2
            for row in (self.before, self.after)
        )

    @property
    def beyond(self) -> bool:
        """Whether the difference is larger than the noise."""
        return not abs(self.after.value - self.before.value) <= self.threshold

    @property
    def verdict(self) -> str:
        """Better or worse, where the row says which way is better."""
        target, grew = self.after.target.strip(), self.after.value > self.before.value
        larger_is_better = target.startswith(">") or (self.after.unit == "x" and not target.startswith("<"))
        smaller_is_better = target.startswith("<") or self.after.unit in ("s", "ms", "min", "MB", "GiB")
        if larger_is_better:
            return "better" if grew else "worse"
        if smaller_is_better:
            return "worse" if grew else "better"
        return "changed"


@dataclass(frozen=True)
class Comparison:
    """What differs between two runs."""

    changes: list[Change]
    same: int
    only_before: list[str]
    only_after: list[str]
    machine: dict[str, tuple[Any, Any]]


def compare(before: Results, after: Results) -> Comparison:
    """Rows with the same part and name, held against their spreads; and the differences of the machines."""
    old, new = (
        {f"{part}: {row.name}": row for part, rows in results.rows.items() for row in rows}
        for results in (before, after)
    )
    pairs = [Change(name, old[name], new[name]) for name in old if name in new]
    changes = [pair for pair in pairs if pair.beyond]
    keys = dict.fromkeys([*before.machine, *after.machine])
    machine = {
        key: (before.machine.get(key), after.machine.get(key))
        for key in keys
        if key != "date" and differs(key, before.machine.get(key), after.machine.get(key))
    }
    return Comparison(
        changes,
        len(pairs) - len(changes),
        [name for name in old if name not in new],
        [name for name in new if name not in old],
        machine,
    )


def differs(key: str, before: Any, after: Any) -> bool:
    """Whether two machine descriptions differ in an entry; measured rates may vary by a tenth."""
    if key in RATES and before and after:
        return bool(abs(after / before - 1) > 0.1)
    return bool(before != after)
