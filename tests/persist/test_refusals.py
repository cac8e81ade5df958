"""Headers that no learner wrote are refused, and nothing in them runs."""

import json
import os
import pickle
from typing import Any

import numpy as np
import pytest
from forgery import envelope, estimator, forge, npy, refused


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
