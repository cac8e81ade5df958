import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from attnlab import mha

FAST = {
    "attention": mha.AttentionLearner(2, random_state=0),
    "sculpting": mha.SculptingLearner(2, random_state=0),
    "moment": mha.MomentLearner(2, random_state=0),
    "lbfgs": mha.GradientLearner(2, n_starts=2, random_state=0),
    "projected": mha.GradientLearner(2, method="projected_lbfgs", n_starts=2, random_state=0),
    "adam": mha.GradientLearner(2, method="adam", n_starts=1, max_iter=4000, learning_rate=0.05, random_state=0),
}


@pytest.fixture(scope="module")
def task():
    return mha.Task(d=4, k=3, n_heads=2, rho=2.0, seed=1)


@pytest.fixture(scope="module")
def examples(task):
    return task.sample(600, seed=2)


@pytest.mark.parametrize("name", FAST)
def test_every_learner_recovers_an_easy_layer(name, task, examples):
    learner = clone(FAST[name]).fit(*examples)
    found = mha.align(learner.theta_, learner.w_, task.Theta, task.W)
    assert found.theta_error < 1e-3
    X, y = task.sample(200, seed=3)
    assert learner.score(X, y) > 1 - 1e-6
    assert learner.predict(X).shape == y.shape


@pytest.mark.parametrize("name", FAST)
def test_the_same_seed_gives_the_same_layer(name, examples):
    X, y = examples[0][:300], examples[1][:300]
    layers = [clone(FAST[name]).fit(X, y).theta_ for _ in range(2)]
    assert np.array_equal(*layers)


def test_searches_and_cross_validation_take_token_arrays(examples):
    X, y = examples[0][:200], examples[1][:200]
    learner = mha.AttentionLearner(validation_fraction=0, certificate_fraction=0, random_state=0)
    assert cross_val_score(learner.set_params(n_heads=2), X, y, cv=2).min() > 0.999
    search = GridSearchCV(learner, {"n_heads": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_ == {"n_heads": 2}


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_number_of_heads_is_selected_on_validation_examples(noise):
    task = mha.Task(d=8, k=4, n_heads=2, rho=4.0, noise_std=noise)
    learner = mha.learn(*task.sample(2000))
    assert learner.n_heads_ == 2
    errors = {entry["n_heads"]: entry["validation_nmse"] for entry in learner.log_}
    assert errors[2] < 0.1 * errors[1]


def test_too_many_heads_are_reported_as_redundant():
    task = mha.Task(d=4, k=3, n_heads=1, rho=2.0)
    learner = mha.AttentionLearner(2, random_state=0).fit(*task.sample(300))
    assert learner.validation_nmse_ < 1e-12
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W, tolerance=1e-4).theta_error < 1e-3


def test_too_few_heads_show_in_the_validation_error(task, examples):
    few, right = (mha.AttentionLearner(m, random_state=0).fit(*examples) for m in (1, 2))
    # one head of two is missing: an error of the order of the labels, not of rounding
    assert few.validation_nmse_ > 0.01
    assert right.validation_nmse_ < 1e-12
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
        "net, regression and refinement",
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
    assert learner.certificate_.loss_bound == np.inf


def test_budgets_are_honoured():
    task = mha.Task(d=16, k=2, n_heads=4, rho=8.0, noise_std=0.2)
    X, y = task.sample(3000)
    learner = mha.AttentionLearner(4, max_seconds=0.5, random_state=0).fit(X, y)
    assert learner.log_[0]["seconds"] < 10
    assert mha.AttentionLearner(1, max_examples=400, random_state=0).fit(X, y).certificate_.n == 40


def test_progress_is_told(capsys, examples):
    mha.AttentionLearner(2, verbose=True, random_state=0).fit(*examples)
    assert "start 1: error" in capsys.readouterr().out


def test_narrow_and_wide_outputs():
    for d_out in (1, 9):
        task = mha.Task(d=4, k=3, n_heads=1, d_out=d_out, rho=2.0)
        learner = mha.learn(*task.sample(400), n_heads=1)
        assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6


X_OK, Y_OK = mha.Task(d=4, k=2, n_heads=1).sample(50)


@pytest.mark.parametrize(
    ("learner", "X", "y", "message"),
    [
        (mha.AttentionLearner(1, tokens_law="boolean"), 0.5 * X_OK, Y_OK, "only -1 and \\+1"),
        (mha.AttentionLearner(1), X_OK, Y_OK[:, :1], "y must have shape"),
        (mha.AttentionLearner(1), X_OK, Y_OK[:10], "y must have shape"),
        (mha.AttentionLearner(1), np.where(X_OK > 0, np.nan, X_OK), Y_OK, "NaN"),
        (mha.AttentionLearner(1), X_OK, np.where(Y_OK > 0, np.inf, Y_OK), "NaN or infinity"),
        (mha.AttentionLearner(1), X_OK[:, 0], Y_OK, "shape \\(n, tokens, d\\)"),
        (mha.AttentionLearner(1), X_OK[:, :1], Y_OK[:, :1], "at least 2 tokens"),
        (mha.AttentionLearner(3), X_OK[:6], Y_OK[:6], "need at least 12 examples"),
        (mha.AttentionLearner(0), X_OK, Y_OK, "n_heads must be an integer >= 1, got 0"),
        (mha.AttentionLearner(1, starts=("randon",)), X_OK, Y_OK, "did you mean 'random'"),
        (mha.AttentionLearner(1, validation_fraction=0.6, certificate_fraction=0.6), X_OK, Y_OK, "at most 0.9"),
        (mha.AttentionLearner(1, max_seconds=-1.0), X_OK, Y_OK, "max_seconds must be"),
        (mha.SculptingLearner(1), X_OK[:12], Y_OK[:12], "AttentionLearner works with fewer"),
        (mha.SculptingLearner(1, max_examples=1), X_OK, Y_OK, "max_examples must be an integer >= 2, got 1"),
        (mha.SculptingLearner(2, tokens_law="boolean"), X_OK + 1, Y_OK, "only -1 and \\+1 when .*, got"),
        (mha.MomentLearner(3), X_OK[:6], Y_OK[:6], "need at least 12 examples"),
        (mha.SculptingLearner(1, body="lp"), X_OK, Y_OK, "body must be one of"),
        (mha.GradientLearner(1, method="sgd"), X_OK, Y_OK, "method must be one of"),
        (mha.MomentLearner(1), np.ones((900, 2, 20)), np.ones((900, 2, 20)), "use d <= 16"),
    ],
)
def test_wrong_input_is_named(learner, X, y, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(X, y)


def test_prediction_checks_the_width():
    learner = mha.learn(X_OK, Y_OK, n_heads=1)
    with pytest.raises(ValueError, match="width d=4"):
        learner.predict(np.ones((2, 2, 5)))
