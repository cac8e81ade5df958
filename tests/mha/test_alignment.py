import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.alignment import align, equivalences


@pytest.fixture
def layer():
    task = mha.Task(d=4, k=3, n_heads=3, seed=3)
    return task.Theta, task.W


def test_the_order_of_heads_does_not_count(layer):
    theta, w = layer
    found = align(theta[[1, 2, 0]], w[[1, 2, 0]], theta, w)
    assert found.theta_error == 0
    assert found.w_error == 0
    assert found.permutation == (2, 0, 1)


def test_errors_are_relative_to_the_worst_head(layer):
    theta, w = layer
    moved = theta.copy()
    moved[1] *= 1.1
    assert align(moved, w, theta, w).theta_error == pytest.approx(0.1)
    assert align(theta, 1.5 * w, theta, w).w_error == pytest.approx(0.5)


def test_free_and_split_heads_do_not_count(layer):
    theta, w = layer
    split = align(
        np.concatenate([theta, theta[:1], np.ones((1, 4, 4))]),
        np.concatenate([0.25 * w[:1], w[1:], 0.75 * w[:1], np.zeros((1, 4, 4))]),
        theta,
        w,
    )
    assert split.theta_error == 0
    assert split.w_error < 1e-15


def test_a_missing_head_is_infinitely_wrong_and_an_extra_one_costs_its_weight(layer):
    theta, w = layer
    assert align(theta[:2], w[:2], theta, w).theta_error == np.inf
    extra = align(np.concatenate([theta, np.ones((1, 4, 4))]), np.concatenate([w, w[:1]]), theta, w)
    assert extra.theta_error == 0
    assert extra.w_error > 0.1


def test_flips_are_allowed_at_two_tokens_only_when_the_projections_cancel(layer):
    theta, w = layer
    balanced = np.stack([w[0], w[1], -w[0] - w[1]])
    X = mha.Task(d=4, k=2, n_heads=3).tokens_of(50)
    same = mha.attention(X, theta, balanced) - mha.attention(X, -theta, -balanced)
    assert np.abs(same).max() < 1e-12
    flipped = align(-theta, -balanced, theta, balanced, tokens=2)
    assert flipped.theta_error == 0
    assert flipped.w_error < 1e-15
    assert flipped.signs == (-1, -1, -1)
    assert align(-theta, -balanced, theta, balanced, tokens=3).theta_error > 1
    # without cancellation the function differs, and the linear term is charged
    assert align(-theta, -w, theta, w, tokens=2).w_error > 0.5


def test_a_zero_head_takes_up_the_linear_term_of_a_flip():
    task = mha.Task(d=4, k=2, n_heads=2, seed=1)
    theta = np.concatenate([task.Theta, np.zeros((1, 4, 4))])
    w = np.concatenate([task.W, np.ones((1, 4, 4))])
    other_theta, other_w = theta.copy(), w.copy()
    other_theta[0], other_w[0], other_w[2] = -theta[0], -w[0], w[2] + 2 * w[0]
    X = task.tokens_of(50)
    assert np.abs(mha.attention(X, theta, w) - mha.attention(X, other_theta, other_w)).max() < 1e-12
    assert equivalences(theta, w, tokens=2).flipped == ((0,), (1,))
    found = align(other_theta, other_w, theta, w, tokens=2)
    assert found.theta_error == 0
    assert found.w_error < 1e-12
    # the reference needs no zero head either, when flips make it up
    less = align(theta[:2], w[:2], np.concatenate([-theta[:1], theta[1:]]), np.stack([-w[0], w[1], 2 * w[0]]), tokens=2)
    assert less.theta_error == 0
    assert less.w_error < 1e-12
    assert align(other_theta, other_w, theta, w, tokens=3).w_error > 0.5


def test_a_flip_takes_the_key_bias_with_it(layer):
    theta, w = layer
    w = np.stack([w[0], w[1], -w[0] - w[1]])
    bias = np.random.default_rng(3).standard_normal((3, 4))
    found = align(-theta, -w, theta, w, tokens=2, key_bias=-bias, key_bias_ref=bias)
    assert found.theta_error == 0
    assert found.key_bias_error == 0
    assert align(-theta, -w, theta, w, tokens=2, key_bias=bias, key_bias_ref=bias).key_bias_error == pytest.approx(2)


def test_equivalences_name_the_smallest_sets(layer):
    theta, w = layer
    assert equivalences(theta, w, tokens=2).unique
    assert equivalences(theta, np.stack([w[0], w[1], -w[0]]), tokens=2).flipped == ((0, 2),)
    assert equivalences(theta, np.stack([w[0], w[1], -w[0]]), tokens=3).unique
    assert equivalences(np.stack([theta[0], -theta[0]]), w[:2], tokens=2).merged == ((0, 1),)
    assert equivalences(np.stack([theta[0], -theta[0]]), w[:2], tokens=3).unique


def test_layers_of_different_widths_are_refused(layer):
    theta, w = layer
    with pytest.raises(ValueError, match="different widths"):
        align(theta, w, np.ones((1, 3, 3)), np.ones((1, 3, 3)))
