"""Fitted learners as files: one ``.npz`` without pickle, so that nothing in a file can run.

The file is an uncompressed zip of ``.npy`` members. ``header.json`` (UTF-8 bytes in a uint8 array) says what is stored;
the arrays it refers to are the members ``a0``, ``a1``, … so ``numpy.load`` opens the file too::

    {"format": "attnlab learner", "version": 1, "attnlab": "0.1.0",
     "learner": {"$": "estimator", "class": "slr.LinearPredictor", "params": {…}, "fitted": {…}}}

Numbers, strings, booleans, null and lists are themselves; everything else is an object whose ``$`` says what it is
(:func:`_encode` and :func:`_decode` hold the whole grammar). Only public classes of the systems are ever instantiated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import math
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from attnlab import __version__
from attnlab.lab import registry

FORMAT = "attnlab learner"
VERSION = 1
MAX_BYTES = 8 * 2**30
MAX_HEADER = 16 * 2**20
MAX_DEPTH = 50
KINDS = "biufcU"  # dtype kinds that are plain bytes: booleans, numbers, text

_MEMBER = re.compile(r"(header\.json|a(0|[1-9][0-9]*))\.npy", re.ASCII)
_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]*_", re.ASCII)
# The only opening that numpy.save writes for plain arrays; reading it needs no evaluation.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|][a-zA-Z][0-9]{1,9})', 'fortran_order': (?:True|False), "
    rb"'shape': \(((?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \} *\n",
    re.DOTALL,
)
_CLASS = re.compile(r"([a-z]+)\.([A-Za-z][A-Za-z0-9_]*)", re.ASCII)
# How the readers of zip, npy and JSON say that their input is broken.
_DAMAGE = (ValueError, TypeError, RuntimeError, EOFError, OSError, struct.error, zipfile.BadZipFile)


class BadFile(ValueError):
    """The file is not one that :func:`save` wrote; nothing of it was used."""


def save(learner: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted learner to ``path``; a file already there is replaced only when the new one is complete.

    Stored are the constructor's parameters and the fitted attributes (names that end in ``_``). They may be None,
    booleans, numbers, strings, arrays of those, lists, tuples, dicts, nested learners, and frozen dataclasses that the
    learner's system makes public. Anything else (a function, a generator of random numbers) is a TypeError that says
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
    body = _encode(learner, arrays, type(learner).__name__, 0)
    header = {"format": FORMAT, "version": VERSION, "attnlab": __version__, "learner": body}
    text = json.dumps(header, allow_nan=False).encode()
    if len(text) > MAX_HEADER:
        raise ValueError(f"{type(learner).__name__} holds {len(text)} bytes outside arrays; keep long lists as arrays")
    _write(Path(path), {"header.json": np.frombuffer(text, np.uint8), **arrays})


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> BaseEstimator:
    """Read a learner that :func:`save` wrote; its predictions are those of the learner that was saved.

    A file that is damaged, larger than ``max_bytes``, of another format version, or that names anything but public
    classes and fitted attributes raises :class:`BadFile`. All sizes are checked before memory is allocated.
    """
    with open(path, "rb") as file:
        try:
            return _read(file, max_bytes)
        except _DAMAGE as problem:
            reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
            raise BadFile(f"{os.fspath(path)} is not a learner saved by attnlab: {reason}") from problem


def _write(path: Path, members: Mapping[str, np.ndarray]) -> None:
    """All members to a neighbour of ``path``, then one rename."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(draft, "xb") as file:
            np.savez(file, **members)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _read(file: IO[bytes], max_bytes: int) -> BaseEstimator:
    size = file.seek(0, os.SEEK_END)
    if size > max_bytes:
        raise BadFile(f"{size} bytes are more than max_bytes={max_bytes}")
    with zipfile.ZipFile(file) as archive:
        arrays = _Arrays(archive, size)
        learner = _decode(_header(arrays), arrays, 0)
    arrays.finish()
    if not isinstance(learner, BaseEstimator):
        raise BadFile(f"it holds a {type(learner).__name__}")
    return learner


