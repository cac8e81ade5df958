"""A channel of one's own."""

import numpy as np
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


def gaussian(y, h):
    return -((y - h) ** 2).sum(axis=(-1, -2))


@pytest.mark.parametrize(
    ("forward", "log_likelihood", "message"),
    [
        (lambda h, rng: h[:, 0], gaussian, "output of forward must have shape"),
        (lambda h, rng: h + np.nan, gaussian, "output of forward contains NaN"),
        (lambda h, rng: h, lambda y, h: -((y - h) ** 2), r"log_density .* must take"),
        (lambda h, rng: h, lambda y, h: np.nan * gaussian(y, h), "log_density .* got NaN"),
    ],
)
def test_functions_that_do_not_fit_are_refused_by_name(forward, log_likelihood, message):
    with pytest.raises(ValueError, match=message):
        theory.mmse(0.1, 0.5, 2, UserChannel(forward, log_likelihood))


@pytest.mark.parametrize("predictor", ["bayes", "plug-in"])
def test_prediction_error_of_a_random_output(predictor):
    noisy = UserChannel(lambda h, rng: h + 0.5 * rng.standard_normal(h.shape), no_density)
    found = theory.generalization_error(0.4, 0.5, 2, noisy, predictor=predictor)
    # T (T + 1) V of the indices, and 1/4 for each of the four entries
    assert float(found) == pytest.approx(0.4 * 6 + 1.0, abs=4 * found.error)
