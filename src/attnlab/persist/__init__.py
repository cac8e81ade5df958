"""Fitted learners as files: one ``.npz`` without pickle, so that nothing in a file can run.

The file is an uncompressed zip of ``.npy`` members. ``header.json`` (UTF-8 bytes in a uint8 array) says what is stored;
the arrays it refers to are the members ``a0``, ``a1``, … so ``numpy.load`` opens the file too::

    {"format": "attnlab learner", "version": 1, "attnlab": "0.1.0",
     "learner": {"$": "estimator", "class": "slr.LinearPredictor", "params": {…}, "fitted": {…}}}

Numbers, strings, booleans, null and lists are themselves; everything else is an object whose ``$`` says what it is
(``attnlab.persist.grammar`` holds the whole grammar). Only public classes of the systems,
and classes added with ``lab.add``, are ever instantiated.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from attnlab import __version__
from attnlab.persist.archive import DAMAGE, Arrays, BadFile, opened, write
from attnlab.persist.grammar import decode, encode, expect

__all__ = ["BadFile", "load", "save"]

FORMAT = "attnlab learner"
VERSION = 1
MAX_BYTES = 8 * 2**30
MAX_HEADER = 16 * 2**20


def save(learner: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted learner to ``path``; a file already there is replaced only when the new one is complete.

    Stored are the constructor's parameters and the fitted attributes (names that end in ``_``). They may be None,
    booleans, numbers, strings, arrays of those, lists, tuples, dicts, nested learners, and frozen dataclasses that a
    system makes public. Anything else (a function, a generator of random numbers) is a TypeError that says
    where it sits.

    >>> import tempfile
    >>> from attnlab import slr
    >>> X, y = slr.Task(d=6, L=3).sample(100)
    >>> learner = slr.LinearPredictor(ridge=0.1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(learner, folder + "/linear.npz")
    ...     again = load(folder + "/linear.npz")
    >>> again
    LinearPredictor(ridge=0.1)
    >>> bool((again.predict(X) == learner.predict(X)).all())
    True
    """
    check_is_fitted(learner)
    arrays: dict[str, np.ndarray] = {}
    body = encode(learner, arrays, type(learner).__name__)
    header = {"format": FORMAT, "version": VERSION, "attnlab": __version__, "learner": body}
    text = json.dumps(header, allow_nan=False).encode()
    if len(text) > MAX_HEADER:
        raise ValueError(f"{type(learner).__name__} holds {len(text)} bytes outside arrays; keep long lists as arrays")
    write(Path(path), {"header.json": np.frombuffer(text, np.uint8), **arrays})


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> BaseEstimator:
    """Read a learner that :func:`save` wrote; its predictions are those of the learner that was saved.

    A file that is damaged, larger than ``max_bytes``, of another format version, or that names anything but public
    classes and fitted attributes raises :class:`BadFile`. All sizes are checked before memory is allocated.
    """
    with open(path, "rb") as file:
        try:
            with opened(file, max_bytes) as arrays:
                learner = decode(_header(arrays), arrays)
            if not isinstance(learner, BaseEstimator):
                raise BadFile(f"it holds a {type(learner).__name__}")
            return learner
        except DAMAGE as problem:
            reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
            raise BadFile(f"{os.fspath(path)} is not a learner saved by attnlab: {reason}") from problem


def _header(arrays: Arrays) -> Any:
    """The encoded learner, from a header of this format and version."""
    raw = arrays.read("header.json", limit=MAX_HEADER)
    if raw.dtype != np.uint8:
        raise BadFile("its header is not text")
    header = expect(dict, json.loads(raw.tobytes(), parse_constant=_refuse_constant))
    if header.get("format") != FORMAT:
        raise BadFile(f"its format is {str(header.get('format'))[:80]!r}")
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise BadFile(f"its format version is {str(header.get('version'))[:80]}, this attnlab reads {VERSION}")
    return header.get("learner")


def _refuse_constant(text: str) -> None:
    raise BadFile(f"its header holds {text}")
