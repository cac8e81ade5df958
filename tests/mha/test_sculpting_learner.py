import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.sculpting import program


def test_sculpting_records_its_phases(examples):
    learner = mha.SculptingLearner(2, random_state=0).fit(*examples)
    names = [step.name for step in learner.steps_]
    assert names == [
        "crude sum",
        "agreeing rows",
        "body and point of smallest norm",
        "refined sum",
        "agreeing rows again",
        "body and point of smallest norm",
        "long axes",
        "span search and free refinement",
    ]
    assert learner.span_.shape == (2, 4, 4)
    assert all(step.seconds >= 0 and step.summary for step in learner.steps_)
    scales = learner.steps_[1].arrays["scales"]
    assert np.all(np.diff(scales) <= 0)


def test_sculpting_selects_heads_and_certifies():
    task = mha.Task(d=6, k=2, n_heads=2, rho=2.0, seed=3)
    learner = mha.SculptingLearner(random_state=0).fit(*task.sample(20_000))
    assert learner.n_heads_ == 2
    assert learner.certificate_ is not None
    assert learner.certificate_.largest_error < 1e-6


def test_the_linear_body_gives_a_span_too():
    task = mha.Task(d=8, k=2, n_heads=2, rho=2.0, seed=3)
    learner = mha.SculptingLearner(2, body="linear", random_state=0).fit(*task.sample(30_000))
    assert mha.span_error(learner.span_, task.Theta) < 0.05
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W, tokens=2).theta_error < 1e-3


def test_the_span_alone_can_be_fitted(examples):
    whole = mha.SculptingLearner(2, holdout=None, random_state=0).fit(*examples)
    alone = mha.SculptingLearner(2, holdout=None, random_state=0).fit_span(*examples)
    assert mha.span_error(alone.span_, whole.span_) < 0.2  # rows come in another order
    assert [step.name for step in alone.steps_] == [step.name for step in whole.steps_][:-1]
    assert len(alone.body_.rows) > 0
    assert not hasattr(alone, "theta_")
    with pytest.raises(TypeError, match="n_heads must be an integer"):
        mha.SculptingLearner().fit_span(*examples)


def test_linear_programs_that_fail_are_an_error_that_says_so(monkeypatch):
    X, y = mha.Task(d=4, k=2, n_heads=2, rho=2.0).sample(2000)
    monkeypatch.setattr(program, "_solve", lambda *_: None)
    with pytest.raises(RuntimeError, match="linear program of the body has no solution; use body='kl'"):
        mha.SculptingLearner(2, body="linear", random_state=0).fit(X, y)
