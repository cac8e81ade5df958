import os
import subprocess
import sys

import numpy as np
import pytest

from attnlab.common.compute import Compute
from attnlab.rfa.accelerator import Accelerator, sharded_gram
from attnlab.rfa.activations import ACTIVATIONS, Relu, ReluSum, SoftmaxWeights, as_activation
from attnlab.rfa.backend import Blas, Features, backend
from attnlab.rfa.bias import mean_matrix, moment_bias
from attnlab.rfa.features import AttentionFeatures, MLPFeatures, PatchFeatures, each_token_as_query
from attnlab.rfa.position import codes, encode
from attnlab.rfa.sets import pad, query_set
from attnlab.rfa.task import Task

D, N = 5, 4


def attention(heads=7, d=D, bias=None, **options):
    return AttentionFeatures(heads, d, 3, mean_matrix(bias, d), **options)


def compute(feature_map, X, dtype="float64"):
    device = Blas(dtype)
    return np.concatenate(list(Features(feature_map, device.put(X), device)), axis=1)


@pytest.fixture
def X():
    return Task(d=D, n_keys=N).sample(11, seed=2)[0]


def direct(feature_map, X):
    """The definition, head by head and key by key."""
    W = np.concatenate([feature_map.heads(i) for i in range(len(feature_map.sizes))]).astype(float)
    Xt = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
    scores = np.einsum("na,mab,nib->nmi", Xt[:, 0], W, Xt[:, 1:])
    return np.einsum("nmi,nib->nmb", np.maximum(scores, 0), Xt[:, 1:]) / (X.shape[1] - 1) / np.sqrt(len(W))


@pytest.mark.parametrize("heads", [7, 128, 300])
def test_features_are_the_definition(X, heads):
    feature_map = attention(heads, bias="identity")
    ours = feature_map.by_head(compute(feature_map, X).T)  # (M, D, n)
    np.testing.assert_allclose(ours.transpose(2, 0, 1), direct(feature_map, X), atol=1e-14)


def test_threads_do_not_change_the_features(monkeypatch):
    tokens = Task(d=D, n_keys=N).sample(333, seed=0)[0]
    alone = compute(attention(20), tokens)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    np.testing.assert_array_equal(compute(attention(20), tokens), alone)


def test_the_first_heads_are_a_prefix_of_more_heads():
    few, many = attention(100), attention(600)
    np.testing.assert_array_equal(few.heads(0), many.heads(0)[:100])


def test_permuting_keys_leaves_attention_unchanged_and_moves_the_mlp(X):
    order = [0, 3, 1, 4, 2]
    same = [attention(50), PatchFeatures(64, D, 0)]
    for feature_map in same:
        assert np.abs(compute(feature_map, X) - compute(feature_map, X[:, order])).max() < 1e-6
    mlp = MLPFeatures(64, D, N + 1, 0)
    change = np.linalg.norm(compute(mlp, X) - compute(mlp, X[:, order])) / np.linalg.norm(compute(mlp, X))
    assert change > 0.3


def test_scores_have_unit_variance_on_the_sphere():
    feature_map = attention(20_000, d=3)
    x = np.array([0.6, 0.8, 0.0, 1.0])
    W = np.concatenate([feature_map.heads(i) for i in range(len(feature_map.sizes))])
    # relative error of a variance from 20 000 draws: sqrt(2/20000) = 1 %; five of them
    assert abs(np.einsum("a,mab,b->m", x, W, x).var() - 1) < 0.05


def test_softmax_weights_sum_to_one_so_the_constant_coordinate_is_constant(X):
    feature_map = attention(9, activation=SoftmaxWeights())
    by_head = feature_map.by_head(compute(feature_map, X).T)
    np.testing.assert_allclose(by_head[:, -1], 1 / 3, atol=1e-14)


def test_relu_sum_weights_sum_to_one_or_vanish(X):
    feature_map = attention(9, activation=ReluSum())
    constant = 3 * feature_map.by_head(compute(feature_map, X).T)[:, -1]
    assert np.all((np.abs(constant - 1) < 1e-12) | (constant == 0))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_accelerator_gives_the_same_features_and_products(X, name):
    feature_map = attention(300, activation=as_activation(name))
    device = Accelerator.first("cpu")
    ours, reference = Features(feature_map, device.put(X), device), compute(feature_map, X)
    theirs = np.concatenate([np.asarray(b) for b in ours], axis=1)
    np.testing.assert_allclose(theirs, reference, atol=2e-6)
    G = device.zeros((len(X), len(X)))
    for block in ours:
        G = device.add_gram(G, block)
    np.testing.assert_allclose(np.asarray(G), reference @ reference.T, rtol=1e-5, atol=1e-5)
    y = np.arange(len(X), dtype=float)[:, None]
    solved = device.solve(G, 0.1, y)
    expected = np.linalg.solve(np.asarray(G, dtype=float) + 0.1 * np.eye(len(X)), y)
    np.testing.assert_allclose(solved, expected, rtol=1e-8)


