"""The loop of damped steps on a problem whose every step is known: the root of x^3 = 8."""

from typing import NamedTuple

import numpy as np

from attnlab.mha.engine.damped import OUT_OF_STEPS, SETTLED, StopRule, damped_steps


class At(NamedTuple):
    x: float

    @property
    def error(self):
        return (self.x**3 - 8) ** 2


def newton(at):
    slope = 3 * at.x**2
    return lambda mu: At(at.x - (at.x**3 - 8) * slope / (slope**2 * (1 + mu)))


def test_steps_lead_to_the_root_and_every_kept_step_lowers_the_error():
    end, history, reason = damped_steps(At(0.5), newton, StopRule(60, 1e-24, 1e-3, 8, np.inf))
    assert abs(end.x - 2) < 1e-12
    assert reason == "error below tol"
    assert (np.diff(history) < 0).all()


def test_a_step_without_solution_or_gain_is_tried_again_with_more_damping():
    tried = []

    def unsolvable(at):
        def step(mu):
            tried.append(mu)
            return None if len(tried) % 2 else At(at.x + 1)

        return step

    end, history, reason = damped_steps(At(3.0), unsolvable, StopRule(60, 0.0, 1e-3, 8, np.inf), tries=4)
    assert (end, len(history), reason) == (At(3.0), 1, SETTLED)
    np.testing.assert_allclose(tried, 1e-2 * 4.0 ** np.arange(4))


def test_damping_falls_after_a_step_that_is_kept():
    seen = []

    def steps_from(at):
        return lambda mu: seen.append(mu) or newton(at)(0.5)

    _, _, reason = damped_steps(At(3.0), steps_from, StopRule(3, 0.0, 1e-3, 8, np.inf))
    assert reason == OUT_OF_STEPS
    np.testing.assert_allclose(seen, 1e-2 / 5.0 ** np.arange(3))
