import numpy as np
import pytest

from attnlab.slr import Task


def test_planted_directions_are_orthonormal_and_fixed_by_the_seed():
    task = Task(d=30, L=4, seed=7)
    assert np.allclose([task.k_star @ task.k_star, task.v_star @ task.v_star, task.k_star @ task.v_star], [1, 1, 0])
    assert np.array_equal(task.k_star, Task(d=30, L=4, seed=7).k_star)
    assert not np.allclose(task.k_star, Task(d=30, L=4, seed=8).k_star)


def test_sample_is_a_function_of_the_seed():
    task = Task(d=6, L=3, noise_std=0.1)
    X, y = task.sample(5, seed=1)
    again, _ = task.sample(5, seed=1)
    other, _ = task.sample(5, seed=2)
    assert X.shape == (5, 3, 6)
    assert y.shape == (5,)
    assert np.array_equal(X, again)
    assert not np.array_equal(X, other)


def test_spiked_law_has_the_stated_moments():
    task = Task(d=8, L=5, noise_std=0.2, seed=1)
    X, y, J = task.sample_with_location(40_000, seed=0)
    informative = X[np.arange(len(X)), J]
    # standard errors: sqrt(.5/40000) = .0035 for the mean, .5 sqrt(2/40000) = .0035 for the variance
    assert np.allclose(informative.mean(axis=0), 2 * task.k_star, atol=0.018)
    assert np.allclose(np.cov(informative.T), 0.5 * np.eye(8), atol=0.018)
    assert np.allclose(np.bincount(J) / len(J), 0.2, atol=5 * np.sqrt(0.16 / 40_000))
    # tokens of equal mean square norm do not give the location away
    assert np.mean(informative**2) == pytest.approx(np.mean(X**2), abs=0.02)
    assert np.var(y - informative @ task.v_star) == pytest.approx(0.04, rel=0.05)


def test_max_law_picks_the_largest_mark_or_by_its_softmax():
    sharp = Task(d=5, L=4, gamma=1.0, law="max", nu=np.inf, seed=2)
    X, _, J = sharp.sample_with_location(500, seed=0)
    assert np.array_equal(J, (X @ sharp.k_star).argmax(axis=1))
    soft = Task(d=5, L=4, gamma=1.0, law="max", nu=2.0, seed=2)
    X, _, J = soft.sample_with_location(20_000, seed=0)
    p = soft.posterior(X)
    hits = p[np.arange(len(J)), J]
    # if J has law p, then E p_J = E sum p^2; the standard error is below .4/sqrt(20000) = .003
    assert hits.mean() == pytest.approx(np.sum(p**2, axis=1).mean(), abs=0.012)
    assert np.allclose(X.mean(axis=(0, 1)), 0, atol=0.02)


def test_posterior_is_calibrated_for_the_spiked_law():
    task = Task(d=6, L=3, seed=4)
    X, _, J = task.sample_with_location(20_000, seed=1)
    p = task.posterior(X)
    assert np.allclose(p.sum(axis=1), 1)
    assert p[np.arange(len(J)), J].mean() == pytest.approx(np.sum(p**2, axis=1).mean(), abs=0.012)


def test_random_lengths_pad_with_zero_tokens_and_keep_the_location_inside():
    task = Task(d=5, L=3, gamma=1.0, nu=5.0, lengths=(1, 2, 3))
    X, _, J = task.sample_with_location(3000, seed=0)
    length = X.any(axis=2).sum(axis=1)
    assert np.allclose(np.bincount(length)[1:] / 3000, 1 / 3, atol=0.04)
    assert (length > J).all()
    assert np.allclose(task.posterior(X)[~X.any(axis=2)], 0)


def test_given_directions_are_used_and_tasks_can_be_compared():
    k, v = np.eye(2, 4)
    task = Task(d=4, L=2, directions=(k, v))
    assert np.array_equal(task.k_star, k)
    assert task == Task(d=4, L=2, directions=(k, v))
    assert hash(task) == hash(Task(d=4, L=2, directions=(k, v)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 0.0}, "gamma must be a number in"),
        ({"gamma": -1.0}, "gamma must be a number in"),
        ({"L": 0}, "L must be an integer >= 1, got 0"),
        ({"d": 1}, "d must be an integer >= 2"),
        ({"noise_std": -0.1}, "noise_std must be"),
        ({"law": "spike"}, "did you mean 'spiked'"),
        ({"law": "max", "gamma": 0.5}, "gamma must be 1 for the max law"),
        ({"nu": np.inf}, "nu must be"),
        ({"lengths": (4,)}, "lengths must be an integer >= 1 and <= 3"),
        ({"directions": (np.eye(4)[0], np.eye(4)[0])}, "must be orthogonal"),
        ({"directions": (np.eye(4)[0], 2 * np.eye(4)[1])}, "v_star must have norm 1"),
        ({"directions": (np.ones(3), np.ones(3))}, "k_star must have shape"),
    ],
)
def test_bad_laws_are_refused_with_the_reason(change, message):
    with pytest.raises(ValueError, match=message):
        Task(**{"d": 4, "L": 3, **change})
