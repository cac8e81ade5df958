"""Numbers of different purposes never meet, whatever integers are given."""

import itertools

import numpy as np
import pytest

from attnlab.common.seeds import branch, jax_key, spawn, stream

TAGS = ("plant", "data", "learner", "test")


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(TAGS, 2)))
def test_equal_seeds_with_different_tags_are_uncorrelated(one, other):
    a, b = (stream(0, tag).standard_normal(10_000) for tag in (one, other))
    assert abs(a @ b) / 10_000 < 4 / 100  # four standard errors


def test_a_stream_is_a_function_of_seed_and_tags():
    assert stream(3, "data").random() == stream(3, "data").random()
    assert stream(3, "data", "noise").random() != stream(3, "noise", "data").random()
    assert stream(3, "data").random() != stream(3, "data", 0).random()


def test_a_branch_never_meets_a_spawned_seed():
    keys = {branch(0, tag).spawn_key for tag in range(100)} & {child.spawn_key for child in spawn(0, 100)}
    assert not keys


def test_every_kind_of_seed_is_taken():
    for seed in (
        1,
        np.int64(1),
        np.random.SeedSequence(1),
        np.random.default_rng(1),
        np.random.RandomState(1),
        None,
        -1,
    ):
        assert 0 <= stream(seed, "data").random() < 1


def test_jax_keys_follow_the_tags():
    import jax

    one, other = (jax.random.key_data(jax_key(0, tag)) for tag in TAGS[:2])
    assert not np.array_equal(one, other)
