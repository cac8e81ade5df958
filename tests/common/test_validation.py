import math

import numpy as np
import pytest

from attnlab.common.validation import finite_array, integer, nonnegative, one_of, positive, real


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.25), np.int64(1), True + 0])
def test_numbers_become_floats(value):
    assert real("x", value) == float(value)
    assert type(real("x", value)) is float


@pytest.mark.parametrize("value", [True, np.bool_(False), "1", None, 1j, [1.0], np.array([1.0])])
def test_what_is_no_number_is_a_type_error_that_names_it(value):
    with pytest.raises(TypeError, match=r"rho must be a number in \(-inf, inf\), got "):
        real("rho", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_never_numbers_in_an_interval(value):
    with pytest.raises(ValueError, match="rho must be"):
        real("rho", value)


@pytest.mark.parametrize(
    ("options", "inside", "outside", "allowed"),
    [
        ({"low": 0, "high": 1}, [0, 0.5, 1], [-1e-9, 1.1], "[0, 1]"),
        ({"low": 0, "high": 1, "open_low": True, "open_high": True}, [0.5], [0, 1], "(0, 1)"),
        ({"low": 0, "open_low": True}, [1e-300], [0, -0.0], "(0, inf)"),
        ({"high": 2.5}, [2.5, -1e9], [2.6], "(-inf, 2.5]"),
    ],
)
def test_the_ends_of_an_interval_count_when_it_is_closed(options, inside, outside, allowed):
    for value in inside:
        assert real("x", value, **options) == value
    for value in outside:
        with pytest.raises(ValueError) as problem:
            real("x", value, **options)
        assert str(problem.value) == f"x must be a number in {allowed}, got {value!r}"


def test_positive_and_nonnegative_differ_at_zero():
    assert nonnegative("ridge", 0) == 0.0
    with pytest.raises(ValueError, match=r"gamma must be a number in \(0, inf\), got 0"):
        positive("gamma", 0)


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3)])
def test_integers_become_ints(value):
    assert integer("d", value, low=3, high=3) == 3
    assert type(integer("d", value)) is int


@pytest.mark.parametrize("value", [3.0, "3", True, None, np.float64(3)])
def test_what_is_no_integer_is_a_type_error(value):
    with pytest.raises(TypeError, match="d must be an integer, got "):
        integer("d", value)


def test_integer_bounds_are_said():
    with pytest.raises(ValueError, match="L must be an integer >= 2, got 1"):
        integer("L", 1, low=2)
    with pytest.raises(ValueError, match="L must be an integer <= 4, got 5"):
        integer("L", 5, high=4)
    with pytest.raises(ValueError, match="L must be an integer >= 2 and <= 4, got 5"):
        integer("L", 5, low=2, high=4)


def test_one_of_suggests_the_nearest_name():
    assert one_of("channel", "hardmax", ("softmax", "hardmax")) == "hardmax"
    with pytest.raises(
        ValueError, match="channel must be one of 'softmax', 'hardmax', got 'sofmax'; did you mean 'sof"
    ):
        one_of("channel", "sofmax", ("softmax", "hardmax"))


@pytest.mark.parametrize("value", ["zzz", None, 3, np.zeros(2), ["softmax"]])
def test_one_of_refuses_anything_else_without_a_suggestion(value):
    with pytest.raises(ValueError, match="channel must be one of") as problem:
        one_of("channel", value, iter(["softmax", "hardmax"]))
    assert "did you mean" not in str(problem.value) or isinstance(value, list)


def test_finite_arrays_keep_float_precision_and_make_integers_double():
    assert finite_array("X", np.ones(2, np.float32)).dtype == np.float32
    assert finite_array("X", [[1, 2], [3, 4]]).dtype == np.float64
    assert finite_array("X", np.array([True, False])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_arrays_with_nan_or_infinity_are_refused(bad):
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        finite_array("X", [1.0, bad])


@pytest.mark.parametrize("value", [["a"], [1j], [None, 1.0], np.array(["2020"], dtype="M8[Y]")])
def test_arrays_of_other_things_are_type_errors(value):
    with pytest.raises(TypeError, match="X must be an array of real numbers, got dtype"):
        finite_array("X", value)


def test_a_ragged_list_names_the_argument():
    with pytest.raises(ValueError, match=r"X must be an array of real numbers: .*inhomogeneous"):
        finite_array("X", [[1.0], [1.0, 2.0]])


def test_rank_and_shape_are_checked():
    X = np.zeros((2, 3))
    assert finite_array("X", X, ndim=2, shape=(None, 3)) is X
    with pytest.raises(ValueError, match=r"X must have 3 dimensions, got shape \(2, 3\)"):
        finite_array("X", X, ndim=3)
    with pytest.raises(ValueError, match=r"X must have shape \(\*, 4\), got \(2, 3\)"):
        finite_array("X", X, shape=(None, 4))
    with pytest.raises(ValueError, match=r"X must have shape \(6,\), got \(2, 3\)"):
        finite_array("X", X, shape=(6,))
