"""A channel of one's own."""

import pytest

from attnlab.aim import theory
from attnlab.aim.channels import Softmax, UserChannel


def symmetrised(h, rng):
    y = Softmax().output(h)
    return (y + y.swapaxes(1, 2)) / 2


def no_density(y, h):
    raise AssertionError("prediction errors need no density")


def test_prediction_error_of_an_output_that_is_not_row_wise():
    found = theory.generalization_error(0.4, 0.5, 2, UserChannel(symmetrised, no_density))
    # 0.1010 by an independent Monte Carlo over whole outputs, four digits
    assert float(found) == pytest.approx(0.1010, abs=4 * found.error + 2e-4)
    assert 0 < found.error < 1e-3


@pytest.mark.parametrize("predictor", ["bayes", "plug-in"])
def test_prediction_error_of_a_random_output(predictor):
    noisy = UserChannel(lambda h, rng: h + 0.5 * rng.standard_normal(h.shape), no_density)
    found = theory.generalization_error(0.4, 0.5, 2, noisy, predictor=predictor)
    # T (T + 1) V of the indices, and 1/4 for each of the four entries
    assert float(found) == pytest.approx(0.4 * 6 + 1.0, abs=4 * found.error)
