"""What a file says; files that no learner wrote, and the proof that they are refused."""

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

from attnlab import __version__, persist
from attnlab.persist import BadFile, load


def npy(array: np.ndarray, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def header_of(path):
    with np.load(path, allow_pickle=False) as file:
        return json.loads(file["header.json"].tobytes())


def forge(path, header=None, *, compression=zipfile.ZIP_STORED, **members: bytes) -> None:
    """Write a file with this header (an object, or the bytes themselves) and these further members."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        if header is not None:
            archive.writestr("header.json.npy", npy(np.frombuffer(raw, np.uint8)))
        for name, content in members.items():
            archive.writestr(name, content)


def envelope(learner):
    return {"format": persist.FORMAT, "version": persist.VERSION, "attnlab": __version__, "learner": learner}


def estimator(name="slr.Mean", params=None, fitted=None):
    return {"$": "estimator", "class": name, "params": params or {}, "fitted": fitted or {}}


def refused(path, *words: str, **options: Any) -> None:
    with pytest.raises(BadFile) as problem:
        load(path, **options)
    for word in words:
        assert word in str(problem.value)
