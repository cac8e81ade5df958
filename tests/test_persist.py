import dataclasses
import functools
import io
import json
import os
import pickle
import types
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError

from attnlab import __version__, persist
from attnlab.persist import BadFile, load, save


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What a fit can say about itself."""

    bound: float
    rows: np.ndarray
    note: str | None = None

    @functools.cached_property
    def doubled(self) -> float:
        return 2 * self.bound


@dataclasses.dataclass(frozen=True)
class Picky:
    level: float

    def __post_init__(self) -> None:
        if not self.level.is_integer():
            raise KeyError(self.level)


@dataclasses.dataclass
class Mutable:
    level: float


class Mean(RegressorMixin, BaseEstimator):
    """Predicts the mean of y; carries whatever attribute a test gives it."""

    total_ = 0  # a plain default of the class is no obstacle to a fitted value

    def __init__(self, shift: Any = 0.0, base: Any = None) -> None:
        self.shift = shift
        self.base = base

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Mean":
        self.mean_ = np.mean(y, axis=0)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.mean_ + self.shift)

    @property
    def offset_(self) -> float:
        return float(self.mean_)

    @functools.cached_property
    def cached_(self) -> float:
        return 2 * float(self.mean_)


class Private(Mean):
    pass


def function(x: float) -> float:
    return x


@pytest.fixture(autouse=True)
def toy_system(monkeypatch):
    """The system ``slr`` replaced by a toy one, whose public names are known here."""
    system = types.ModuleType("attnlab.slr")
    system.__all__ = ["Mean", "Certificate", "Picky", "Mutable", "function", "theory", "rng"]
    for item in (Mean, Private, Certificate, Picky, Mutable, function):
        monkeypatch.setattr(item, "__module__", "attnlab.slr.learners")
        setattr(system, item.__name__, item)
    system.theory, system.rng = types.ModuleType("theory"), np.random.default_rng(0)
    monkeypatch.setattr(persist.registry, "system", lambda name: {"slr": system}[name])


def fitted(**attributes: Any) -> Mean:
    learner = Mean().fit(np.zeros((4, 2, 3)), np.array([1.0, 2.0, 3.0, 5.0]))
    vars(learner).update(attributes)
    return learner


def round_trip(value, tmp_path):
    save(fitted(value_=value), tmp_path / "learner.npz")
    return load(tmp_path / "learner.npz").value_


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


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


# What is stored comes back.


def test_predictions_are_identical_after_loading(tmp_path, seed):
    rng = np.random.default_rng(seed)
    learner = Mean(shift=1 / 3).fit(X := rng.standard_normal((7, 2, 3)), rng.standard_normal(7))
    save(learner, tmp_path / "learner.npz")
    again = load(tmp_path / "learner.npz")
    assert type(again) is Mean
    assert again.get_params() == learner.get_params()
    assert np.array_equal(again.predict(X), learner.predict(X))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2**80,
        0.1,
        -0.0,
        "Σ \ud800 \0",
        "",
        [1, [2.5, None], []],
        (1, (2,), [3]),
        {"a": 1, 2: (3,), None: [4], (1, "b"): {}, 0.5: True},
        {"$": "estimator"},
        float("inf"),
        -float("inf"),
    ],
    ids=repr,
)
def test_plain_values_come_back_equal_and_of_the_same_type(value, tmp_path):
    again = round_trip(value, tmp_path)
    assert again == value
    assert repr(again) == repr(value)


KEYS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    KEYS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_any_nesting_of_plain_values_comes_back(value, tmp_path_factory):
    again = round_trip(value, tmp_path_factory.getbasetemp())
    assert repr(again) == repr(value)


def test_nan_comes_back(tmp_path):
    again = round_trip([float("nan"), np.float32("nan")], tmp_path)
    assert np.isnan(again).all()
    assert [type(x) for x in again] == [float, np.float32]


@pytest.mark.parametrize(
    "scalar",
    [
        np.float64(1 / 3),
        np.float32(1e-40),
        np.int8(-5),
        np.uint64(2**64 - 1),
        np.bool_(True),
        np.complex128(1 - 2j),
        np.str_("läge"),
        np.str_(""),
    ],
    ids=repr,
)
def test_numpy_scalars_keep_their_type(scalar, tmp_path):
    again = round_trip(scalar, tmp_path)
    assert type(again) is type(scalar)
    assert again == scalar


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
        np.array(3.5),
        np.zeros((0, 4)),
        np.array([np.nan, np.inf, -0.0], dtype=np.float16),
        np.array([[True], [False]]),
        np.array(["ab", "Σ", ""]),
        np.array([1 + 2j], dtype=np.complex64),
        np.array([1, 2], dtype=">i4"),
        np.zeros((1,) * 20),
    ],
    ids=lambda a: f"{a.dtype.str}{a.shape}",
)
def test_arrays_keep_dtype_shape_and_bits(array, tmp_path):
    again = round_trip(array, tmp_path)
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()
    assert again.flags.writeable
    assert again.flags.f_contiguous == np.ascontiguousarray(array).flags.f_contiguous or array.flags.f_contiguous


def test_nested_learners_and_dataclasses_come_back(tmp_path):
    inner = Mean(shift=2.0)
    learner = Mean(base=inner, shift=np.arange(2)).fit(np.zeros((2, 1, 1)), np.array([1.0, 3.0]))
    learner.parts_ = [fitted(), {"certificate": Certificate(0.25, np.eye(2))}]
    _ = learner.parts_[1]["certificate"].doubled  # a cached value is not part of the state
    save(learner, tmp_path / "learner.npz")
    again = load(tmp_path / "learner.npz")
    assert isinstance(again.base, Mean)
    assert again.base.shift == 2.0
    assert again.parts_[0].mean_ == learner.parts_[0].mean_
    certificate = again.parts_[1]["certificate"]
    assert (certificate.bound, certificate.note, certificate.doubled) == (0.25, None, 0.5)
    assert np.array_equal(certificate.rows, np.eye(2))


def test_class_defaults_are_overridden_and_computed_attributes_are_not_stored(tmp_path):
    learner = fitted(total_=7, _scratch=function)
    assert learner.cached_ == 5.5
    save(learner, tmp_path / "learner.npz")
    again = load(tmp_path / "learner.npz")
    assert again.total_ == 7
    assert again.cached_ == 5.5
    assert "_scratch" not in vars(again)
    assert list(header_of(tmp_path / "learner.npz")["learner"]["fitted"]) == ["mean_", "total_"]


def test_the_file_is_an_npz_with_a_json_header_and_the_same_bytes_each_time(tmp_path):
    for name in ("a.npz", "b.npz"):
        save(fitted(weights_=np.arange(3.0)), tmp_path / name)
    header = header_of(tmp_path / "a.npz")
    assert (header["format"], header["version"], header["attnlab"]) == ("attnlab learner", 1, __version__)
    assert header["learner"]["class"] == "slr.Mean"
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


# What cannot be stored is named, and the file that was there stays.


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (function, "Mean.value_ is a builtins.function"),
        (np.random.default_rng(0), "Generator"),
        ([1, {"k": {3}}], r"Mean.value_\[1\]\[1\] is a builtins.set"),
        (np.array([None]), "array of dtype object"),
        (np.zeros(2, "f8,i4"), "array of dtype"),
        (np.datetime64("2020-01-01"), "datetime64"),
        (np.ma.masked_array([1.0]), "MaskedArray"),
        (b"bytes", "builtins.bytes"),
        (1j, "builtins.complex"),
        (Mutable(1.0), "Mutable"),
        (Private(), "only the systems' public classes"),
        (RegressorMixin(), "RegressorMixin"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_cannot_be_saved_is_named_and_the_old_file_stays(value, words, tmp_path):
    path = tmp_path / "learner.npz"
    save(fitted(), path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=words):
        save(fitted(value_=value), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["learner.npz"]


def test_a_callable_parameter_is_named(tmp_path):
    learner = Mean(shift=function).fit(np.zeros((1, 1, 1)), np.zeros(1))
    with pytest.raises(TypeError, match=r"Mean\.shift is a builtins\.function"):
        save(learner, tmp_path / "learner.npz")


def test_public_attributes_outside_the_contract_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"Mean\.extra is neither a parameter nor a fitted attribute"):
        save(fitted(extra=1), tmp_path / "learner.npz")


def test_an_unfitted_learner_and_a_foreign_one_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save(Mean(), tmp_path / "learner.npz")

    class Foreign(Mean):
        pass

    with pytest.raises(TypeError, match="only the systems' public classes"):
        save(Foreign().fit(np.zeros((1, 1, 1)), np.zeros(1)), tmp_path / "learner.npz")


def test_structures_that_contain_themselves_are_refused(tmp_path):
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        save(fitted(loop_=loop), tmp_path / "learner.npz")


def test_too_much_outside_arrays_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(persist, "MAX_HEADER", 1000)
    with pytest.raises(ValueError, match="keep long lists as arrays"):
        save(fitted(trace_=[0.5] * 1000), tmp_path / "learner.npz")


def test_a_failing_disk_keeps_the_old_file_and_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "learner.npz"
    save(fitted(old_=1), path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(persist.os, step, full)
            with pytest.raises(OSError, match="No space"):
                save(fitted(new_=2), path)
        assert load(path).old_ == 1
        assert os.listdir(tmp_path) == ["learner.npz"]


def test_saving_replaces_the_old_file(tmp_path):
    path = tmp_path / "learner.npz"
    save(fitted(value_=1), path)
    save(fitted(value_=2), str(path))
    assert load(str(path)).value_ == 2


# Hostile and damaged files are refused, and nothing in them runs.


class Bomb:
    def __init__(self, path: os.PathLike[str]) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (os.fspath(self.path),)


def test_a_pickle_in_a_member_is_refused_and_does_not_run(tmp_path):
    path, crater = tmp_path / "bad.npz", tmp_path / "crater"
    content = npy(np.array([Bomb(crater)], dtype=object), allow_pickle=True)
    reference = {"$": "array", "name": "a0", "dtype": "|O", "shape": [1]}
    forge(path, envelope(estimator(fitted={"mean_": reference})), **{"a0.npy": content})
    refused(path, "not a plain array")
    path.write_bytes(pickle.dumps(Bomb(crater)))
    refused(path)
    # The same header over an honest dtype, with the pickle as its bytes.
    reference["dtype"] = "|u1"
    disguised = npy(np.frombuffer(pickle.dumps(Bomb(crater)), np.uint8))
    forge(path, envelope(estimator(fitted={"mean_": reference})), **{"a0.npy": disguised})
    refused(path)
    assert not crater.exists()


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "slr.Private",
        "slr.Absent",
        "slr.function",
        "slr.theory",
        "slr.rng",
        "slr.__all__",
        "slr.theory.Mean",
        "slr",
        "",
        "lab.Figure",
        "sklearn.linear_model.Ridge",
        "slr.Mean\n",
        "slr.Certificate",
        "slr.Picky",
    ],
)
def test_only_public_learners_are_instantiated(name, tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator(name, params={"level": 1.0})))
    refused(tmp_path / "bad.npz", "not a learner saved by attnlab")


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("slr.Mutable", {"level": 1.0}, "not a frozen dataclass"),
        ("slr.Mean", {}, "not a frozen dataclass"),
        ("slr.Picky", {"level": 0.5}, "does not take its values"),
        ("slr.Picky", {"level": None}, "does not take its values"),
        ("slr.Picky", {"surprise": 1}, "does not take its values"),
    ],
)
def test_only_public_frozen_dataclasses_are_values(name, fields, words, tmp_path):
    value = {"$": "dataclass", "class": name, "fields": fields}
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={"value_": value})))
    refused(tmp_path / "bad.npz", words)


@pytest.mark.parametrize(
    "name",
    [
        "predict",
        "_hidden_",
        "__class__",
        "__dict__",
        "mean",
        "fit__x",
        "offset_",
        "cached_",
        "a b_",
        "_",
        "ä_",
        "shift",
    ],
)
def test_only_fitted_names_are_set(name, tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={name: 1})))
    refused(tmp_path / "bad.npz", "is not a fitted attribute")


def test_unknown_parameters_are_refused(tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator(params={"shif": 1})))
    refused(tmp_path / "bad.npz", "no parameter 'shif'")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "format version is 2, this attnlab reads 1"),
        ({"version": True}, "format version"),
        ({"version": None}, "format version"),
        ({"format": "something else"}, "its format is 'something else'"),
        ({"learner": 3}, "holds a int"),
        ({"learner": [estimator()]}, "holds a list"),
        ({"learner": {"$": "pickle", "data": ""}}, "unknown kind of value"),
        ({"learner": {"a": 1}}, "unknown kind of value"),
        ({"learner": estimator() | {"extra": 1}}, "unknown kind of value"),
        ({"learner": estimator() | {"params": [1]}}, "in place of a dict"),
        ({"learner": estimator(params={"shift": {"$": "tuple", "items": "ab"}})}, "in place of a list"),
        ({"learner": estimator(params={"shift": {"$": "dict", "items": [[[1], 2]]}})}, "unhashable"),
        ({"learner": estimator(params={"shift": {"$": "dict", "items": [[1, 2, 3]]}})}, ""),
        ({"learner": estimator(params={"shift": {"$": "float", "value": "1e9"}})}, "unknown kind of value"),
        ({"learner": estimator(params={"shift": {"$": "scalar", "dtype": "|O", "hex": "00" * 8}})}, "not allowed"),
        ({"learner": estimator(params={"shift": {"$": "scalar", "dtype": "<f8", "hex": "00"}})}, "too small"),
        ({"learner": estimator(params={"shift": {"$": "scalar", "dtype": "<U99999999", "hex": ""}})}, "too small"),
    ],
)
def test_a_wrong_header_is_refused(changes, words, tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator()) | changes)
    refused(tmp_path / "bad.npz", words)


@pytest.mark.parametrize(
    "header", [b"", b"\xff\xfe", b"{", b"[1]", b'{"format": NaN}', b"null", b"{'format': 1}", b"9" * 5000]
)
def test_a_header_that_is_not_the_right_json_is_refused(header, tmp_path):
    forge(tmp_path / "bad.npz", header)
    refused(tmp_path / "bad.npz")


@pytest.mark.parametrize("depth", [60, 900, 200_000])
def test_deep_nesting_is_refused(depth, tmp_path):
    text = json.dumps(envelope("?")).replace('"?"', "[" * depth + "]" * depth).encode()
    forge(tmp_path / "bad.npz", text)
    refused(tmp_path / "bad.npz", "nested")


def test_a_missing_header_and_a_missing_array_are_refused(tmp_path):
    forge(tmp_path / "bad.npz", **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz", "'header.json' is missing")
    reference = {"$": "array", "name": "a0", "dtype": "<f8", "shape": [2]}
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={"mean_": reference})))
    refused(tmp_path / "bad.npz", "'a0' is missing")
    twice = envelope(estimator(fitted={"mean_": reference, "more_": reference}))
    forge(tmp_path / "bad.npz", twice, **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz", "used twice")


def test_members_that_the_header_does_not_mention_are_refused(tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator()), **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz", "not mentioned")


@pytest.mark.parametrize(("dtype", "shape"), [("<f4", [2]), ("<f8", [1, 2]), ("<f8", ["2"]), ("float64", [2])])
def test_an_array_unlike_its_description_is_refused(dtype, shape, tmp_path):
    reference = {"$": "array", "name": "a0", "dtype": dtype, "shape": shape}
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={"mean_": reference})), **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    "name",
    ["../a0.npy", "/a0.npy", "a0.npy/", "C:a0.npy", "a0", "a00.npy", "a0.npy\0.txt", "evil.py", "A0.npy", "a٣.npy"],
)
def test_other_member_names_are_refused(name, tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator()), **{name: npy(np.zeros(2))})
    refused(tmp_path / "bad.npz")


def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        archive.writestr("a0.npy", npy(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a0.npy", npy(np.ones(1)))
    refused(tmp_path / "bad.npz", "holds a member 'a0.npy'")


def preamble(descr: str, shape: str, length: int | None = None) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + (length or len(text)).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        preamble("'<f8'", "(1000000000000,)") + bytes(16),
        preamble("'<f8'", "(3,)") + bytes(16),
        preamble("'<f8'", "(1,)") + bytes(16),
        preamble("'<f8'", "(-1, -2)") + bytes(16),
        preamble("'<f8'", "(4294967296, 4294967296, 4294967296)"),
        preamble("'<f8'", "(0, 9999999999999999999)"),
        preamble("'<U0'", "(1000000000000,)"),
        preamble("'<U999999999'", "(1,)") + bytes(16),
        preamble("'|O'", "(2,)") + bytes(16),
        preamble("'|V8'", "(2,)") + bytes(16),
        preamble("'<M8'", "(2,)") + bytes(16),
        preamble("[('a', '<f8')]", "(2,)") + bytes(16),
        preamble("__import__('os').getcwd()", "(2,)") + bytes(16),
        preamble("'<f8'", "(2,)", length=9) + bytes(16),
        preamble("'<f8'", "(" + "1" * 5000 + ",)") + bytes(16),
        preamble("'<f8'", "(" * 900 + ")" * 900) + bytes(16),
        preamble("'<f8'", "(2, )").replace(b"NUMPY\x01", b"NUMPY\x03") + bytes(16),
        b"\x93NUMPY",
        b"",
        bytes(200),
    ],
    ids=range(20),
)
def test_arrays_whose_claims_do_not_fit_their_bytes_are_refused_before_they_are_read(content, tmp_path, monkeypatch):
    claimed = [int(1e12)]
    reference = {"$": "array", "name": "a0", "dtype": "<f8", "shape": claimed}
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={"mean_": reference})), **{"a0.npy": content})
    read, read_array = [], np.lib.format.read_array

    def watched(member, **options):
        read.append(member.name)
        return read_array(member, **options)

    monkeypatch.setattr(np.lib.format, "read_array", watched)
    refused(tmp_path / "bad.npz")
    assert read == ["header.json.npy"]


def test_the_largest_file_is_a_parameter(tmp_path):
    path = tmp_path / "learner.npz"
    save(fitted(weights_=np.zeros(1000)), path)
    size = path.stat().st_size
    assert load(path, max_bytes=size).weights_.shape == (1000,)
    refused(path, f"{size} bytes are more than max_bytes={size - 1}", max_bytes=size - 1)


def test_compressed_members_are_refused_so_that_no_file_unpacks_to_more_than_itself(tmp_path):
    reference = {"$": "array", "name": "a0", "dtype": "|u1", "shape": [10**7]}
    header = envelope(estimator(fitted={"mean_": reference}))
    forge(tmp_path / "bad.npz", header, compression=zipfile.ZIP_DEFLATED, **{"a0.npy": npy(np.zeros(10**7, np.uint8))})
    assert (tmp_path / "bad.npz").stat().st_size < 10**5
    refused(tmp_path / "bad.npz", "compressed")


def test_overlapping_members_are_refused(tmp_path):
    """Two entries of the directory that point at the same bytes, each as large as the file."""
    path = tmp_path / "bad.npz"
    forge(path, envelope(estimator()), **{"a0.npy": npy(np.zeros(1000)), "a1.npy": npy(np.zeros(1))})
    raw = bytearray(path.read_bytes())
    entry = raw.rindex(b"a1.npy") - 46
    first = raw.rindex(b"a0.npy") - 46
    raw[entry + 16 : entry + 28] = raw[first + 16 : first + 28]  # CRC and both sizes
    raw[entry + 42 : entry + 46] = raw[first + 42 : first + 46]  # offset
    path.write_bytes(raw)
    refused(path, "more bytes than the file has")


def test_a_long_header_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(persist, "MAX_HEADER", 100)
    forge(tmp_path / "bad.npz", envelope(estimator()))
    refused(tmp_path / "bad.npz", "at most 100")


def test_every_truncation_and_any_flipped_byte_of_the_data_is_noticed(tmp_path, seed):
    path = tmp_path / "learner.npz"
    weights = np.random.default_rng(seed).standard_normal(20)
    save(fitted(weights_=weights), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path)
    start = whole.index(weights.tobytes())
    for place in range(start, start + weights.nbytes, 11):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(path, "CRC")


def test_any_damage_ends_in_the_same_error_or_in_the_same_learner(tmp_path, seed):
    path = tmp_path / "learner.npz"
    save(fitted(weights_=np.arange(5.0), note_=["a", {"b": (1,)}]), path)
    whole, rng = path.read_bytes(), np.random.default_rng(seed)
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            learner = load(path)
        except BadFile:
            continue
        # Bytes that no reader looks at (time stamps, host system) may change.
        assert np.array_equal(learner.weights_, np.arange(5.0))
        assert learner.note_ == ["a", {"b": (1,)}]


def test_missing_files_and_folders_are_ordinary_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npz")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        save(fitted(), tmp_path / "absent" / "learner.npz")
