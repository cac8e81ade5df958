"""The strength of hardmax between and beyond its nodes."""

import numpy as np
import pytest

from attnlab.aim.channels.hardmax_strength import pair_scale_function, scale_function


@pytest.mark.parametrize(("legacy", "order"), [(False, 1), (True, 2)])
def test_the_strength_falls_by_its_power_as_far_as_numbers_go(legacy, order):
    near, far = scale_function(2, legacy=legacy)(np.array([1e-12, 1e-50]))
    assert far / near == pytest.approx(10.0 ** (-38 * order / 2), rel=1e-5)
    assert near == pytest.approx(pair_scale_function(legacy)(1e-12), rel=1e-6)


def test_two_instances_agree_to_the_last_digit():
    tau = np.linspace(0, 1, 50)
    first = scale_function.__wrapped__(2)(tau)
    np.testing.assert_array_equal(scale_function.__wrapped__(2)(tau), first)
