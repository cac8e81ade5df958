"""The two ways to the error of a layer and its slope."""

import jax
import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.squared_error import compiled, two_tokens


@pytest.mark.parametrize(("n", "d", "m", "outputs"), [(3, 2, 1, 5), (256, 4, 3, 4), (700, 5, 2, 1)])
def test_two_tokens_by_blas_and_by_jax(n, d, m, outputs):
    # fewer rows than a block, whole blocks, and a last block that is cut; tokens that are no signs
    rng = np.random.default_rng(n)
    X, y = rng.standard_normal((n, 2, d)), rng.standard_normal((n, 2, outputs))
    flat = rng.standard_normal(m * d * (d + outputs))
    with jax.enable_x64(True):
        error, slope = compiled(X, y, m, flat, Budget())(flat)
    ours, by_blas = two_tokens(X, y, m)(flat)
    assert ours == pytest.approx(error, rel=1e-13)  # sums of 1400 numbers of one sign
    np.testing.assert_allclose(by_blas, slope, atol=1e-13 * np.abs(slope).max())


def test_gradient_descent_on_two_tokens_finds_the_layer():
    task = mha.Task(d=4, k=2, n_heads=1, rho=2.0)
    learner = mha.GradientLearner(1, random_state=0).fit(*task.sample(300))
    assert task.nmse(learner.theta_, learner.w_) < 1e-9
