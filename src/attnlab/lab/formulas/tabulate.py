"""A theory function over a grid: the request is checked as a whole, then computed point by point into a table."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.common.prediction import Prediction
from attnlab.common.validation import one_of
from attnlab.lab.formulas.formula import Formula
from attnlab.lab.formulas.ranges import values

MAX_POINTS = 10_000
Row = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A formula with the values of every parameter that was given."""

    formula: Formula
    axes: dict[str, list[Any]]

    @property
    def varied(self) -> list[str]:
        """The parameters with more than one value."""
        return [name for name, axis in self.axes.items() if len(axis) > 1]

    @property
    def size(self) -> int:
        """Points of the grid."""
        return math.prod(len(axis) for axis in self.axes.values())

    def points(self) -> Iterator[Row]:
        """The grid, the last parameter running fastest."""
        for point in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, point, strict=True))

    def arguments(self, point: Mapping[str, Any]) -> Row:
        """What the function is called with: dotted names are put together to their objects."""
        fields: dict[str, Row] = {name: {} for name in self.formula.objects}
        plain: Row = {}
        for name, value in point.items():
            owner, dot, field = name.partition(".")
            (fields[owner] if dot else plain)[field or name] = value
        return {**{name: cls(**fields[name]) for name, cls in self.formula.objects.items()}, **plain}


