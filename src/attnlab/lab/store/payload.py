"""How a record is written down: numbers and text as JSON, arrays as the bytes of an ``.npz`` file."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

# Stands in a record in the place of an array, with the array's number in the file.
MARK = "__array__"


def encode(record: Mapping[str, Any]) -> tuple[str, bytes]:
    """JSON text and the bytes of the array file (empty without arrays)."""
    if not isinstance(record, Mapping):
        raise TypeError(f"a cell must return its results by name, as a dictionary; got a {type(record).__name__}")
    arrays: list[np.ndarray] = []
    text = json.dumps({str(key): _plain(value, str(key), arrays) for key, value in record.items()}, sort_keys=True)
    if not arrays:
        return text, b""
    buffer = io.BytesIO()
    # Entries are numbered: savez takes keywords, so a result called "file" would be taken for its first argument.
    np.savez(buffer, **{f"a{i}": array for i, array in enumerate(arrays)}, allow_pickle=False)
    return text, buffer.getvalue()


def decode(text: str, content: bytes) -> dict[str, Any]:
    """The inverse of :func:`encode`; ValueError for what it did not write."""
    arrays: dict[str, np.ndarray] = {}
    try:
        if content:
            _refuse_compressed(content)
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        record: dict[str, Any] = _with_arrays(json.loads(text), arrays)
    # a damaged record may nest without end or name arrays that are not there
    except (RecursionError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"not a record: {error!r}") from error
    return record


def sha256(content: bytes) -> str:
    """Hash of an array file; the empty string stands for no file."""
    return hashlib.sha256(content).hexdigest() if content else ""


def _refuse_compressed(content: bytes) -> None:
    """What we write is not compressed, so a small file cannot unfold into a large one."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if any(entry.file_size != entry.compress_size for entry in file.infolist()):
            raise ValueError("the array file is compressed; attnlab writes none that are")


def _plain(value: Any, name: str, arrays: list[np.ndarray]) -> Any:
    """JSON types; an array goes to ``arrays`` and its number stands in its place."""
    if isinstance(value, np.ndarray) and value.ndim:
        # an array of objects would be pickled, and a pickle runs code when it is read
        if value.dtype.kind not in "fiubcU":
            raise TypeError(f"result {name!r} is an array of {value.dtype}; only numbers and strings are stored")
        arrays.append(value)
        return {MARK: f"a{len(arrays) - 1}"}
    # an array without dimensions is a number
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.item(), name, arrays)
    if isinstance(value, Mapping):
        if MARK in value:
            raise TypeError(f"result {name!r} has an entry {MARK!r}, which stands for arrays")
        return {str(k): _plain(v, f"{name}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, f"{name}.{i}", arrays) for i, v in enumerate(value)]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"result {name!r} is a {type(value).__name__}; only numbers, strings and arrays are stored")


def _with_arrays(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {MARK}:
            return arrays[value[MARK]]
        return {k: _with_arrays(v, arrays) for k, v in value.items()}
    return [_with_arrays(v, arrays) for v in value] if isinstance(value, list) else value
