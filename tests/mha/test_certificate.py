import numpy as np
import pytest

from attnlab import mha
from attnlab.mha import theory
from attnlab.mha.certificate import certify, empirical_bernstein, output_bound


def test_the_bound_is_that_of_the_theorem():
    # mean 1/2, variance 1/3, log(2/delta) = log 40: 0.5 + sqrt(2/3 log 40 / 4) + 7 b log 40 / 9
    sample = np.array([0.0, 1.0, 0.0, 1.0])
    assert empirical_bernstein(sample, 1.0, 0.05) == pytest.approx(0.5 + 0.784101 + 2.869129, abs=1e-5)
    assert empirical_bernstein(sample, 2.0, 0.05) == pytest.approx(0.5 + 0.784101 + 2 * 2.869129, abs=1e-5)
    assert np.isfinite(empirical_bernstein(sample[:2], 1.0, 0.05))
    assert empirical_bernstein(sample[:1], 1.0, 0.05) == np.inf


def test_coverage_of_both_statements(seed):
    """200 repetitions at delta = 0.05: at most 10 misses are expected, Bernstein is far on the safe side."""
    rng = np.random.default_rng(seed)
    misses_loss = misses_tail = 0
    for _ in range(200):
        losses_mean = 0.2  # of Beta(1, 4)
        sample = rng.beta(1, 4, 100)
        misses_loss += empirical_bernstein(sample, 1.0, 0.025) < losses_mean
        # uniform errors: a fresh one exceeds the largest of 100 with probability 1 - largest
        errors = rng.uniform(size=(100, 1, 1))
        certificate = certify(errors, 0 * errors, cut=1.0)
        misses_tail += 1 - certificate.largest_error > certificate.tail_probability
    assert misses_loss <= 10
    # the tail statement is tight: 200 * 0.025 = 5 misses on average, three standard deviations above
    assert misses_tail <= 5 + 3 * np.sqrt(4.9)


def test_an_exact_fit_is_certified_up_to_the_range_term():
    y = np.random.default_rng(0).standard_normal((500, 2, 3))
    certificate = certify(y, y, label_bound=5.0, output_bound=5.0)
    assert certificate.mean_loss == 0
    assert certificate.loss_bound == pytest.approx(float(theory.certificate_width(500, 100.0)))
    assert certificate.tail_probability == pytest.approx(float(theory.tail_probability(500)))
    assert "mean squared error <=" in str(certificate)


def test_without_a_bound_or_a_cut_only_the_tail_statement_is_made():
    y = np.ones((10, 2, 2))
    assert certify(y, y).loss_bound == np.inf
    assert certify(y, y, label_bound=3.0).loss_bound == np.inf
    assert "mean" not in str(certify(y, y))


def test_the_cut_is_in_the_statement():
    y = np.random.default_rng(0).standard_normal((500, 2, 3))
    certificate = certify(0 * y, y, cut=4.0)
    assert certificate.cut == 4.0
    assert certificate.mean_loss < certificate.loss_bound < 1.3
    assert "cut at 4" in str(certificate)


def test_the_output_bound_holds_on_the_cube():
    task = mha.Task(d=6, k=3, n_heads=2, rho=20.0)
    assert np.abs(task.sample(3000)[1]).max() <= output_bound(task.W)


def test_an_impossible_bound_is_refused():
    with pytest.raises(ValueError, match="label_bound must be at least the largest label"):
        certify(np.ones((5, 2, 2)), np.ones((5, 2, 2)), label_bound=0.5)


def test_enough_examples_certify_a_target():
    n = theory.certificate_examples(0.01, bound=70.0).value
    assert theory.certificate_width(n, 70.0) <= 0.01 < theory.certificate_width(n - 1, 70.0)


def test_a_bound_beyond_the_cut_is_not_printed():
    y = np.ones((5, 2, 3))
    certificate = certify(0 * y, y, cut=0.25)
    assert certificate.loss_bound > certificate.cut
    assert "mean" not in str(certificate)


def test_gaussian_tokens_are_learned_with_a_tail_certificate_only():
    task = mha.Task(d=6, k=3, n_heads=2, rho=2.0, tokens_law="gaussian")
    learner = mha.learn(*task.sample(500), n_heads=2)
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6
    assert np.isfinite(learner.certificate_.cut)
    assert learner.certificate_.label_bound is None


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
