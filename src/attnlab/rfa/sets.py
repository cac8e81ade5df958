"""Any (query, set) data as tokens: adapters, unit normalisation, and sets of different sizes in one padded array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.common.validation import finite_array


def query_set(queries: Any, sets: Any, *, normalize: bool = True) -> np.ndarray | list[np.ndarray]:
    """Put each query before its set: an array ``(n, N + 1, d)``, or a list of ``(N_i + 1, d)`` if sizes differ.

    With ``normalize`` every token is scaled to unit length (a zero token stays zero).

    >>> X = query_set(np.ones((2, 3)), [np.ones((4, 3)), np.ones((2, 3))])
    >>> [x.shape for x in X]
    [(5, 3), (3, 3)]
    """
    queries = finite_array("queries", queries, ndim=2)
    if len(queries) != len(sets):
        raise ValueError(f"queries and sets must have the same length, got {len(queries)} and {len(sets)}")
    d = queries.shape[1]
    examples = [np.vstack([q, finite_array("sets", s, shape=(None, d))]) for q, s in zip(queries, sets, strict=True)]
    if normalize:
        # A token of zeros stays zero: it has no direction.
        examples = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(float).tiny) for x in examples]
    same = len({len(x) for x in examples}) == 1
    return np.stack(examples) if same else examples


@dataclass(frozen=True)
class Padded:
    """Queries ``(n, d)``, keys ``(n, N_max, d)`` and the number of true keys of each example."""

    query: np.ndarray
    keys: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, rows: slice) -> Padded:
        return Padded(self.query[rows], self.keys[rows], self.counts[rows])


def pad(X: np.ndarray | Sequence[np.ndarray]) -> Padded:
    """Tokens of equal or different numbers of keys as one padded batch; a lone token is its own key."""
    if isinstance(X, np.ndarray) and X.ndim == 3:
        X = finite_array("X", X)
        keys = X[:, 1:] if X.shape[1] > 1 else X
        return Padded(X[:, 0], keys, np.full(len(X), keys.shape[1]))
    examples = [finite_array("X", x, ndim=2) for x in X]
    if not examples or {x.shape[1] for x in examples} != {examples[0].shape[1]}:
        raise ValueError(
            f"X must be examples (N_i + 1, d) of one width d, got shapes {[x.shape for x in examples][:5]}"
        )
    if min(len(x) for x in examples) < 1:
        raise ValueError("X holds an example without tokens")
    sets = [x[1:] if len(x) > 1 else x for x in examples]
    counts = np.array([len(s) for s in sets])
    # Zeros behind the true keys; the kernel gives them weight zero by the counts.
    keys = np.zeros((len(sets), counts.max(), examples[0].shape[1]))
    for row, s in zip(keys, sets, strict=True):
        row[: len(s)] = s
    return Padded(np.stack([x[0] for x in examples]), keys, counts)
