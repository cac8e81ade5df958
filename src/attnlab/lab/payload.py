"""How a record is written down: numbers and text as JSON, arrays in an ``.npz`` file beside the store."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


def encode(record: Mapping[str, Any]) -> tuple[str, bytes]:
    """JSON text and the bytes of the array file (empty without arrays)."""
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps({str(key): _plain(value, str(key), arrays) for key, value in record.items()}, sort_keys=True)
    if not arrays:
        return text, b""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return text, buffer.getvalue()


def decode(text: str, content: bytes) -> dict[str, Any]:
    """The inverse of :func:`encode`."""
    arrays: dict[str, np.ndarray] = {}
    if content:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    record: dict[str, Any] = _with_arrays(json.loads(text), arrays)
    return record


def sha256(content: bytes) -> str:
    """Hash of an array file; the empty string stands for no file."""
    return hashlib.sha256(content).hexdigest() if content else ""


@dataclass(frozen=True)
class ArrayFolder:
    """The array files of a store, one per cell that has arrays."""

    path: Path

    @classmethod
    def beside(cls, store: Path) -> ArrayFolder:
        """The folder that belongs to a store."""
        return cls(store.with_name(store.name + ".arrays"))

    def file(self, cell_id: str) -> Path:
        """Where a cell's arrays are."""
        return self.path / cell_id[:2] / f"{cell_id}.npz"

    def write(self, cell_id: str, content: bytes) -> None:
        """Write the file whole or not at all; nothing to write, nothing written."""
        if not content:
            return
        target = self.file(cell_id)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(".partial")
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def read(self, cell_id: str) -> bytes:
        """The bytes of a cell's array file."""
        return self.file(cell_id).read_bytes()


def _plain(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """JSON types; an array goes to ``arrays`` and its name stands in its place."""
    if isinstance(value, np.ndarray) and value.ndim:
        if value.dtype.kind not in "fiubcU":
            raise TypeError(f"result {name!r} is an array of {value.dtype}; only numbers and strings are stored")
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.ndarray | np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): _plain(v, f"{name}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, f"{name}.{i}", arrays) for i, v in enumerate(value)]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"result {name!r} is a {type(value).__name__}; only numbers, strings and arrays are stored")


def _with_arrays(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"array"} and value["array"] in arrays:
            return arrays[value["array"]]
        return {k: _with_arrays(v, arrays) for k, v in value.items()}
    return [_with_arrays(v, arrays) for v in value] if isinstance(value, list) else value
