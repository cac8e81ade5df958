"""Batches of token sequences, ``(n, tokens, d)``: the one data shape of all four systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.validation import finite_array, integer


def check_tokens(
    X: Any,
    *,
    n_tokens: int | None = None,
    d: int | None = None,
    min_samples: int = 1,
    flat_tokens: int | None = None,
) -> np.ndarray:
    """Return ``X`` as a finite float array ``(n, tokens, d)``.

    Parameters
    ----------
    X : array of shape (n, tokens, d), or (n, tokens * d) when ``flat_tokens`` is given.
    n_tokens, d : the lengths required, where known (a fitted learner knows both).
    flat_tokens : number of tokens of the flat form, for learners that declare it (``n_tokens`` in their parameters).

    >>> check_tokens(np.zeros((5, 3, 2))).shape
    (5, 3, 2)
    >>> check_tokens(np.zeros((5, 6)), flat_tokens=3).shape
    (5, 3, 2)
    """
    array = finite_array("X", X)
    if flat_tokens is not None and array.ndim == 2:
        flat_tokens = integer("n_tokens", flat_tokens, low=1)
        if array.shape[1] % flat_tokens:
            raise ValueError(
                f"X of shape {array.shape} cannot be split into n_tokens={flat_tokens} tokens of equal width"
            )
        array = array.reshape(len(array), flat_tokens, -1)
    if array.ndim != 3:
        raise ValueError(f"X must have shape (n, tokens, d), got {array.shape}")
    n, have_tokens, have_d = array.shape
    if n < min_samples:
        raise ValueError(f"X must hold at least {min_samples} sample(s), got shape {array.shape}")
    if have_tokens == 0 or have_d == 0:
        raise ValueError(f"X must hold at least one token of width 1, got shape {array.shape}")
    if n_tokens is not None and have_tokens != n_tokens:
        raise ValueError(f"X must have {n_tokens} tokens, got shape {array.shape}")
    if d is not None and have_d != d:
        raise ValueError(f"X must have tokens of width d={d}, got shape {array.shape}")
    return array


def check_targets(y: Any, n: int, *, shape: tuple[int | None, ...] = ()) -> np.ndarray:
    """Return ``y`` as a finite float array of shape ``(n, *shape)``; None in ``shape`` is any length."""
    return finite_array("y", y, shape=(n, *shape))
