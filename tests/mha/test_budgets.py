import time

import pytest
from sklearn.exceptions import ConvergenceWarning

from attnlab import mha


class Clock:
    """A clock that goes on by a hundredth of a second whenever it is read."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.01
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_budgets_are_honoured(clock):
    task = mha.Task(d=4, k=2, n_heads=2, rho=8.0, noise_std=0.2)
    learner = mha.AttentionLearner(2, max_seconds=0.5, random_state=0).fit(*task.sample(300))
    assert 0.4 < clock.now < 0.6
    assert not learner.converged_
    assert learner.stop_reason_ == "max_seconds reached"


@pytest.mark.parametrize("method", ["lbfgs", "adam", "projected_lbfgs"])
def test_gradient_learners_end_in_time(method, examples, clock):
    learner = mha.GradientLearner(2, method=method, max_iter=10**6, tol=1e-30, max_seconds=1.0, random_state=0)
    learner.fit(*examples)  # compiles, which does not count
    begun = clock.now
    learner.fit(*examples)
    assert 0.8 < clock.now - begun < 1.2


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
def test_compilation_does_not_count(method, clock):
    examples = mha.Task(d=3, k=4, n_heads=2, noise_std=0.1).sample(50)  # a shape that no other test compiles
    learner = mha.GradientLearner(2, method=method, n_starts=1, max_iter=10**6, tol=1e-30, random_state=0)
    first, second = (learner.set_params(max_seconds=1.0).fit(*examples).n_iter_ for _ in range(2))
    assert first > 0.85 * second  # the first call of a compiled function reads the clock a few times more


@pytest.mark.slow
def test_seconds_are_kept_within_a_fifth(monkeypatch):
    # the clock of this process alone: other work of the machine does not count
    monkeypatch.setattr(time, "monotonic", time.process_time)
    task = mha.Task(d=16, k=2, n_heads=4, rho=8.0, noise_std=0.2)
    X, y = task.sample(3000)
    for learner in (
        mha.AttentionLearner(4, max_seconds=2.0, random_state=0),
        mha.GradientLearner(4, method="adam", max_iter=10**6, n_starts=1, max_seconds=2.0, random_state=0),
    ):
        learner.set_params(max_seconds=0.1).fit(X, y)  # compiles
        begun = time.monotonic()
        learner.set_params(max_seconds=2.0).fit(X, y)
        assert time.monotonic() - begun < 2.4


def test_a_gradient_fit_that_was_cut_short_says_so(examples):
    for method in ("lbfgs", "adam", "projected_lbfgs"):
        with pytest.warns(ConvergenceWarning, match="max_iter reached"):
            learner = mha.GradientLearner(2, method=method, n_starts=1, max_iter=3, random_state=0).fit(*examples)
        assert not learner.converged_


def test_one_random_start_is_one(caplog):
    X, y = mha.Task(d=4, k=3, n_heads=2, noise_std=1.0).sample(60)
    with caplog.at_level("INFO", logger="attnlab.mha"):
        mha.AttentionLearner(2, starts=("random",), n_starts=1, holdout=None, random_state=0).fit(X, y)
    assert sum("start " in record.message for record in caplog.records) == 1


def test_progress_is_logged(caplog, examples):
    with caplog.at_level("INFO", logger="attnlab.mha"):
        mha.AttentionLearner(2, random_state=0).fit(*examples)
    assert "start 1: error" in caplog.text
