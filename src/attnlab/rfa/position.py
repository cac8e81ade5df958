r"""Positional encodings: the keys' places appended to the tokens, [x_i; p_i], so that order can matter.

========  ====================================================
symbol    meaning
========  ====================================================
p_i       code of place i = 1..N, unit length;  p_0 = 0
========  ====================================================
"""

from __future__ import annotations

import numpy as np

from attnlab.common.validation import one_of

ENCODINGS = ("onehot", "sinusoidal")


def codes(encoding: str, n_keys: int) -> np.ndarray:
    """Unit codes of the places, ``(n_keys, width)``.

    ``onehot`` has width n_keys; ``sinusoidal`` has 8 sines and cosines of geometrically spaced periods.
    """
    one_of("encoding", encoding, ENCODINGS)
    if encoding == "onehot":
        return np.eye(n_keys)
    # The longest period is twice the number of keys: its cosine falls all the way, so no two codes are equal.
    periods = np.geomspace(2, 2 * max(n_keys, 2), 4)
    phase = 2 * np.pi * np.arange(n_keys)[:, None] / periods
    # Four pairs of sine and cosine have length 2.
    return np.concatenate([np.sin(phase), np.cos(phase)], axis=1) / 2.0


def encode(X: np.ndarray, encoding: str) -> np.ndarray:
    """Append the places' codes to the keys and zeros to the query."""
    n, tokens, _ = X.shape
    p = codes(encoding, max(tokens - 1, 1))
    p = np.concatenate([np.zeros((1, p.shape[1])), p]) if tokens > 1 else p
    return np.concatenate([X, np.broadcast_to(p.astype(X.dtype), (n, *p.shape))], axis=2)
