import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from attnlab import mha
from attnlab.common.compute import Compute
from attnlab.mha.sculpting import program

FAST = {
    "attention": mha.AttentionLearner(2, random_state=0),
    "sculpting": mha.SculptingLearner(2, random_state=0),
    "moment": mha.MomentLearner(2, random_state=0),
    "lbfgs": mha.GradientLearner(2, n_starts=2, random_state=0),
    "projected": mha.GradientLearner(2, method="projected_lbfgs", n_starts=2, random_state=0),
    "adam": mha.GradientLearner(2, method="adam", n_starts=1, max_iter=2000, step=0.05, random_state=0),
}


@pytest.fixture(scope="module")
def task():
    return mha.Task(d=4, k=3, n_heads=2, rho=2.0, seed=1)


@pytest.fixture(scope="module")
def examples(task):
    return task.sample(600, seed=2)


@pytest.fixture(scope="module", params=FAST)
def learner(request, examples):
    return clone(FAST[request.param]).fit(*examples)


def test_every_learner_recovers_an_easy_layer(learner, task):
    found = mha.align(learner.theta_, learner.w_, task.Theta, task.W)
    assert found.theta_error < 1e-3
    X, y = task.sample(200, seed=3)
    assert learner.score(X, y) > 1 - 1e-6
    assert learner.predict(X).shape == y.shape


def test_the_same_seed_gives_the_same_layer(learner, examples):
    assert np.array_equal(clone(learner).fit(*examples).theta_, learner.theta_)


