import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.common.seeds import canonical, cell_seed, digest, generator, jax_key, seed_sequence, spawn


def state(seed) -> tuple[int, ...]:
    return tuple(seed_sequence(seed).generate_state(4).tolist())


def test_an_int_means_what_it_means_to_numpy():
    assert np.array_equal(generator(7).standard_normal(5), np.random.default_rng(7).standard_normal(5))
    assert state(np.int64(7)) == state(7)


@pytest.mark.parametrize(("one", "other"), [(-1, 1), (-5, 5), (-5, 2**32 + 5), (0, -1), (-1, -2), (2**64, 0)])
def test_different_ints_are_different_seeds(one, other):
    assert state(one) != state(other)


def test_negative_seeds_of_any_size_work():
    assert len({state(-(2**k)) for k in (0, 31, 32, 63, 64, 100)}) == 6


@given(st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64))
def test_seeds_agree_exactly_when_the_ints_do(one, other):
    # 128 hashed bits: a chance collision of different ints has probability 2^-128
    assert (state(one) == state(other)) == (one == other)


def test_a_seed_sequence_passes_through():
    root = np.random.SeedSequence(3, spawn_key=(1,))
    assert seed_sequence(root) is root


def test_a_generator_passes_through_or_is_advanced_by_one_draw():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng
    expected = np.random.SeedSequence(int(np.random.default_rng(0).integers(2**63)))
    assert state(rng) == tuple(expected.generate_state(4).tolist())
    assert state(rng) != tuple(expected.generate_state(4).tolist())


def test_none_is_fresh_entropy():
    assert state(None) != state(None)


@pytest.mark.parametrize("seed", [True, 1.0, "0", [1, 2], np.bool_(True)])
def test_other_seeds_are_refused(seed):
    # The body is tested here: the run-time check of annotations would refuse these before it.
    undecorated = getattr(seed_sequence, "__wrapped__", seed_sequence)
    with pytest.raises(TypeError, match="seed must be an int, SeedSequence, Generator, RandomState or None"):
        undecorated(seed)


def test_spawned_seeds_depend_on_the_seed_only():
    root = np.random.SeedSequence(5)
    first, second = spawn(root, 3), spawn(root, 5)
    assert [state(s) for s in first] == [state(s) for s in second[:3]]
    assert len({state(s) for s in second} | {state(root)}) == 6
    assert [state(s) for s in first] == [state(s) for s in np.random.SeedSequence(5).spawn(3)]


def test_spawning_twice_gives_new_families():
    children = [spawn(child, 2) for child in spawn(0, 2)]
    assert len({state(s) for family in children for s in family}) == 4


def test_jax_keys_follow_the_seed_in_either_precision():
    import jax

    words = jax.random.key_data(jax_key(11))
    assert np.array_equal(words, np.random.SeedSequence(11).generate_state(2, np.uint32))
    assert np.array_equal(words, jax.random.key_data(jax_key(np.random.SeedSequence(11))))
    with jax.enable_x64(True):
        assert np.array_equal(words, jax.random.key_data(jax_key(11)))


PARAMS = {"d": 64, "lam": 0.1, "name": "erf", "flag": True, "none": None, "list": [1, 2.5], "deep": {"b": 1, "a": -0.0}}


def test_the_digest_is_sha256_of_sorted_compact_json():
    text = json.dumps(PARAMS, sort_keys=True, separators=(",", ":"))
    assert canonical(PARAMS) == text
    assert digest(PARAMS) == hashlib.sha256(text.encode()).hexdigest()


def test_the_digest_of_a_known_text_is_known():
    # printf '{"a":2,"b":0.1}' | sha256sum
    assert digest({"b": 0.1, "a": 2}) == "391b4745f4c1de83b94eeaff40963baf7eacf406be7f60d507f10e9ac7ccf77d"


def test_the_order_and_the_container_types_do_not_matter():
    other = dict(reversed(PARAMS.items())) | {
        "d": np.int32(64),
        "lam": np.float64(0.1),
        "name": np.str_("erf"),
        "flag": np.bool_(True),
        "list": (np.int8(1), 2.5),
    }
    assert digest(other) == digest(PARAMS)


@pytest.mark.parametrize(
    "changes", [{"d": 65}, {"d": 64.0}, {"lam": 0.1 + 2**-56}, {"flag": 1}, {"none": "None"}, {"list": [2.5, 1]}]
)
def test_any_change_of_value_changes_the_digest(changes):
    assert digest(PARAMS | changes) != digest(PARAMS)


def test_what_is_not_plain_is_refused():
    for value in (np.zeros(2), {1, 2}, object(), digest):
        with pytest.raises(TypeError, match="a cell's parameters are numbers, strings, booleans or lists of them"):
            digest({"x": value})


def test_the_seed_of_a_cell_is_its_digest():
    entropy = int(hashlib.sha256(b'{"d":4}').hexdigest()[:32], 16)
    assert state(cell_seed({"d": 4})) == state(np.random.SeedSequence(entropy))


def test_the_digest_does_not_depend_on_the_process():
    code = f"from attnlab.common.seeds import digest; print(digest({PARAMS!r}))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": str(k)}, capture_output=True, text=True, check=True
        )
        for k in (1, 2)
    ]
    assert {run.stdout.strip() for run in runs} == {digest(PARAMS)}
