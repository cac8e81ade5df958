import numpy as np
import pytest

from attnlab import mha
from attnlab.common.compute import Compute

X_OK, Y_OK = mha.Task(d=4, k=2, n_heads=1).sample(50)


@pytest.mark.parametrize(
    ("learner", "X", "y", "message"),
    [
        (mha.AttentionLearner(1), X_OK, Y_OK[:, :1], "y must have shape"),
        (mha.AttentionLearner(1), X_OK, Y_OK[:10], "y must have shape"),
        (mha.AttentionLearner(1), np.where(X_OK > 0, np.nan, X_OK), Y_OK, "NaN"),
        (mha.AttentionLearner(1), X_OK, np.where(Y_OK > 0, np.inf, Y_OK), "NaN or infinity"),
        (mha.AttentionLearner(1), X_OK[:, 0], Y_OK, "shape \\(n, tokens, d\\)"),
        (mha.AttentionLearner(1), X_OK[:, :1], Y_OK[:, :1], "at least 2 tokens"),
        (mha.AttentionLearner(3), X_OK[:6], Y_OK[:6], "need at least 12 examples"),
        (mha.AttentionLearner(0), X_OK, Y_OK, "n_heads must be an integer >= 1, got 0"),
        (mha.AttentionLearner(1, starts=("randon",)), X_OK, Y_OK, "did you mean 'random'"),
        (mha.AttentionLearner(1, max_seconds=-1.0), X_OK, Y_OK, "max_seconds must be"),
        (mha.SculptingLearner(1), X_OK[:12], Y_OK[:12], "AttentionLearner works with fewer"),
        (mha.MomentLearner(3), X_OK[:6], Y_OK[:6], "need at least 12 examples"),
        (mha.SculptingLearner(1, body="lp"), X_OK, Y_OK, "body must be one of"),
        (mha.GradientLearner(1, method="sgd"), X_OK, Y_OK, "method must be one of"),
        (mha.MomentLearner(1), np.ones((900, 2, 20)), np.ones((900, 2, 20)), "use d <= 16"),
    ],
)
def test_wrong_input_is_named(learner, X, y, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(X, y)


def test_starts_that_do_not_exist_are_an_error_and_not_a_crash():
    X, y = mha.Task(d=4, k=2, n_heads=2).sample(300)
    with pytest.raises(ValueError, match=r"sculpted starts 2 or 3 heads.*add 'random'"):
        mha.AttentionLearner(2, starts=("sculpted",), random_state=0).fit(X, y)
    X, y = mha.Task(d=17, k=2, n_heads=1).sample(400)
    for starts in (("moment",), ("moment", "sculpted")):
        with pytest.raises(ValueError, match=r"moments need d <= 16.*got d=17, 1 heads"):
            mha.AttentionLearner(1, starts=starts, random_state=0).fit(X, y)


def test_starts_that_the_time_did_not_allow_are_replaced_by_random_ones(monkeypatch):
    """At the end of the time the best layer so far is returned, also when no start of the kinds asked for was made."""
    from attnlab.mha.learners import attention_learner

    monkeypatch.setattr(attention_learner, "_SCULPT_ROWS", 100)
    X, y = mha.Task(d=4, k=2, n_heads=2).sample(300)
    with pytest.warns(UserWarning, match="max_seconds reached"):
        learner = mha.AttentionLearner(2, starts=("sculpted",), max_seconds=1e-6, random_state=0).fit(X, y)
    assert not learner.converged_


def test_shares_must_leave_something_to_fit():
    with pytest.raises(ValueError, match=r"at most 0\.9"):
        mha.Holdout(0.6, 0.6)


def test_prediction_checks_the_width():
    learner = mha.learn(X_OK, Y_OK, n_heads=1)
    with pytest.raises(ValueError, match="width d=4"):
        learner.predict(np.ones((2, 2, 5)))


@pytest.mark.parametrize(
    ("options", "compute", "message"),
    [
        ({}, Compute(device="gpu"), "JAX sees no GPU"),
        ({}, Compute(memory=1e9), r"compute\.memory is not supported by GradientLearner"),
        ({"method": "projected_lbfgs"}, Compute(device="gpu"), "must be 'cpu' or 'auto' with method='projected_lbfgs'"),
    ],
)
def test_gradients_are_computed_where_compute_says(options, compute, message, examples):
    with pytest.raises(ValueError, match=message):
        mha.GradientLearner(2, max_iter=3, compute=compute, **options).fit(*examples)
