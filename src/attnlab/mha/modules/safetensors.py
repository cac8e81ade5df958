"""Reading ``.safetensors`` files without torch.

Eight bytes of little-endian header length n, n bytes of JSON ``{name: {dtype, shape, data_offsets}}``, then the data,
offsets counted from byte 8 + n.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # NumPy has no bfloat16: read as bits
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
# The library's own limit. Without one the first bytes of another kind of file could ask for any memory.
_LONGEST_HEADER = 100_000_000


class Tensors(Mapping[str, np.ndarray]):
    """The arrays of a file by name, each read when it is asked for; bfloat16 becomes float32."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 2 <= length <= _LONGEST_HEADER:
                raise ValueError(f"{self.path} is not a safetensors file: its header has {length} bytes")
            try:
                header: dict[str, Any] = json.loads(file.read(length))
            except ValueError as error:
                raise ValueError(f"{self.path} is not a safetensors file: its header is no JSON") from error
        header.pop("__metadata__", None)  # free text about the file, no array
        self.header, self.begin = header, 8 + length

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self.header[name]
        if entry["dtype"] not in _TYPES:
            raise ValueError(f"{name} has dtype {entry['dtype']}, which is not one of {', '.join(_TYPES)}")
        first, last = entry["data_offsets"]
        with self.path.open("rb") as file:
            file.seek(self.begin + first)
            data = file.read(last - first)
        if len(data) != last - first:
            raise ValueError(f"{self.path} ends inside {name}: the file is damaged")
        array = np.frombuffer(data, dtype=_TYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":  # the upper half of a float32
            array = (array.astype("<u4") << 16).view("<f4")
        return array.reshape(entry["shape"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.header)

    def __len__(self) -> int:
        return len(self.header)