SHARDED = """
import jax, numpy as np
from attnlab.rfa.accelerator import sharded_gram
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures, MLPFeatures
from attnlab.rfa.task import Task
devices = jax.devices()
assert len(devices) == 4
X = Task(d=5, n_keys=4).sample(101, seed=2)[0]
for feature_map in (AttentionFeatures(300, 5, 3, mean_matrix("identity", 5)), MLPFeatures(3000, 5, 5, 0)):
    one, four = (np.asarray(sharded_gram(feature_map, X, devices[:k]), float) for k in (1, 4))
    whole = sharded_gram(feature_map, X[:100])
    assert len(whole.sharding.device_set) == 4
    assert {shard.data.shape for shard in whole.addressable_shards} == {(25, 100)}
    blocks = [feature_map.block(i) for i in range(len(feature_map.sizes))]
    Phi = [feature_map.apply(np, feature_map.inputs(np, X), weights.astype(float)) for weights in blocks]
    exact = sum(block @ block.T for block in Phi)
    print(abs(one - four).max() / abs(exact).max(), abs(four - exact).max() / abs(exact).max())
"""


def test_a_gram_matrix_in_shards_is_that_of_the_features(X):
    Phi = compute(attention(9), X)
    np.testing.assert_allclose(sharded_gram(attention(9), X), Phi @ Phi.T, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_a_gram_matrix_spread_over_four_devices_is_that_of_one():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", SHARDED], env={**os.environ, **flags}, capture_output=True, text=True, check=True
    )
    # float32 sums of a few thousand terms, in another order
    assert max(map(float, done.stdout.split())) < 3e-6


def test_a_missing_gpu_is_named():
    with pytest.raises(ValueError, match="JAX sees no GPU"):
        backend(Compute("gpu"))


def test_a_singular_system_is_solved_with_least_norm():
    G = np.ones((3, 3), dtype=np.float32)
    alpha = Blas().solve(G, 0.0, np.ones((3, 1)))
    np.testing.assert_allclose(alpha, 1 / 3, rtol=1e-6)


def test_self_attention_makes_every_token_a_query(X):
    expanded = each_token_as_query(X)
    assert expanded.shape == (11 * (N + 1), N + 2, D)
    np.testing.assert_array_equal(expanded[1], np.vstack([X[0, 1], X[0]]))


def test_positions_have_unit_length_and_leave_the_query_alone(X):
    for encoding in ("onehot", "sinusoidal"):
        np.testing.assert_allclose(np.linalg.norm(codes(encoding, 6), axis=1), 1)
        coded = encode(X, encoding)
        np.testing.assert_array_equal(coded[..., :D], X)
        assert (coded[:, 0, D:] == 0).all()


def test_query_set_normalises_and_pads():
    rng = np.random.default_rng(0)
    X = query_set(rng.standard_normal((2, 3)), [rng.standard_normal((4, 3)), rng.standard_normal((2, 3))])
    assert isinstance(X, list)
    np.testing.assert_allclose(np.linalg.norm(X[0], axis=1), 1)
    padded = pad(X)
    assert padded.keys.shape == (2, 4, 3)
    assert list(padded.counts) == [4, 2]
    assert (padded.keys[1, 2:] == 0).all()


def test_moment_bias_finds_the_planted_rotation(seed):
    task = Task("mixed_rotation", gamma=0.0, d=8, n_keys=16)
    X, y = task.sample(20_000, seed=seed)
    S = moment_bias(X, y)
    S = S * np.sign(np.sum(S * task.rotation))
    cosine = np.sum(S * task.rotation) / 8
    # 20 000 examples against 8^3 unknowns: the noise of the moment is a few per cent
    assert cosine > 0.9


@pytest.mark.parametrize(("degrees", "cosine"), [(0, 1.0), (45, 0.92), (60, 0.87)])
def test_moment_bias_of_rank_one_is_as_far_off_as_its_docstring_says(degrees, cosine):
    d, angle = 16, np.radians(degrees)
    X, _ = Task(d=d, n_keys=1).sample(100_000, seed=1)
    query, key = X[:, 0], X[:, 1]
    # S = e_0 e_1^T, and b at this angle to e_1
    y = query[:, 0] * key[:, 1] * (np.cos(angle) * key[:, 1] + np.sin(angle) * key[:, 2])
    # 0.02 for the noise of the moment and the trace
    assert abs(moment_bias(X, y)[0, 1]) / np.sqrt(d) == pytest.approx(cosine, abs=0.02)


def test_maps_with_other_weights_differ_and_share_their_program():
    first, second = attention(5), AttentionFeatures(5, D, 4, mean_matrix(None, D))
    assert first != second
    assert first == attention(5)
    assert first != attention(5, bias="identity")
    assert first.program == second.program == attention(5, bias="identity").program
    assert hash(first.program) == hash(second.program)
    assert MLPFeatures(4, D, 3, 0) != MLPFeatures(4, D, 3, 1)
    assert PatchFeatures(4, D, 0).program == PatchFeatures(4, D, 1).program


def test_a_spread_that_is_not_positive_is_named():
    with pytest.raises(ValueError, match="tau must be"):
        Relu(tau=0.0)


def test_a_bias_of_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"bias must have shape \(3, 3\)"):
        mean_matrix(np.eye(2), 3)
