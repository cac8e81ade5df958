"""Acceptance of several heads from value queries, at the accuracies that were measured when the method was derived."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from attnlab import mha
from attnlab.mha.queries.directions import match, matching_points
from attnlab.mha.queries.oracle import Box, Oracle, on_sphere
from attnlab.mha.queries.separation import _lifted, count_heads, lifted_equations
from attnlab.mha.theory import query_count

from .layers import oracle, planted

DOUBLE, SINGLE = np.float64, np.float32


def learned(layer, dtype=DOUBLE, noise=0.0, **options):
    d = layer[0].shape[1]
    options = {"n_heads": None, "bias": bool(np.any(layer[3])), "random_state": 0, **options}
    return mha.QueryLearner(d, **options).fit(oracle(layer, dtype, noise))


def errors(learner, layer):
    return mha.align(learner.theta_, learner.w_, *layer[:2])


def test_the_lifted_equations_have_exactly_m_solutions_and_unmix():
    m, d, n = 12, 24, 220
    theta, w, _, _ = planted(m, d)
    rng = np.random.default_rng(0)
    u, direction = rng.standard_normal((n, d)), rng.standard_normal(d)
    logits = u @ (theta @ direction).T / 4  # of order one, as the learner chooses the length of its tokens
    B = direction @ w
    kinds = np.stack([1 / (1 + np.exp(-logits - np.log(ratio))) @ B for ratio in (1, 1 / 2, 2)])
    span = np.linalg.svd(kinds.reshape(-1, d), full_matrices=False)[2][:m]
    sizes = np.linalg.svd(lifted_equations(kinds @ span.T)[0], compute_uv=False)
    assert sizes[-m - 1] > 1e8 * sizes[-m]
    mixed = _lifted(kinds @ span.T, rng) @ (B @ span.T).T
    # a permutation: every unmixing vector sees one head
    assert np.abs(np.sort(np.abs(mixed), axis=1)[:, -1] - 1).max() < 1e-9
    assert np.sort(np.abs(mixed), axis=1)[:, :-1].max() < 1e-9


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_twelve_heads_by_labelled_directions(seed):
    layer = planted(12, 64, seed=seed)
    learner = learned(layer)
    assert learner.n_heads_ == 12
    assert learner.method_ == "reference"
    assert learner.n_queries_ == 7064
    assert errors(learner, layer).theta_error < 1e-11
    assert errors(learner, layer).w_error < 1e-11
    assert learner.residual_ < 1e-11


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_a_float32_black_box_is_enough(seed):
    layer = planted(12, 64, seed=seed)
    learner = learned(layer, SINGLE)
    assert learner.n_heads_ == 12
    assert errors(learner, layer).theta_error < 1e-4
    layer = planted(6, 32, spread=30.0, seed=seed)
    for dtype, limit in ((SINGLE, 1e-3), (DOUBLE, 1e-11)):
        learner = learned(layer, dtype)
        assert learner.n_heads_ == 6
        assert errors(learner, layer).theta_error < limit


@pytest.mark.parametrize(
    ("m", "d", "dtype", "limit"), [(12, 24, DOUBLE, 1e-11), (12, 16, DOUBLE, 1e-11), (12, 24, SINGLE, 1e-4)]
)
def test_few_outputs_are_separated_direction_by_direction(m, d, dtype, limit):
    layer = planted(m, d)
    learner = learned(layer, dtype)
    assert (learner.method_, learner.n_heads_) == ("separate", m)
    assert errors(learner, layer).theta_error < limit


def test_labels_of_a_separated_direction_are_a_permutation():
    m, d, n = 12, 24, matching_points(12, 24)
    theta, w, _, _ = planted(m, d)
    rng = np.random.default_rng(0)
    u, w0, w1 = rng.standard_normal((n, d)), *rng.standard_normal((2, d))
    T0, T = (np.einsum("np,mpq,q->nm", u, theta, v) / 4 for v in (w0, w1))
    order = rng.permutation(m)
    a, b = np.exp(-T0), np.exp(-T)
    total = 1 + a + b
    three = (a / total) @ (w0 @ w) + (b / total) @ (w1 @ w)
    found, off = match(three, w0 @ w, T0, (w1 @ w)[order], T[:, order])
    assert np.array_equal(order[found], np.arange(m))
    assert off < 1e-3


@pytest.mark.parametrize(
    ("m", "seed"),
    [
        pytest.param(m, seed, marks=[] if (m, seed) in {(2, 0), (3, 1), (4, 2), (6, 0)} else pytest.mark.slow)
        for m in range(2, 7)
        for seed in range(3)
    ],
)
def test_one_output_shows_the_heads_as_poles(m, seed):
    layer = planted(m, 8, seed=seed, o=1)
    learner = learned(layer)
    assert (learner.method_, learner.n_heads_) == ("poles", m)
    assert errors(learner, layer).theta_error < 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("m", [2, 3])
def test_poles_in_single_precision(m, seed):
    layer = planted(m, 8, seed=seed, o=1)
    learner = learned(layer, SINGLE)
    assert (learner.method_, learner.n_heads_) == ("poles", m)
    assert errors(learner, layer).theta_error < 1e-2


@pytest.mark.parametrize("kind", ["parallel", "cancelling"])
def test_dependent_projections_are_left_to_poles(kind):
    theta, w, c, c0 = planted(3, 8)
    w = np.stack([w[0], 2 * w[0], w[2]]) if kind == "parallel" else np.stack([w[0], w[1], -w[0] - w[1]])
    layer = theta, w, c, c0
    learner = learned(layer)
    assert learner.method_ == "poles"
    assert errors(learner, layer).theta_error < 1e-9


def test_low_rank_heads_with_biases():
    layer = planted(12, 64, rank=8, spread=10.0, bias=0.5)
    learner = learned(layer, rank=8, value_rank=64)
    assert learner.n_queries_ == query_count(64, "reference", rank=8, n_heads=12, bias=True, counted=True) == 4709
    found = mha.align(learner.theta_, learner.w_, *layer[:2], key_bias=learner.key_bias_, key_bias_ref=layer[2])
    assert found.theta_error < 1e-10
    assert found.key_bias_error < 1e-10
    assert np.abs(learner.constant_ - layer[3]).max() < 1e-12
    measured = learned(layer, rank="auto")
    assert measured.separation_["rank"] == 8
    X = np.random.default_rng(1).standard_normal((20, 5, 64))
    assert np.abs(learner.predict(X) - oracle(layer)(X)).max() < 1e-9
    assert learner.score(X, oracle(layer)(X)) > 1 - 1e-15


@pytest.mark.parametrize("bias", [0.0, 0.5])
@pytest.mark.parametrize("method", ["reference", "separate"])
def test_queries_are_those_that_theory_counts(method, bias):
    for rank in (None, 8):
        layer = planted(2, 12, rank=rank, bias=bias)
        learner = learned(layer, n_heads=2, rank=rank, method=method)
        said = query_count(12, method, rank=rank, n_heads=2, bias=bias > 0)
        assert learner.n_queries_ == said
        assert errors(learner, layer).theta_error < 1e-10


def test_equal_heads_merge_and_silent_ones_are_not_seen():
    theta, w, c, c0 = planted(3, 16)
    for layer in ((theta[[0, 0, 2]], w, c, c0), (theta, w * np.array([1, 1, 0])[:, None, None], c, c0)):
        learner = learned(layer)
        assert learner.n_heads_ == 2
        assert learner.residual_ < 1e-10


def test_the_error_is_proportional_to_the_noise():
    for seed in range(3):
        layer = planted(4, 16, seed=seed)
        found = {
            sigma: errors(learned(layer, noise=sigma, n_heads=4, random_state=seed), layer).theta_error
            for sigma in (1e-6, 1e-5, 1e-4, 1e-3)
        }
        assert found[1e-4] < 5e-3
        assert all(error == pytest.approx(found[1e-4] * sigma / 1e-4, rel=0.2) for sigma, error in found.items())


@pytest.mark.parametrize("rho", [0.25, 64.0, 600.0])
def test_the_length_of_tokens_adapts_to_the_strength(rho):
    layer = planted(4, 16, rho=rho)
    assert errors(learned(layer), layer).theta_error < 1e-11


def test_a_causal_oracle_is_as_good():
    layer = planted(3, 16)
    learner = mha.QueryLearner(16, n_heads=None, random_state=0).fit(oracle(layer, causal=True))
    assert errors(learner, layer).theta_error < 1e-11


def test_a_causal_oracle_with_the_query_first_does_not_pass():
    layer = oracle(planted(3, 16), causal=True)

    def reversed_order(X):
        return layer(X[:, ::-1])[:, ::-1]

    for n_heads in (None, 3):
        with pytest.raises(ValueError, match="the last row depends on its own token only"):
            mha.QueryLearner(16, n_heads=n_heads, random_state=0).fit(reversed_order)
    with pytest.warns(ConvergenceWarning, match="fresh answers are missed"):
        assert not mha.QueryLearner(16).fit(reversed_order).converged_


def test_a_strong_single_head_is_not_silently_wrong():
    layer = planted(1, 8, rho=150.0)
    learner = mha.QueryLearner(8).fit(oracle(layer))
    assert learner.converged_
    assert errors(learner, layer).theta_error < 1e-9
    with pytest.warns(ConvergenceWarning, match="fresh answers are missed"):
        wide = mha.QueryLearner(8, method="wide").fit(oracle(layer))
    assert not wide.converged_


def test_two_heads_given_as_one_do_not_pass():
    with pytest.warns(ConvergenceWarning, match="fresh answers are missed"):
        learner = mha.QueryLearner(8).fit(oracle(planted(2, 8)))
    assert not learner.converged_
    assert learner.residual_ > 0.01


@pytest.mark.parametrize("after", [np.tanh, lambda y: y + 0.02 * y**2], ids=["tanh", "square"])
@pytest.mark.parametrize("m", [1, 2])
def test_a_nonlinearity_after_the_layer_does_not_pass_as_noise(m, after):
    layer = oracle(planted(m, 8))
    with pytest.warns(ConvergenceWarning, match="not affine in it"):
        learner = mha.QueryLearner(8, n_heads=m, random_state=0).fit(lambda X: after(layer(X)))
    assert not learner.converged_


def test_answers_in_half_precision_pass():
    layer = oracle(planted(2, 8))
    learner = mha.QueryLearner(8, n_heads=2, random_state=0).fit(lambda X: layer(X).astype(np.float16))
    assert learner.converged_
    assert mha.align(learner.theta_, learner.w_, *planted(2, 8)[:2]).theta_error < 0.01


def test_positions_are_noticed():
    layer = oracle(planted(2, 8))

    def rotary(X):
        turn = 0.3 * np.arange(X.shape[1])
        c, s = np.cos(turn)[:, None], np.sin(turn)[:, None]
        return layer(np.concatenate([c * X[..., :4] - s * X[..., 4:], s * X[..., :4] + c * X[..., 4:]], axis=-1))

    with pytest.raises(ValueError, match="the layer uses positions: answers change by"):
        mha.QueryLearner(8, n_heads=2, random_state=0).fit(rotary)


def test_a_constant_asks_for_biases():
    with pytest.warns(UserWarning, match="bias=True fits"):
        mha.QueryLearner(8, n_heads=2, random_state=0).fit(oracle(planted(2, 8, bias=0.5)))
    with pytest.warns(UserWarning, match="bias=True fits"):
        mha.QueryLearner(8).fit(oracle(planted(1, 8, bias=0.5)))


def test_what_is_known_survives_too_few_queries():
    learner = mha.QueryLearner(8, n_heads=2, max_queries=100, random_state=0)
    with pytest.raises(RuntimeError, match="max_queries=100 sequences are not enough"):
        learner.fit(oracle(planted(2, 8)))
    assert np.allclose(learner.partial_["w_sum"], planted(2, 8)[1].sum(axis=0))


def test_counting_takes_the_gap_and_not_the_floor():
    assert count_heads(np.array([3.0, 2.0, 1.0, 1.1e-6, 1e-7]), 1e-6) == 3
    assert count_heads(np.array([1e-9, 1e-10]), 1e-6) == 0


def test_the_linear_part_has_the_error_of_the_answers():
    box = Box(Oracle(oracle(planted(2, 8), noise=1e-3)), 8, 1.0, True, np.random.default_rng(0))
    assert 0.5e-3 < box.noise < 4e-3
    assert on_sphere(3, 8, 2.0, np.random.default_rng(0)).shape == (3, 8)


@pytest.mark.parametrize(
    ("options", "o", "message"),
    [
        ({"n_heads": 5, "method": "reference"}, 8, "use 'separate'"),
        ({"n_heads": 5, "method": "separate"}, 4, "use 'poles'"),
        ({"n_heads": 9, "method": "poles"}, 1, "poles separate at most 6"),
        ({"n_heads": 2, "method": "wide"}, 8, "recovers one head without biases"),
        ({"n_heads": 2, "rank": 9}, 8, "rank must be an integer"),
        ({"n_heads": 2, "extra": 0}, 8, "extra must be an integer"),
        ({"n_heads": 0}, 8, "n_heads must be an integer"),
    ],
)
def test_wrong_requests_are_named(options, o, message):
    with pytest.raises(ValueError, match=message):
        mha.QueryLearner(8, **options).fit(oracle(planted(2, 8, o=o)))


def test_zero_values_cannot_be_seen():
    with pytest.raises(ValueError, match="cannot be seen"):
        mha.QueryLearner(8, n_heads=2, random_state=0).fit(lambda X: np.zeros((*X.shape[:2], 8)))