def test_searches_and_cross_validation_take_token_arrays(examples):
    X, y = examples[0][:200], examples[1][:200]
    learner = mha.AttentionLearner(holdout=None, random_state=0)
    assert cross_val_score(learner.set_params(n_heads=2), X, y, cv=2).min() > 0.999
    search = GridSearchCV(learner, {"n_heads": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_ == {"n_heads": 2}


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_number_of_heads_is_selected_on_validation_examples(noise):
    task = mha.Task(d=5, k=4, n_heads=2, rho=4.0, noise_std=noise)
    learner = mha.learn(*task.sample(800))
    assert learner.n_heads_ == 2
    errors = {entry["n_heads"]: entry["validation_nmse"] for entry in learner.log_}
    assert errors[2] < 0.1 * errors[1]


def test_too_many_heads_are_reported_as_redundant():
    task = mha.Task(d=4, k=3, n_heads=1, rho=2.0)
    learner = mha.AttentionLearner(2, random_state=0).fit(*task.sample(300))
    assert learner.validation_nmse_ < 1e-12
    assert "heads [1] have W = 0" in learner.redundant_
    assert mha.AttentionLearner(1, random_state=0).fit(*task.sample(300)).redundant_ == ""
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W, tolerance=1e-4).theta_error < 1e-3


def test_too_few_heads_show_in_the_validation_error(task, examples):
    few, right = (mha.AttentionLearner(m, random_state=0).fit(*examples) for m in (1, 2))
    # one head of two is missing: an error of the order of the labels, not of rounding
    assert few.validation_nmse_ > 0.01
    assert right.validation_nmse_ < 1e-12
    with pytest.warns(UserWarning, match="max_heads=1 heads were reached and the validation error"):
        capped = mha.AttentionLearner(max_heads=1, random_state=0).fit(*examples)
    assert [entry["n_heads"] for entry in capped.log_] == [1]
    assert capped.validation_nmse_ > 0.01


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


def test_gaussian_tokens_are_learned_with_a_tail_certificate_only():
    task = mha.Task(d=6, k=3, n_heads=2, rho=2.0, tokens_law="gaussian")
    learner = mha.learn(*task.sample(500), n_heads=2)
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6
    assert np.isfinite(learner.certificate_.cut)
    assert learner.certificate_.label_bound is None


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


def test_progress_is_logged(caplog, examples):
    with caplog.at_level("INFO", logger="attnlab.mha"):
        mha.AttentionLearner(2, random_state=0).fit(*examples)
    assert "start 1: error" in caplog.text


def test_every_learner_says_how_it_ended(learner):
    assert learner.converged_ is True
    assert learner.n_iter_ > 0
    assert learner.stop_reason_ in ("error below tol", "error stopped falling")


def test_a_gradient_fit_that_was_cut_short_says_so(examples):
    for method in ("lbfgs", "adam", "projected_lbfgs"):
        with pytest.warns(ConvergenceWarning, match="max_iter reached"):
            learner = mha.GradientLearner(2, method=method, n_starts=1, max_iter=3, random_state=0).fit(*examples)
        assert not learner.converged_


@pytest.mark.parametrize("method", ["lbfgs", "adam", "projected_lbfgs"])
def test_gradient_learners_end_in_time(method, examples, clock):
    learner = mha.GradientLearner(2, method=method, max_iter=10**6, tol=1e-30, max_seconds=1.0, random_state=0)
    learner.fit(*examples)
    assert 0.8 < clock.now < 1.2


def test_a_start_that_leaves_the_numbers_loses(examples):
    learner = mha.GradientLearner(2, method="adam", n_starts=2, max_iter=500, step=(1e300, 0.05), random_state=0)
    learner.fit(*examples)
    assert np.isnan(learner.train_nmse_path_[0])
    assert np.isfinite(learner.theta_).all()


def test_a_score_counts_weights(task, examples):
    X, y = task.sample(20, seed=9)
    learner = mha.GradientLearner(2, n_starts=1, max_iter=3, random_state=0).fit(*examples)
    weights = np.arange(20.0)
    repeated = np.repeat(np.arange(20), np.arange(20))
    assert learner.score(X, y, weights) == pytest.approx(learner.score(X[repeated], y[repeated]))
    assert learner.score(X, y, weights) != learner.score(X, y)


@pytest.mark.parametrize(("n", "noise"), [(2000, 5.0), (200, 2.0)])
def test_strong_label_noise_is_certified_and_not_a_crash(n, noise):
    task = mha.Task(d=4, k=3, n_heads=2, noise_std=noise)
    certificate = mha.AttentionLearner(2, n_starts=2, random_state=0).fit(*task.sample(n)).certificate_
    assert certificate.loss_bound > certificate.mean_loss * 0.5
    # a bound that the cut alone makes true is not printed
    assert ("cut at" in str(certificate)) == (certificate.loss_bound < certificate.cut)


def test_zero_labels_promise_nothing_about_the_mean():
    X, y = mha.Task(d=4, k=3, n_heads=1).sample(100)
    certificate = mha.AttentionLearner(1, n_starts=1, random_state=0).fit(X, 0 * y).certificate_
    assert certificate.loss_bound == np.inf
    assert "mean" not in str(certificate)


def test_a_bound_on_the_labels_is_checked_before_anything_is_fitted(examples):
    with pytest.raises(ValueError, match="label_bound must be at least the largest label"):
        mha.AttentionLearner(2, holdout=mha.Holdout(label_bound=0.1)).fit(*examples)
    learner = mha.AttentionLearner(2, holdout=mha.Holdout(label_bound=50.0), random_state=0).fit(*examples)
    assert learner.certificate_.cut == np.inf
    assert "if no label exceeds 50" in str(learner.certificate_)


def test_narrow_and_wide_outputs():
    for d_out in (1, 9):
        task = mha.Task(d=4, k=3, n_heads=1, d_out=d_out, rho=2.0)
        learner = mha.learn(*task.sample(400), n_heads=1)
        assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6


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
    with pytest.raises(ValueError, match=r"sculpted starts need 2 or 3 heads.*add 'random'"):
        mha.AttentionLearner(2, starts=("sculpted",), random_state=0).fit(X, y)


def test_the_moment_method_reaches_the_width_that_it_says():
    X, y = mha.Task(d=16, k=4, n_heads=1, rho=0.3).sample(150)
    assert mha.MomentLearner(1, random_state=0).fit(X, y).score(X, y) > 0.99


def test_shares_must_leave_something_to_fit():
    with pytest.raises(ValueError, match=r"at most 0\.9"):
        mha.Holdout(0.6, 0.6)


def test_prediction_checks_the_width():
    learner = mha.learn(X_OK, Y_OK, n_heads=1)
    with pytest.raises(ValueError, match="width d=4"):
        learner.predict(np.ones((2, 2, 5)))


def test_the_span_alone_can_be_fitted(examples):
    whole = mha.SculptingLearner(2, holdout=None, random_state=0).fit(*examples)
    alone = mha.SculptingLearner(2, holdout=None, random_state=0).fit_span(*examples)
    assert mha.span_error(alone.span_, whole.span_) < 0.2  # rows come in another order
    assert [step.name for step in alone.steps_] == [step.name for step in whole.steps_][:-1]
    assert len(alone.body_.rows) > 0
    assert not hasattr(alone, "theta_")
    with pytest.raises(TypeError, match="n_heads must be an integer"):
        mha.SculptingLearner().fit_span(*examples)


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


def test_weights_of_examples_are_refused_by_a_fit(learner, examples):
    with pytest.raises(TypeError, match="sample_weight"):
        clone(learner).fit(*examples, sample_weight=np.ones(len(examples[0])))


def test_more_heads_than_may_be_tried_are_announced():
    task = mha.Task(d=4, k=4, n_heads=8, rho=4.0)
    with pytest.warns(UserWarning, match="max_heads=6 heads were reached and the validation error"):
        learner = mha.AttentionLearner(n_starts=1, starts=("random",), random_state=0).fit(*task.sample(500))
    assert learner.n_heads_ == 6


@pytest.mark.slow
def test_noisy_fits_use_all_examples():
    task = mha.Task(d=8, k=4, n_heads=2, rho=4.0, noise_std=0.5)
    X, y = task.sample(80_000)
    learner = mha.AttentionLearner(2, holdout=None, random_state=0).fit(X, y)
    bound = float(np.max(mha.theory.cramer_rao(task, X)))
    # a fit of 20 000 of the 320 000 rows would be four times the bound
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1.5 * bound


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


def test_linear_programs_that_fail_are_an_error_that_says_so(monkeypatch):
    X, y = mha.Task(d=4, k=2, n_heads=2, rho=2.0).sample(2000)
    monkeypatch.setattr(program, "_solve", lambda *_: None)
    with pytest.raises(RuntimeError, match="linear program of the body has no solution; use body='kl'"):
        mha.SculptingLearner(2, body="linear", random_state=0).fit(X, y)


def test_one_random_start_is_one(caplog):
    X, y = mha.Task(d=4, k=3, n_heads=2, noise_std=1.0).sample(60)
    with caplog.at_level("INFO", logger="attnlab.mha"):
        mha.AttentionLearner(2, starts=("random",), n_starts=1, holdout=None, random_state=0).fit(X, y)
    assert sum("start " in record.message for record in caplog.records) == 1
