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
    "adam": mha.GradientLearner(2, method="adam", n_starts=1, max_iter=2000, step=0.05, random_state=0),
}


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
    with pytest.warns(UserWarning, match="1 heads were reached and the validation error"):
        capped = mha.AttentionLearner(max_heads=1, random_state=0).fit(*examples)
    assert [entry["n_heads"] for entry in capped.log_] == [1]
    assert capped.validation_nmse_ > 0.01


def test_every_learner_says_how_it_ended(learner):
    assert learner.converged_ is True
    assert learner.n_iter_ > 0
    assert learner.stop_reason_ in ("error below tol", "error stopped falling")


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


def test_narrow_and_wide_outputs():
    for d_out in (1, 9):
        task = mha.Task(d=4, k=3, n_heads=1, d_out=d_out, rho=2.0)
        learner = mha.learn(*task.sample(400), n_heads=1)
        assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6


def test_the_moment_method_reaches_the_width_that_it_says():
    X, y = mha.Task(d=16, k=4, n_heads=1, rho=0.3).sample(150)
    assert mha.MomentLearner(1, random_state=0).fit(X, y).score(X, y) > 0.99


def test_weights_of_examples_are_refused_by_a_fit(learner, examples):
    with pytest.raises(TypeError, match="sample_weight"):
        clone(learner).fit(*examples, sample_weight=np.ones(len(examples[0])))


def test_more_heads_than_may_be_tried_are_announced():
    task = mha.Task(d=4, k=4, n_heads=8, rho=4.0)
    with pytest.warns(UserWarning, match="6 heads were reached and the validation error"):
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
