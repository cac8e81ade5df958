"""The TOML that asks for a figure or a sweep again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attnlab.common.figure import Figure
from attnlab.common.seeds import canonical
from attnlab.lab.describe import is_plain, settings


def to_toml(figure: Figure, scale: str) -> str:
    """The request that runs a figure or a sweep again with the knobs it has."""
    if figure.name.startswith("sweep."):
        return _sweep_toml(figure, scale)
    lines = [f'figure = "{figure.name}"', f'scale = "{scale}"']
    # with several grids a knob would set one value in all of them
    if len(figure.scales[scale]) == 1:
        values = figure.knobs(scale).items()
        lines += ["", "[set]", *(f"{name} = {_toml(value)}" for name, value in values if _is_knob(value))]
    return "\n".join(lines) + "\n"


def _sweep_toml(figure: Figure, scale: str) -> str:
    grids = figure.scales[scale]
    lines = [f'name = "{figure.name.removeprefix("sweep.")}"', f"seeds = {grids[0].seeds}"]
    lines += [
        f"{name} = {_toml(value)}" for name, value in grids[0].params.items() if name in ("n_train", "alpha", "n_test")
    ]
    for role in ("task", "learner"):
        tables = [{"name": grid.params[role], **settings(role, grid.params)} for grid in grids]
        for own in {canonical(table): table for table in tables}.values():
            lines += ["", f"[[{role}]]", *(f"{key} = {_toml(value)}" for key, value in own.items())]
    return "\n".join(lines) + "\n"


def _is_knob(value: Any) -> bool:
    """Whether a value can stand in a request; objects and types are what a figure is about."""
    return is_plain(value) and not isinstance(value, tuple)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        if all(type(item) in (int, float) for item in value):  # a text for each of a million would take 60 MB
            return repr(list(value))
        return f"[{', '.join(map(_toml, value))}]"
    # a NumPy float prints as np.float64(...), which is no TOML
    return float.__repr__(value) if isinstance(value, float) else json.dumps(value)
