"""Options of the machine are supported or refused, never ignored."""

import pytest

from attnlab.common.compute import Compute


def test_an_unsupported_option_is_refused_by_name():
    assert Compute(dtype="float64").supports("x", "dtype").dtype == "float64"
    with pytest.raises(ValueError, match=r"compute\.memory is not supported by str"):
        Compute(memory=1e9).supports("x", "dtype")


@pytest.mark.parametrize(
    "wrong", [{"device": "tpu"}, {"dtype": "int"}, {"precision": "low"}, {"devices": 0}, {"memory": -1}]
)
def test_wrong_values_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Compute(**wrong)
