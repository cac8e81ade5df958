"""Claims are registered before they are measured: a readable file in each system's package says what decides them.

An entry's digest covers all that can decide the claim: its text, threshold and reason, the source code of functions
that its statistic calls, the number of replicates and the predicted verdicts. A changed claim gets a new digest and
date, so that a change is a line in the file's history.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import hashlib
import inspect
import json
import textwrap
import tomllib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attnlab.common.claim import Claim
from attnlab.common.figure import Figure
from attnlab.common.systems import own_files
from attnlab.lab.errors import StoreUnwritable

FILE = "registered_claims.toml"
HEAD = """\
# Registered claims: what each says, how it is decided, and since when. Made by `attnlab claims register`, not by hand.
# A claim that differs from its entry here cannot be confirmed; `attnlab claims check` says which do.
"""


def today() -> datetime.date:
    """The date of what is registered now."""
    return datetime.date.today()


def entry(claim: Claim, figure: Figure) -> dict[str, Any]:
    """What is registered of a claim, but for the date."""
    content = {
        "figure": figure.name,
        "says": claim.says,
        "source": claim.source,
        "statistic": str(claim.statistic),
        "holds": str(claim.holds),
        "because": claim.because,
        "kind": claim.kind,
        "replicates": claim.replicates,
        "seeds": {scale: figure.knobs(scale)["seeds"] for scale in figure.scales},
        "expected": {scale: claim.expected(scale) for scale in figure.scales},
    }
    return {**content, "digest": _digest([content, *_code(claim.statistic)])}


def digest(claim: Claim, figure: Figure) -> str:
    """Twelve hexadecimal digits for a claim as it stands."""
    return str(entry(claim, figure)["digest"])


def read() -> dict[str, dict[str, Any]]:
    """The registered claims of all systems by id."""
    return {id: content for path in own_files(FILE).values() for id, content in read_file(path).items()}


def read_file(path: Path) -> dict[str, dict[str, Any]]:
    """The registered claims of a file by id; none where there is no file."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def differences(figures: Iterable[Figure], registered: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The claims that are not as registered, by id, each with what is the matter."""
    found: dict[str, str] = {}
    for figure in figures:
        for claim in figure.claims:
            now, before = entry(claim, figure), registered.get(claim.id)
            if before is None:
                found[claim.id] = "is not registered"
            elif now["digest"] != before["digest"]:
                # the digest alone covers the source of functions and the values they hold
                parts = [name for name in now if name != "digest" and now[name] != before.get(name)]
                found[claim.id] = f"has changed since {before['registered']}: {', '.join(parts) or 'code of statistic'}"
    return found


def register(figures: Iterable[Figure]) -> dict[str, str]:
    """Write the file of each system, with its own claims alone. Returns what changed, by id."""
    shown = list(figures)
    changed: dict[str, str] = {}
    for system, path in own_files(FILE).items():
        changed |= write(path, [figure for figure in shown if figure.name.split(".")[0] == system])
    return changed


def write(path: Path, figures: Iterable[Figure]) -> dict[str, str]:
    """Write the claims of figures to a file; unchanged claims keep their date. Returns what changed, by id."""
    shown, before, day = list(figures), read_file(path), today()
    changed = differences(shown, before)
    now = {claim.id: entry(claim, figure) for figure in shown for claim in figure.claims}
    dated = {
        id: {**content, "registered": day if id in changed else before[id]["registered"]} for id, content in now.items()
    }
    # a system without claims gets no file
    if not dated and not path.exists():
        return {}
    try:
        path.write_text(HEAD + "".join(_table(id, content) for id, content in dated.items()), encoding="utf-8")
    except OSError as error:
        raise StoreUnwritable(f"cannot write the registered claims to {path}: {error.strerror}") from error
    return changed | {id: "is gone" for id in before if id not in now}


def _table(id: str, content: Mapping[str, Any]) -> str:
    lines = [f"{name} = {_value(value)}" for name, value in content.items()]
    return "\n".join(["", f'["{id}"]', *lines, ""])


def _value(value: Any) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    # a basic string of TOML has the escapes of JSON
    return json.dumps(value, ensure_ascii=False)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def _code(item: Any) -> list[str]:
    """The source of the functions that a statistic calls, and the plain values that they hold."""
    if isinstance(item, types.FunctionType):
        item = inspect.unwrap(item)
        # the library's own statistics stand in the entry by their text
        if item.__module__.startswith("attnlab.common."):
            return []
        # a function made inside another may take a number from it, which its source does not show
        held = [cell.cell_contents for cell in item.__closure__ or ()]
        return [_source(item), *(text for part in held for text in _code(part))]
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return [text for field in dataclasses.fields(item) for text in _code(getattr(item, field.name))]
    if isinstance(item, list | tuple):
        return [text for part in item for text in _code(part)]
    return [repr(item)] if isinstance(item, str | int | float | bool) else []


def _source(function: types.FunctionType) -> str:
    """Without comments, docstring and layout."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # a function inside another is indented
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