def _encode(value: Any, arrays: dict[str, np.ndarray], where: str, depth: int) -> Any:
    """``value`` as JSON; arrays go to ``arrays``. ``where`` is the place to name in an error."""
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if depth > MAX_DEPTH:
        raise ValueError(f"{where[:80]}… is nested more than {MAX_DEPTH} deep, or contains itself")

    def each(items: Mapping[str, Any]) -> dict[str, Any]:
        return {k: _encode(v, arrays, f"{where}.{k}", depth + 1) for k, v in items.items()}

    def listed(items: Iterable[Any]) -> list[Any]:
        return [_encode(v, arrays, f"{where}[{i}]", depth + 1) for i, v in enumerate(items)]

    if kind is float:
        return {"$": "float", "value": str(value)}
    if kind is list:
        return listed(value)
    if kind is tuple:
        return {"$": "tuple", "items": listed(value)}
    if kind is dict:
        return {"$": "dict", "items": [listed(pair) for pair in value.items()]}
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        return {"$": "scalar", "dtype": value.dtype.str, "hex": value.tobytes().hex()}
    if kind is np.ndarray and value.dtype.kind in KINDS:
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"$": "array", "name": name, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, BaseEstimator):
        parts = {"params": each(value.get_params(deep=False)), "fitted": each(_fitted(value, where))}
        return {"$": "estimator", "class": _class_name(kind, where), **parts}
    if _is_frozen_dataclass(kind):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return {"$": "dataclass", "class": _class_name(kind, where), "fields": each(fields)}
    described = f"an array of dtype {value.dtype}" if kind is np.ndarray else f"a {kind.__module__}.{kind.__qualname__}"
    raise TypeError(
        f"{where} is {described}, which cannot be saved; what can: None, booleans, numbers, strings, NumPy arrays of "
        "those, lists, tuples, dicts, learners and public frozen dataclasses"
    )


def _decode(value: Any, arrays: _Arrays, depth: int) -> Any:
    """The inverse of :func:`_encode`; trusts nothing."""
    if value is None or isinstance(value, int | float | str):
        return value
    if depth > MAX_DEPTH:
        raise BadFile(f"nested more than {MAX_DEPTH} deep")

    def each(items: Any) -> dict[str, Any]:
        return {k: _decode(v, arrays, depth + 1) for k, v in _expect(dict, items).items()}

    def listed(items: Any) -> list[Any]:
        return [_decode(v, arrays, depth + 1) for v in _expect(list, items)]

    match value:
        case list():
            return listed(value)
        case {"$": "float", "value": ("nan" | "inf" | "-inf") as text, **rest} if not rest:
            return float(text)
        case {"$": "tuple", "items": items, **rest} if not rest:
            return tuple(listed(items))
        case {"$": "dict", "items": items, **rest} if not rest:
            return dict(map(listed, _expect(list, items)))
        case {"$": "scalar", "dtype": str(dtype), "hex": str(digits), **rest} if not rest:
            return np.ndarray((), _plain_dtype(dtype), buffer=bytes.fromhex(digits))[()]
        case {"$": "array", "name": str(name), "dtype": str(dtype), "shape": list(shape), **rest} if not rest:
            return arrays.take(name, dtype, shape)
        case {"$": "estimator", "class": str(name), "params": params, "fitted": fitted, **rest} if not rest:
            return _estimator(_public_class(name), each(params), each(fitted))
        case {"$": "dataclass", "class": str(name), "fields": fields, **rest} if not rest:
            return _dataclass(_public_class(name), each(fields))
    raise BadFile(f"its header holds an unknown kind of value: {str(value)[:80]}")


def _estimator(cls: Any, params: dict[str, Any], fitted: dict[str, Any]) -> BaseEstimator:
    """A learner with these parameters and fitted attributes, and no others."""
    if not issubclass(cls, BaseEstimator):
        raise BadFile(f"{cls.__name__} is not a learner")
    names = set(cls._get_param_names())
    for name in params.keys() - names:
        raise BadFile(f"{cls.__name__} has no parameter {name[:80]!r}")
    for name in fitted:
        if not _FITTED.fullmatch(name) or _is_computed(cls, name) or name in names:
            raise BadFile(f"{name[:80]!r} is not a fitted attribute of {cls.__name__}")
    learner = _construct(cls, params)
    vars(learner).update(fitted)
    return learner


def _dataclass(cls: type, fields: dict[str, Any]) -> Any:
    if not _is_frozen_dataclass(cls):
        raise BadFile(f"{cls.__name__} is not a frozen dataclass")
    return _construct(cls, fields)


def _construct(cls: type, arguments: dict[str, Any]) -> Any:
    try:
        return cls(**arguments)
    except Exception as problem:  # a constructor may refuse its arguments in any way
        raise BadFile(f"{cls.__name__} does not take its values: {problem}") from problem


