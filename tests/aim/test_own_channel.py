"""A channel written in one file outside the package goes the whole way: data, AMP, theory, a figure and a sweep."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from attnlab import aim
from attnlab.aim import theory


@dataclass(frozen=True)
class Shaken(aim.channels.Channel):
    """y = h + spread * Gaussian: linear outputs with noise, known in closed form."""

    spread: float = 0.5
    name: ClassVar[str] = "shaken"

    def output(self, h, rng=None, visible=None):
        return h + self.spread * rng.standard_normal(h.shape)

    def log_density(self, y, h):
        return -((y - h) ** 2).sum(axis=(-1, -2)) / (2 * self.spread**2)


CROSS = {"tied": False, "attention": "cross"}


@pytest.fixture(scope="module")
def law():
    return aim.Task(40, 2, 0.5, Shaken(), seed=1, **CROSS)


@pytest.fixture(scope="module")
def exact():
    """The same law as a linear channel: noise of variance 1/4 on every index."""
    return aim.Task(40, 2, 0.5, "linear", noise=0.25, seed=1, **CROSS)


def test_it_samples(law):
    X, y = law.sample(4000, seed=2)
    assert np.std(y - law.layout.indices(X, law.S)) == pytest.approx(0.5, rel=0.05)


@pytest.mark.slow
def test_theory_with_error_bars_is_that_of_the_closed_form(law, exact):
    for quantity in (lambda task: theory.mmse(task, 0.15), theory.weak_recovery_threshold):
        found, known = quantity(law), float(quantity(exact))
        # 1 % of the answer: every node of the curve to 1 %, or as far as 45 s lead
        assert 0 < found.error < 0.01 * known
        assert float(found) == pytest.approx(known, abs=5 * float(found.error))
    error = theory.generalization_error(law, 0.4)
    # four entries of residual variance 0.4 and noise 0.25
    assert float(error) == pytest.approx(4 * 0.65, abs=4 * error.error)


def test_message_passing_learns_from_it(law):
    X, y = law.sample(law.n_samples(0.2), seed=3)
    model = aim.AMP(0.5, Shaken(), max_iter=30, tol=1e-4, **CROSS).fit(X, y, truth=law.S)
    linear = aim.AMP(0.5, aim.Linear(noise=0.25), max_iter=30, tol=1e-4, **CROSS).fit(X, y, truth=law.S)
    assert model.trace_["mse"][-1] == pytest.approx(linear.trace_["mse"][-1], rel=0.1)


def test_what_has_no_gradient_is_refused_by_name(law):
    X, y = law.sample(20)
    with pytest.raises(ValueError, match="'shaken' has no loss"):
        aim.GradientDescent(20, channel=Shaken(), **CROSS).fit(X, y)
