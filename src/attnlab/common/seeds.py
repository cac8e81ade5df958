"""Randomness is an argument, and this is the only file that makes generators.

A seed is an int, a SeedSequence, a Generator, a RandomState or None. Every draw names its purpose by tags, and equal
seeds with different tags give independent numbers: the planted truth, the data, the learner and the test set never
share any, whatever integers a user gives.

==========  =================================================
tag         what is drawn
==========  =================================================
plant       the hidden parameters of a task
data        tokens and outputs of ``task.sample``
learner     starting points and random features of a learner
test        test sets, made by the lab
theory      Monte Carlo inside a theory function
==========  =================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import jax

Seed = int | np.integer | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """Turn any seed into a SeedSequence; a Generator or RandomState is advanced, None takes fresh entropy."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(int(seed.integers(2**63)))
    if isinstance(seed, np.random.RandomState):
        # four words: a single one of 31 bits would repeat among some tens of thousands of draws
        return np.random.SeedSequence([int(word) for word in seed.randint(0, 2**31 - 1, size=4)])
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"seed must be an int, SeedSequence, Generator, RandomState or None, got {seed!r}")
    # SeedSequence takes unsigned integers; its pool has 128 bits, in which a negative seed takes its two's complement.
    return np.random.SeedSequence(int(seed) if seed >= 0 else int(seed) % 2**128)


def branch(seed: Seed, *tags: str | int) -> np.random.SeedSequence:
    """The seed of one purpose, a function of ``seed`` and the tags alone.

    >>> states = [tuple(branch(seed, tag).generate_state(2)) for seed, tag in ((0, "plant"), (0, "data"), (0, "plant"))]
    >>> states[0] == states[2] != states[1]
    True
    """
    root = seed_sequence(seed)
    # Two words that a plain spawn index never takes, so that a tag cannot meet spawn(seed, n).
    words = [int.from_bytes(hashlib.sha256(repr(tag).encode()).digest()[:8], "big") | 1 << 63 for tag in tags]
    # the key of the root first: tags of a spawned seed must not meet those of its parent
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *words))


def stream(seed: Seed, *tags: str | int) -> np.random.Generator:
    """The numbers of one purpose."""
    return np.random.default_rng(branch(seed, *tags))


def generator(seed: Seed) -> np.random.Generator:
    """Return a NumPy Generator; a Generator passes through unchanged, as in NumPy."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed_sequence(seed))


def spawn(seed: Seed, n: int) -> list[np.random.SeedSequence]:
    """Return ``n`` independent seeds; they depend on ``seed`` only (``SeedSequence.spawn`` counts its calls)."""
    root = seed_sequence(seed)
    return [np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i)) for i in range(n)]


def jax_key(seed: Seed, *tags: str | int) -> jax.Array:
    """The numbers of one purpose, as a JAX key."""
    import jax

    words = jax.numpy.asarray(branch(seed, *tags).generate_state(2, np.uint32))
    # the generator is named: JAX's default one is a setting that a user can change
    key: jax.Array = jax.random.wrap_key_data(words, impl="threefry2x32")
    return key


def canonical(params: Mapping[str, Any]) -> str:
    """Return parameters as canonical JSON: sorted keys, no spaces, floats in their shortest exact form.

    >>> canonical({"b": 0.1, "a": 2})
    '{"a":2,"b":0.1}'
    """
    return json.dumps(_plain(params), sort_keys=True, separators=(",", ":"), allow_nan=True)


def digest(params: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical(params).encode()).hexdigest()


def cell_seed(params: Mapping[str, Any]) -> np.random.SeedSequence:
    """The seed of a cell: a function of its parameters alone, whatever the order, the worker or the run."""
    # 128 bits, as many as the pool of a SeedSequence holds
    return np.random.SeedSequence(int(digest(params)[:32], 16))


def _plain(value: Any) -> Any:
    """NumPy scalars and tuples as the JSON types they mean."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a cell's parameters are numbers, strings, booleans or lists of them, got {value!r}")
