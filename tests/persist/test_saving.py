"""What cannot be stored is named, and the file that was there stays."""

import os
from typing import Any

import numpy as np
import pytest
from sklearn.base import RegressorMixin
from sklearn.exceptions import NotFittedError
from toy_learners import Mean, Mutable, Private, fitted, function

from attnlab import persist
from attnlab.persist import archive, load, save


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
        (Private(), "only public classes of the systems"),
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

    with pytest.raises(TypeError, match="only public classes of the systems"):
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
            patch.setattr(archive.os, step, full)
            with pytest.raises(OSError, match="No space"):
                save(fitted(new_=2), path)
        assert load(path).old_ == 1
        assert os.listdir(tmp_path) == ["learner.npz"]


def test_saving_replaces_the_old_file(tmp_path):
    path = tmp_path / "learner.npz"
    save(fitted(value_=1), path)
    save(fitted(value_=2), str(path))
    assert load(str(path)).value_ == 2
