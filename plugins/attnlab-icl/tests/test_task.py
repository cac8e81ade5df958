"""The law of contexts: two samplers, exact moments, separate streams, bad input."""

import numpy as np
import pytest
from attnlab_icl import Task, features
from attnlab_icl.moments import moments

SMALL = {"d": 6, "l": 9, "noise_std": 0.3**0.5}


def summaries(fast, n=40_000):
    """h of contexts of one fixed task (k = 1), by either sampler."""
    task = Task(**SMALL, k=1, seed=3)
    if fast:
        return task, *task.features(n, 1)
    X, y = task.sample(n, 1)
    return task, *features(X), y


@pytest.mark.parametrize("fast", [True, False])
def test_second_moments_of_the_summary(fast):
    task, _, h, _ = summaries(fast)
    _, B = moments(task)
    outer = h[:, :, None] * h[:, None, :]
    error = outer.std(axis=0) / np.sqrt(len(h))
    # 28 different entries: 4.5 standard errors for the largest
    assert (np.abs(outer.mean(axis=0) - B) < 4.5 * error).all()


@pytest.mark.parametrize("fast", [True, False])
def test_answers_have_the_moments_of_the_formula(fast):
    task, x, h, y = summaries(fast)
    A, _ = moments(task)
    product = (x * y[:, None])[:, :, None] * h[:, None, :] * task.d
    error = product.std(axis=0) / np.sqrt(len(h))
    assert (np.abs(product.mean(axis=0) - A) < 4.5 * error).all()


def test_fourth_moments_of_the_two_samplers_agree():
    powers = [np.vecdot(h, h) ** 2 for _, _, h, _ in (summaries(True), summaries(False))]
    error = np.hypot(*(p.std() / np.sqrt(len(p)) for p in powers))
    assert abs(powers[0].mean() - powers[1].mean()) < 4 * error


@pytest.mark.parametrize("l", [4, 9])
def test_reduced_contexts_have_the_law_of_what_estimates_use(l):
    """First and second moments of X^T X, X^T y and of their product, for one task, by both samplers."""
    task = Task(d=6, l=l, k=1, noise_std=0.5, seed=3)
    moments = []
    for X in (task.reduced(40_000, 1)[0], task.sample(40_000, 1)[0]):
        x, y = X[:, :-1, :-1], X[:, :-1, -1]
        C, b = x.mT @ x, (x.mT @ y[..., None])[..., 0]
        parts = [C.reshape(len(C), -1), b, C[:, 0, :1] * C[:, 0], C[:, :, 0] * b, b[:, :1] * b]
        columns = np.concatenate(parts, axis=1)
        moments.append((columns.mean(axis=0), columns.std(axis=0) / 200))
    (here, error), (there, other) = moments
    # 60 moments: 4.5 standard errors of the difference for the largest
    assert (np.abs(here - there) < 4.5 * np.hypot(error, other)).all()


def test_blocks_have_the_sizes_asked_for():
    sizes = [len(y) for _, _, y in Task(d=4, l=4, k=2).blocks(25, size=10)]
    assert sizes == [10, 10, 5]


def test_truth_and_data_share_no_numbers():
    task = Task(d=30, l=30, k=30, seed=7)
    X, _ = task.sample(30, seed=7)
    for i in range(30):
        correlation = np.corrcoef(X[i, :30, :30].ravel(), task.W.ravel())[0, 1]
        assert abs(correlation) < 5 / 30  # 900 entries


def test_same_seed_same_numbers():
    task = Task(d=4, l=5, k=2)
    np.testing.assert_array_equal(task.sample(3, 1)[0], task.sample(3, 1)[0])
    assert (task.sample(3, 1)[0] != task.sample(3, 2)[0]).any()
    assert (task.sample(3, 1)[1] != task.sample(3, 1, "new")[1]).all()


def test_the_ratios():
    task = Task(d=10, l=20, k=5, noise_std=0.5)
    assert (task.tokens, task.alpha, task.kappa, task.rho, task.tau(200)) == (21, 2, 0.5, 0.25, 2)
    assert np.isinf(Task(d=10, l=20).kappa)
    np.testing.assert_allclose(np.linalg.norm(task.W, axis=1), 10**0.5)


@pytest.mark.parametrize("wrong", [{"d": 1}, {"l": 0}, {"k": 0}, {"noise_std": -1}, {"noise_std": np.inf}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Task(**{"d": 4, "l": 4, "k": 2, **wrong})


def test_no_list_of_tasks():
    with pytest.raises(ValueError, match="k=None"):
        _ = Task(d=4, l=4).W


def test_too_many_tokens_point_to_features():
    with pytest.raises(ValueError, match="features"):
        Task(d=100, l=1000, k=3).sample(10**5)


def test_an_answer_in_the_query_is_refused():
    X, _ = Task(d=4, l=4).sample(3)
    X[1, -1, -1] = 0.5
    with pytest.raises(ValueError, match="place of the answer"):
        features(X)
