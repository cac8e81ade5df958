"""Transformations of the hidden directions that leave a link unchanged."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

LARGEST = 6  # rank up to which signed permutations are enumerated: 2^6 6! = 46080


@functools.cache
def group(symmetry: Any, rank: int, limit: int | None = None) -> tuple[np.ndarray, ...]:
    """The members as r x r matrices G, W -> G W; only the first ``limit`` if one is given.

    The orthogonal group has no list; its signed permutations stand for it here.
    """
    if not isinstance(symmetry, str):
        return tuple(np.array(matrix) for matrix in symmetry)
    if symmetry in ("permutation", "hyperoctahedral", "orthogonal") and rank > LARGEST and limit is None:
        raise ValueError(f"symmetry {symmetry!r} of rank {rank} has too many members; at most rank {LARGEST}")
    signs = {
        "none": [(1,) * rank],
        "permutation": [(1,) * rank],
        "joint_sign": [(1,) * rank, (-1,) * rank],
    }.get(symmetry) or itertools.product((1, -1), repeat=rank)
    orders: Any = [tuple(range(rank))]
    if symmetry in ("permutation", "hyperoctahedral", "orthogonal"):
        orders = itertools.permutations(range(rank))
    # A generator: a limit of a few members does not enumerate r! 2^r of them.
    members = (np.diag(np.array(s, dtype=float))[list(p)] for p, s in itertools.product(orders, signs))
    return tuple(itertools.islice(members, limit))


def generators(symmetry: Any, rank: int) -> list[np.ndarray]:
    """Members of which all others are products; of the orthogonal group signed permutations and one rotation."""
    if not isinstance(symmetry, str):
        return [np.array(matrix) for matrix in symmetry]
    eye, places = np.eye(rank), np.arange(rank)
    flips = [np.diag(np.where(places == a, -1.0, 1.0)) for a in places]
    swaps = [eye[np.r_[:a, a + 1, a, a + 2 : rank]] for a in places[:-1]]
    # Any orthogonal matrix that is no signed permutation.
    rotation = np.linalg.qr(np.tri(rank))[0]
    known = {"sign": flips, "joint_sign": [-eye], "permutation": swaps, "hyperoctahedral": flips + swaps}
    return known.get(symmetry, [*flips, *swaps, rotation] if symmetry == "orthogonal" else [])
