"""What is stored comes back."""

import numpy as np
import pytest
from forgery import header_of
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_learners import Certificate, Mean, fitted, function

from attnlab.persist import load, save


def round_trip(value, tmp_path):
    save(fitted(value_=value), tmp_path / "learner.npz")
    return load(tmp_path / "learner.npz").value_


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
