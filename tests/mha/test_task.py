from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from attnlab import mha
from attnlab.common.seeds import stream
from attnlab.mha.families import FAMILIES, Family, LowRank, Weak


def test_the_generic_instance_follows_its_recipe():
    task = mha.Task(d=5, k=3, n_heads=2, rho=3.0, noise_std=0.1, seed=7)
    g = stream(7, "plant", "mha")
    T = [g.standard_normal((5, 5)) for _ in range(2)]
    theta = np.stack([3.0 * t / np.linalg.norm(t) for t in T])
    w = g.standard_normal((2, 5, 5)) / np.sqrt(5)
    X, y = task.sample(40, seed=11)
    noise = stream(11, "data", "mha", "noise").standard_normal((40, 3, 5))
    assert np.allclose(task.Theta, theta, rtol=1e-15)
    assert np.array_equal(task.W, w)
    assert np.array_equal(np.unique(X), [-1, 1])
    assert np.abs(y - mha.attention(X, theta, w) - 0.1 * noise).max() < 1e-13
    assert np.array_equal(X, mha.Task(d=5, k=3, n_heads=2, seed=7).sample(40, seed=11)[0])


def correlation(a, b):
    """Of the entries that two arrays have in the same places, flattened."""
    size = min(a.size, b.size)
    return abs(np.corrcoef(np.ravel(a)[:size], np.ravel(b)[:size])[0, 1]), 4 / np.sqrt(size)


@pytest.mark.parametrize("seed", [0, 1, 7, 10**6])
def test_equal_integers_give_unrelated_truth_tokens_noise_and_starts(seed):
    task = mha.Task(d=12, k=6, n_heads=2, tokens_law="gaussian", seed=seed, noise_std=1.0)
    X, y = task.sample(40, seed=seed)
    start = stream(seed, "learner", "mha").standard_normal(task.Theta.shape)
    noise = y - mha.attention(X, *task.layer)
    for a, b in combinations([task.Theta, task.W, X, noise, start, task.tokens_of(40, seed, "test")], 2):
        found, limit = correlation(a, b)
        assert found < limit


def test_no_learner_starts_at_the_planted_layer():
    """One iteration from the start: what is fitted then is unrelated to the truth of the same integer."""
    task = mha.Task(d=12, k=3, n_heads=2, seed=5)
    X, y = task.sample(300, seed=5)
    # one step of 1e-9 leaves the start as it is
    learner = mha.GradientLearner(2, method="adam", n_starts=1, max_iter=1, step=1e-9, random_state=5).fit(X, y)
    for found, true in ((learner.theta_, task.Theta), (learner.w_, task.W)):
        size, limit = correlation(found, true)
        assert size < limit


def test_a_family_owns_its_parameters():
    named = mha.Task(d=5, k=2, n_heads=2, family="weak", rho=2.0)
    given = mha.Task(d=5, k=2, n_heads=2, family=Weak(rho=2.0))
    assert named.family == given.family
    assert given.rho == 2.0
    assert np.array_equal(named.W, given.W)
    assert replace(given, d=4).family == given.family
    with pytest.raises(ValueError, match="rho is given twice: 3 to the task and 2 in the family"):
        mha.Task(d=5, k=2, n_heads=2, family=Weak(rho=2.0), rho=3.0)


def test_a_family_of_ones_own_is_one_class():
    @dataclass(frozen=True)
    class Symmetric(Family):
        name = "symmetric"

        def bend(self, theta, w):
            return (theta + theta.transpose(0, 2, 1)) / 2, w

    theta = mha.Task(d=5, k=2, n_heads=2, family=Symmetric()).Theta
    assert np.array_equal(theta, theta.transpose(0, 2, 1))


def test_low_rank_heads_have_the_rank_and_the_spread_they_say():
    task = mha.Task(d=9, k=2, n_heads=3, family=LowRank(rho=4.0, rank=2, spread=16.0))
    assert np.allclose(np.linalg.norm(task.Theta, axis=(1, 2)), [1, 4, 16])
    assert list(np.linalg.matrix_rank(task.Theta)) == [2, 2, 2]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_the_shapes_it_says(family):
    task = mha.Task(d=6, k=2, n_heads=3, family=family, d_out=4)
    X, y = task.sample(3)
    assert task.Theta.shape == (3, 6, 6)
    assert task.W.shape == (3, 6, 4)
    assert X.shape == (3, 2, 6)
    assert y.shape == (3, 2, 4)
    assert task.tokens == 2


def test_families_are_what_their_names_say():
    def layer(family):
        task = mha.Task(d=8, k=2, n_heads=2, family=family)
        return task.Theta, task.W

    theta, w = layer("generic")
    assert np.allclose(layer("weak")[1][1], 0.01 * w[1])
    assert np.allclose(np.linalg.norm(layer("dispersed")[0], axis=(1, 2)), [25, 0.5])
    assert np.allclose(layer("parallel")[0][1], theta[0])
    assert np.allclose(layer("opposite_values")[1][1], -w[0] + 0.1 * w[1])
    for family, cosine in (("close", 0.99), ("opposite", -0.96)):
        a, b = layer(family)[0]
        assert np.isclose(np.linalg.norm(b), 4)
        # two independent Gaussian matrices at d = 8 have a cosine of about 1/8
        assert abs(np.sum(a * b) / 16 - cosine) < 0.04


def test_gaussian_tokens_and_any_kind_of_seed():
    task = mha.Task(d=3, k=2, n_heads=1, tokens_law="gaussian")
    X, _ = task.sample(4000, seed=np.random.SeedSequence(1))
    again, _ = task.sample(4000, seed=np.random.SeedSequence(1))
    assert np.array_equal(X, again)
    assert abs(X.var() - 1) < 5 * np.sqrt(2 / X.size)


def test_a_given_layer_is_used():
    theta, w = np.eye(3)[None], np.ones((1, 3, 2))
    task = mha.Task(d=3, k=3, n_heads=1, d_out=2, planted=(theta, w))
    assert np.array_equal(task.Theta, theta)


@pytest.mark.parametrize(
    ("theta", "w", "message"),
    [
        (np.stack([np.eye(3)] * 2), np.ones((2, 3, 3)), r"heads \[0, 1\] have the same Theta"),
        (np.stack([np.eye(3), 2 * np.eye(3)]), np.stack([np.eye(3), 0 * np.eye(3)]), r"heads \[1\] have W = 0"),
        (np.stack([np.eye(3), np.ones((3, 3))]), np.stack([np.eye(3), -np.eye(3)]), r"change sign together"),
    ],
)
def test_a_layer_that_cannot_be_recovered_says_which_equivalence(theta, w, message):
    with pytest.warns(UserWarning, match=message):
        mha.Task(d=3, k=2, n_heads=2, planted=(theta, w))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d": 0}, "d must be an integer >= 1, got 0"),
        ({"rho": -1.0}, "rho must be"),
        ({"family": "gen"}, "did you mean 'generic'"),
        ({"tokens_law": "bool"}, "tokens_law must be one of"),
        ({"noise_std": -0.1}, "noise_std must be"),
        ({"planted": (np.zeros((2, 4, 4)), np.zeros((2, 4, 4)))}, "planted must hold Theta"),
    ],
)
def test_wrong_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        mha.Task(**{"d": 4, "k": 2, "n_heads": 1, **change})