def _fitted(learner: BaseEstimator, where: str) -> dict[str, Any]:
    """The learned attributes: all public ones that are no parameters, which by contract end in ``_``."""
    params = learner.get_params(deep=False)
    found = {
        name: value
        for name, value in vars(learner).items()
        if name not in params and not name.startswith("_") and not _is_computed(type(learner), name)
    }
    for name in found:
        if not _FITTED.fullmatch(name):
            raise TypeError(f"{where}.{name} is neither a parameter nor a fitted attribute, whose name ends in '_'")
    return found


def _is_computed(cls: type, name: str) -> bool:
    """Whether the class itself computes this name (a method, a property, a cached value)."""
    return hasattr(type(inspect.getattr_static(cls, name, None)), "__get__")


def _is_frozen_dataclass(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and bool(cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _class_name(cls: type, where: str) -> str:
    """``system.Name`` of a public class."""
    name = ".".join([*cls.__module__.split(".")[1:2], cls.__qualname__])
    with contextlib.suppress(BadFile):
        if _public_class(name) is cls:
            return name
    raise TypeError(f"{where} is a {cls.__module__}.{cls.__qualname__}; only the systems' public classes can be saved")


def _public_class(name: str) -> type:
    """The class that a system makes public under ``system.Name``."""
    parts = _CLASS.fullmatch(name)
    if parts and parts[1] in registry.SYSTEMS:
        system = registry.system(parts[1])
        found = getattr(system, parts[2]) if parts[2] in system.__all__ else None
        if isinstance(found, type):
            return found
    raise BadFile(f"unknown class {name[:80]!r}")


def _plain_dtype(text: str) -> np.dtype:
    """A dtype whose values are plain bytes; text such as '<f8' only."""
    dtype = np.dtype(text)
    if dtype.kind not in KINDS or dtype.str != text:
        raise BadFile(f"dtype {text[:80]!r} is not allowed")
    return dtype


def _expect(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise BadFile(f"its header holds {str(value)[:80]} in place of a {kind.__name__}")
    return value


def _header(arrays: _Arrays) -> Any:
    """The encoded learner, from a header of this format and version."""
    raw = arrays.read("header.json", limit=MAX_HEADER)
    if raw.dtype != np.uint8:
        raise BadFile("its header is not text")
    header = _expect(dict, json.loads(raw.tobytes(), parse_constant=_refuse_constant))
    if header.get("format") != FORMAT:
        raise BadFile(f"its format is {str(header.get('format'))[:80]!r}")
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise BadFile(f"its format version is {str(header.get('version'))[:80]}, this attnlab reads {VERSION}")
    return header.get("learner")


def _refuse_constant(text: str) -> None:
    raise BadFile(f"its header holds {text}")


class _Arrays:
    """The members of an archive, each read at most once and only after its size is known to be true."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.archive = archive
        self.left: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            if not _MEMBER.fullmatch(info.orig_filename) or info.filename in self.left:
                raise BadFile(f"it holds a member {info.orig_filename[:80]!r}")
            # Stored members cannot be larger than the file, so no file unpacks to more than its own size.
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
                raise BadFile(f"its member {info.filename!r} is compressed or encrypted")
            self.left[info.filename] = info
        if sum(info.file_size for info in self.left.values()) > size:
            raise BadFile("its members claim more bytes than the file has")

    def take(self, name: str, dtype: str, shape: list[Any]) -> np.ndarray:
        """An array that the header describes."""
        array = self.read(name)
        if array.dtype != _plain_dtype(dtype) or list(array.shape) != shape:
            raise BadFile(f"array {name} is {array.dtype} {array.shape}, not {dtype[:80]} {str(shape)[:80]}")
        return array

    def read(self, name: str, limit: int | None = None) -> np.ndarray:
        """A member, once its own header, its dtype and its length agree."""
        info = self.left.pop(f"{name}.npy", None)
        if info is None:
            raise BadFile(f"member {name[:80]!r} is missing or used twice")
        with self.archive.open(info) as member:
            head = _NPY.match(member.read(1024))
        if not head or head.end() != 10 + int.from_bytes(head[1], "little"):
            raise BadFile(f"member {name} is not a plain array")
        dtype, shape = _plain_dtype(head[2].decode()), [int(n) for n in head[3].replace(b",", b" ").split()]
        length = info.file_size - head.end()
        if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != length:
            raise BadFile(f"member {name} of {length} bytes claims to be {dtype} of shape {shape}")
        if limit is not None and length > limit:
            raise BadFile(f"member {name} has {length} bytes, at most {limit} are allowed")
        with self.archive.open(info) as member:
            array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return array

    def finish(self) -> None:
        """Nothing may be left that the header does not mention."""
        if self.left:
            raise BadFile(f"member {min(self.left)!r} is not mentioned in the header")
