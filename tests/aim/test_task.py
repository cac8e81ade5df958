from dataclasses import replace
from typing import get_type_hints

import numpy as np
import pytest

from attnlab import aim
from attnlab.aim.indices import whiten
from attnlab.lab.formulas.formula import kind_of


@pytest.mark.parametrize("rho", [0.5, 2.0, np.inf])
def test_planted_matrix_has_the_moments_of_the_prior(rho):
    d = 300
    S = aim.Task(d, rho=rho, seed=1).S
    assert np.allclose(S, S.T)
    # traces of a d = 300 matrix fluctuate by order 1/d times a few
    assert np.trace(S) / d == pytest.approx(aim.spectrum.prior_mean(rho), abs=0.02)
    assert (S**2).sum() / d == pytest.approx(aim.spectrum.second_moment(rho), rel=0.03)


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_whitened_indices_all_have_the_same_variance(tokens, seed):
    d, n = 100, 20_000
    task = aim.Task(d, tokens, channel="linear", seed=seed)
    X = np.random.default_rng(seed + 1).standard_normal((n, tokens, d))
    variance = whiten(task.indices(X)).var(axis=0)
    # relative error sqrt(2/n) = 1 %, four of them; the fourth moment of the indices adds order 1/d
    np.testing.assert_allclose(variance, (task.S**2).sum() / d, rtol=0.06)


def test_same_seed_same_numbers_and_shapes():
    task = aim.Task(12, 3, channel="hardmax", seed=5)
    first, second = task.sample(7, seed=2), task.sample(7, seed=2)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert first[1].shape == (7, 3, 3)
    np.testing.assert_array_equal(first[1].sum(axis=2), 1)


def test_log_outputs_survive_underflow():
    task = aim.Task(30, beta=2000.0)
    _, y = task.sample(50)
    _, log_y = task.sample(50, log=True)
    assert (y == 0).any()
    assert np.isfinite(log_y).all()


def test_noise_moves_the_indices():
    X, y = aim.Task(20, channel="linear", noise=0.5).sample(4000, seed=3)
    clean = aim.Task(20, channel="linear").indices(X)
    # 4000 samples: relative error of a variance 2 %
    np.testing.assert_allclose(whiten(y - clean).var(axis=0), 0.5, rtol=0.1)


def test_the_channel_owns_the_noise():
    by_object, by_name = (aim.Task(30, channel=aim.Softmax(noise=0.3)), aim.Task(30, noise=0.3))
    assert by_object == by_name
    y, same, clean = (task.sample(5)[1] for task in (by_object, by_name, aim.Task(30)))
    assert np.array_equal(y, same)
    assert not np.allclose(y, clean)
    errors = [
        float(aim.theory.mmse(by_object, 0.1)),
        float(aim.theory.mmse(0.1, 0.5, noise=0.3)),
        float(aim.theory.mmse(0.1, 0.5, channel=aim.Softmax(noise=0.3))),
    ]
    assert len(set(errors)) == 1
    assert errors[0] > 1.2 * float(aim.theory.mmse(0.1, 0.5))
    assert replace(by_object, channel=aim.Linear(noise=0.1)).noise == 0.1


@pytest.mark.parametrize(
    "call",
    [
        lambda: aim.Task(20, channel=aim.Softmax(noise=0.3), noise=0.3),
        lambda: aim.Task(20, channel=aim.Softmax(beta=2), beta=1.0),
        lambda: aim.theory.mmse(0.1, 0.5, channel=aim.Softmax(), noise=0.3),
        lambda: aim.theory.mmse(aim.Task(20), 0.1, noise=0.3),
        lambda: aim.theory.generalization_error(0.4, 0.5, 2, aim.Linear(noise=0.1), noise=0.2),
        lambda: aim.theory.channel_strength(0.3, 0.5, 2, aim.Softmax(), noise=0.1),
    ],
)
def test_a_parameter_of_the_channel_is_given_once(call):
    with pytest.raises((TypeError, ValueError), match="is given twice"):
        call()


def test_stream_stands_for_an_array():
    task = aim.Task(16, seed=1)
    stream, y = task.stream(100, seed=4, chunk=33)
    X = stream.array()
    assert X.shape == stream.shape
    assert X.std() == pytest.approx(1, abs=0.06)
    np.testing.assert_allclose(y, task.outputs(task.indices(X.astype(np.float64))), atol=1e-5)


@pytest.mark.parametrize("layers", [1, 3])
def test_deep_layers_are_the_layers_applied_in_turn(layers):
    task = aim.DeepTask(20, layers=layers, seed=1)
    X, y = task.sample(5)
    for sequence, output in zip(X, y, strict=True):
        tokens, mixing = sequence, np.eye(2)
        for S in task.S:
            # the centred index of the mixed tokens: subtract what Tr S contributes to B X S X^T B^T
            h = (tokens @ S @ tokens.T - np.trace(S) * mixing @ mixing.T) / np.sqrt(20)
            attention = np.exp(h) / np.exp(h).sum(axis=1, keepdims=True)
            mixing = (np.eye(2) + attention) @ mixing
            tokens = mixing @ sequence
        np.testing.assert_allclose(output, attention, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d": 1}, "d must be"),
        ({"d": 10, "rho": 0.0}, "rho must be"),
        ({"d": 10, "rho": 0.01}, "width"),
        ({"d": 10, "tokens": 0}, "tokens must be"),
        ({"d": 10, "beta": -1.0}, "beta must be"),
        ({"d": 10, "channel": "softmin"}, "did you mean"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        aim.Task(**arguments)


def test_a_mask_is_a_word_on_the_command_line():
    assert kind_of(get_type_hints(aim.Task)["mask"])[0] == "text"


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="at least one sequence"):
        aim.Task(10).n_samples(1e-3)


@pytest.mark.parametrize("symmetric", [False, True])
def test_untied_indices_have_the_covariance_of_their_matrix(symmetric, seed):
    """Var h_ab = Tr S S^T/d, Cov(h_ab, h_ba) = Tr S^2/d, Var h_aa their sum: self-attention is not isotropic."""
    task = aim.Task(20, tied=False, seed=seed)
    S = (task.S + task.S.T) / np.sqrt(2) if symmetric else task.S
    rng = np.random.default_rng(seed)
    h = np.concatenate([task.layout.indices(rng.standard_normal((100_000, 2, 20)), S) for _ in range(10)])
    square, swapped = (S**2).sum() / 20, (S * S.T).sum() / 20
    found = h[:, 0, 1].var(), (h[:, 0, 1] * h[:, 1, 0]).mean(), h[:, 0, 0].var()
    # 10^6 sequences: 0.14 % of a variance, doubled by the heavier tails at d = 20
    np.testing.assert_allclose(found, (square, swapped, square + swapped), atol=0.02)
