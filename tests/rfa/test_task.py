from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures
from attnlab.rfa.learners.base import draw_seed
from attnlab.rfa.sphere import gegenbauer, harmonic_dimension, inner_product_law
from attnlab.rfa.targets import TARGETS, KeyPower, Target
from attnlab.rfa.task import Task

NAMED = [
    {"target": "key_power", "p": 3},
    {"target": "query_power", "p": 2},
    {"target": "corr_power", "q": 2},
    {"target": "correlation", "p": 3},
    {"target": "rotated", "q": 1},
    {"target": "mixed_rotation", "gamma": 0.5},
    {"target": "softmax", "sharpness": 3.0},
    {"target": "harmonic", "harmonic": (1, 2)},
]


@pytest.mark.parametrize("options", NAMED, ids=lambda o: o["target"])
def test_variance_is_that_of_samples_on_the_sphere(options, seed):
    task = Task(d=6, n_keys=4, **options)
    _, y = task.sample(60_000, seed=seed)
    # standard error of a variance from the fourth moment; five of them
    tolerance = 5 * np.sqrt(np.var((y - y.mean()) ** 2) / len(y))
    assert abs(y.var() - task.variance) < tolerance


@pytest.mark.parametrize("options", NAMED[:6], ids=lambda o: o["target"])
def test_variance_is_that_of_samples_for_gaussian_tokens(options, seed):
    task = Task(d=6, n_keys=4, token_law="gaussian", **options)
    _, y = task.sample(100_000, seed=seed)
    tolerance = 5 * np.sqrt(np.var((y - y.mean()) ** 2) / len(y))
    assert abs(y.var() - task.variance) < tolerance


def test_energies_sum_to_the_second_moment_of_the_pair_function(seed):
    task = Task("corr_power", q=3, d=5, n_keys=1)
    _, y = task.sample(200_000, seed=seed)
    # with one key f* is F itself; five standard errors
    assert abs(np.mean(y**2) - sum(task.energies.values())) < 5 * np.std(y**2) / np.sqrt(len(y))


def test_harmonics_of_different_degree_are_orthogonal_and_of_unit_norm():
    d = 7
    t, w = inner_product_law(d)
    P = gegenbauer(6, d, t)
    norms = np.array([1 / harmonic_dimension(l, d) for l in range(7)])
    np.testing.assert_allclose((P * w) @ P.T, np.diag(norms), atol=1e-14)


def test_same_seed_same_numbers_and_other_seed_other_numbers():
    task = Task(d=4, n_keys=3)
    X, y = task.sample(5, seed=1)
    X2, y2 = task.sample(5, seed=1)
    np.testing.assert_array_equal(X, X2)
    np.testing.assert_array_equal(y, y2)
    assert not np.array_equal(X, task.sample(5, seed=2)[0])


def test_noise_is_added_to_the_labels_only():
    quiet, loud = Task(d=4, n_keys=3), Task(d=4, n_keys=3, noise_std=0.5)
    X, y = quiet.sample(4000, seed=1)
    X2, y2 = loud.sample(4000, seed=1)
    np.testing.assert_array_equal(X, X2)
    # relative error of a standard deviation from 4000 draws is 1.1 %
    assert abs(np.std(y2 - y) - 0.5) < 0.03


def test_a_function_and_user_given_tokens_make_a_task():
    def ones(rng, n, tokens, d):
        return np.ones((n, tokens, d))

    task = Task(lambda query, keys: keys.sum(axis=(1, 2)), d=3, n_keys=2, token_law=ones)
    X, y = task.sample(4)
    assert (X == 1).all()
    assert (y == 6).all()
    assert task.variance == 0


def test_planted_truth_depends_on_the_task_seed_only():
    assert np.array_equal(Task(d=5).b, Task(d=5, target="softmax").b)
    assert not np.allclose(Task(d=5).b, Task(d=5, seed=1).b)
    np.testing.assert_allclose(Task(d=5).rotation @ Task(d=5).rotation.T, np.eye(5), atol=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "key_powr"}, "did you mean 'key_power'"),
        ({"d": 1}, "d must be an integer >= 2"),
        ({"n_keys": 0}, "n_keys must be"),
        ({"noise_std": -1.0}, "noise_std must be"),
        ({"target": "mixed_rotation", "gamma": 1.5}, "gamma must be"),
        ({"target": "softmax", "p": 3}, "p is not a parameter of target 'softmax', which has sharpness"),
        ({"target": KeyPower(3), "p": 3}, r"p is given twice, the target KeyPower\(p=3\) has it"),
        ({"token_law": "cube"}, "token_law must be one of"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Task(**options)


def test_energies_of_a_target_outside_the_class_are_refused():
    with pytest.raises(ValueError, match="not an average"):
        _ = Task("softmax").energies


@pytest.mark.parametrize("name", TARGETS)
def test_a_name_and_its_object_are_one_task(name):
    task = Task(name, d=5, n_keys=3)
    assert task == Task(TARGETS[name](), d=5, n_keys=3)
    assert task.target == TARGETS[name]()
    assert replace(task, d=6) == Task(name, d=6, n_keys=3)
    np.testing.assert_array_equal(replace(task, noise_std=0.1).b, task.b)


@dataclass(frozen=True)
class KeyNorm(Target):
    """A target that the library does not know."""

    scale: float = 2.0
    name = "key_norm"

    def value(self, task, query, keys):
        return self.scale * np.abs(keys @ task.b).mean(axis=1)


def test_a_new_target_is_one_class():
    task = Task(KeyNorm(3.0), d=5, n_keys=4)
    X, y = task.sample(10)
    np.testing.assert_allclose(y, 3 * np.abs(X[:, 1:] @ task.b).mean(axis=1))
    # Monte Carlo
    assert task.variance == pytest.approx(task.sample(100_000, seed=5)[1].var(), rel=0.03)
    with pytest.raises(ValueError, match="not an average"):
        _ = task.energies


def test_fewer_examples_are_the_first_of_more():
    task = Task(d=4, n_keys=3, noise_std=0.3)
    for few, many in zip(task.sample(5, seed=1), task.sample(9, seed=1), strict=True):
        np.testing.assert_array_equal(few, many[:5])


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_equal_integers_give_independent_truth_data_and_weights(seed):
    d = 30
    task = Task(d=d, n_keys=d, seed=seed, token_law="gaussian")
    X, _ = task.sample(d, seed=seed)
    W = AttentionFeatures(d, d, draw_seed(seed), mean_matrix(None, d)).heads(0)
    draws = {"b": task.b, "u": task.u, "O": task.rotation, "X": X, "W": W}
    for (one, x), (two, y) in combinations(draws.items(), 2):
        size = min(x.size, y.size)
        correlation = np.corrcoef(x.ravel()[:size], y.ravel()[:size])[0, 1]
        assert abs(correlation) < 4 / np.sqrt(size), (one, two)