@dataclass(frozen=True)
class Table:
    """One row for each point of a grid: the parameters, then the results (arrays as nested lists)."""

    request: Request
    rows: list[Row]
    notes: list[str]

    @property
    def results(self) -> list[str]:
        """The names of the results, in order of appearance."""
        return [
            name for name in dict.fromkeys(name for row in self.rows for name in row) if name not in self.parameters
        ]

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters given."""
        return list(self.request.axes)

    def to_csv(self) -> str:
        """Comma-separated, arrays spread over columns ``name[i,j]``, the status of the formula last."""
        rows = [{"status": self.request.formula.status, **spread(row)} for row in self.rows]
        names = list(dict.fromkeys(name for row in rows for name in row if name != "status"))
        out = io.StringIO()
        writer = csv.DictWriter(out, [*names, "status"], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def to_json(self) -> str:
        """All there is to know: formula, status, source, and the rows with their arrays."""
        formula = self.request.formula
        content = {
            "formula": formula.name,
            "summary": formula.summary,
            "status": formula.status,
            "status_text": formula.status_text,
            "source": formula.source,
            "varied": self.request.varied,
            "notes": self.notes,
            "rows": self.rows,
        }
        return json.dumps(_jsonable(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def request(formula: Formula, given: Mapping[str, str], *, max_points: int = MAX_POINTS) -> Request:
    """Read what was typed; every name, type, object and the size of the grid are checked here."""
    if formula.beyond:
        raise ValueError(f"{formula.name}: {formula.beyond[0]} is a Python object; call it from Python")
    known = {parameter.name: parameter for parameter in formula.parameters}
    for name in given:
        one_of(f"parameter of {formula.name}", name, known)
    missing = [p.name for p in known.values() if p.required and p.name not in given]
    if missing:
        example = " ".join(f"--{name} {formula.example()[name]}" for name in missing)
        raise ValueError(f"{formula.name} also needs {', '.join(missing)}, for example {example}")
    # in the order of the signature, whatever the order typed
    asked = Request(formula, {name: values(known[name], given[name]) for name in known if name in given})
    if asked.size > max_points:
        raise ValueError(f"the grid has {asked.size} points, more than --max-points {max_points}")
    if formula.objects:
        # building an object checks its fields, before anything is computed
        for point in asked.points():
            asked.arguments(point)
    return asked


def tabulate(asked: Request) -> Table:
    """Compute every point, the ends of the axes first: a value out of range is refused before the bulk is computed."""
    points, axes = list(asked.points()), asked.axes.values()
    positions = list(itertools.product(*(range(len(axis)) for axis in axes)))
    ends = [_ends(axis) for axis in axes]
    # False comes first: the points that lie at an end of every axis
    order = sorted(range(len(points)), key=lambda i: any(p not in e for p, e in zip(positions[i], ends, strict=True)))
    rows: dict[int, Row] = {}
    with warnings.catch_warnings(record=True) as caught:
        # by default Python shows a warning once for each place, and this call may not be the first
        warnings.simplefilter("always")
        for i in order:
            found = fields(asked.formula.function(**asked.arguments(points[i])))
            # a result may have the name of a parameter, such as error
            rows[i] = points[i] | {f"value.{k}" if k in points[i] else k: v for k, v in found.items()}
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    table = Table(asked, [rows[i] for i in range(len(points))], notes)
    return dataclasses.replace(table, notes=[*notes, *_doubts(table)])


def fields(result: Any, name: str = "value") -> Row:
    """A result as named numbers, texts and nested lists: dataclasses, named tuples and dicts by their own names.

    An array of one number is that number.

    >>> fields(Prediction(0.5, error=0.01, status="asymptotic", detail={"steps": 7}))
    {'value': 0.5, 'error': 0.01, 'status': 'asymptotic', 'converged': True, 'steps': 7}
    """
    named = _named(result)
    if named is not None:
        # the outermost result needs no prefix
        top = name == "value"
        return {k: v for key, item in named.items() for k, v in fields(item, key if top else f"{name}.{key}").items()}
    if isinstance(result, tuple | list) and any(_named(item) is not None for item in result):
        return {k: v for i, item in enumerate(result) for k, v in fields(item, f"{name}[{i}]").items()}
    # neither CSV nor JSON has complex numbers
    if np.iscomplexobj(result):
        parts = {"real": np.asarray(result).real, "imag": np.asarray(result).imag}
        return {k: v for part, item in parts.items() for k, v in fields(item, f"{name}.{part}").items()}
    if isinstance(result, np.ndarray | np.generic):
        return {name: result.item() if result.size == 1 else result.tolist()}
    if callable(result):  # a function has no place in a table
        return {}
    return {
        name: [next(iter(fields(item).values())) for item in result] if isinstance(result, tuple | list) else result
    }


def spread(row: Mapping[str, Any]) -> Row:
    """A row with its lists spread over columns.

    >>> spread({"alpha": 0.1, "value": [[1, 2], [3, 4]]})
    {'alpha': 0.1, 'value[0,0]': 1, 'value[0,1]': 2, 'value[1,0]': 3, 'value[1,1]': 4}
    """
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, list | tuple | np.ndarray):
            flat.update({f"{name}[{','.join(map(str, index))}]": item for index, item in _leaves(value)})
        else:
            flat[name] = value
    return flat


def _leaves(value: Any, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(value, list | tuple | np.ndarray):
        for i, item in enumerate(value):
            yield from _leaves(item, (*index, i))
    else:
        yield index, value


def _named(result: Any) -> Mapping[str, Any] | None:
    if isinstance(result, Prediction):
        return _predicted(result)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        properties = [name for name, item in vars(type(result)).items() if isinstance(item, property)]
        return {name: getattr(result, name) for name in [*(f.name for f in dataclasses.fields(result)), *properties]}
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        return dict(result._asdict())
    return result if isinstance(result, Mapping) else None


def _predicted(result: Prediction) -> dict[str, Any]:
    """A prediction with an error and a convergence flag for each of its values, its details under their own names."""
    own = [f.name for f in dataclasses.fields(result) if f.name != "detail"]
    parts = {name: getattr(result, name) for name in own} | dict(result.detail)
    if isinstance(result.value, np.ndarray):
        parts |= {name: np.broadcast_to(parts[name], result.shape).copy() for name in ("error", "converged")}
    return parts


def _ends(axis: list[Any]) -> set[int]:
    """The positions of the smallest and largest number of an axis; of anything that is not a number, all."""
    numbers = {i: x for i, x in enumerate(axis) if isinstance(x, int | float)}
    extremes = {min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)} if numbers else set()
    return extremes | (set(range(len(axis))) - set(numbers))


def _doubts(table: Table) -> list[str]:
    """What a reader must know before believing the table: points that did not converge, values that are not numbers."""
    flat = [spread(row) for row in table.rows]
    loose = sum(any(not v for k, v in row.items() if k.split("[")[0].endswith("converged")) for row in flat)
    undefined = sum(any(isinstance(v, float) and math.isnan(v) for v in row.values()) for row in flat)
    doubts = {"did not converge": loose, "hold a NaN": undefined}
    return [f"{count} of {len(flat)} points {what}" for what, count in doubts.items() if count]


def _jsonable(value: Any) -> Any:
    """Arrays as lists; what JSON has no number for (NaN, infinity) by name."""
    if isinstance(value, Mapping):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
