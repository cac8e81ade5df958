r"""How scores become attention weights, written once for NumPy and JAX arrays.

==========  ==================================================================================
symbol      meaning
==========  ==================================================================================
S           scores x_0^T W_m x_i, shape (n, N, heads)
A           attention weights, same shape: sigma(S), softmax over the keys, or relu(S)/sum
==========  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import special

from attnlab.common.validation import one_of

NORMALIZATIONS = ("mean", "softmax", "relu_sum")


def _erf(xp: Any, S: Any) -> Any:
    if xp is np:
        return special.erf(S)
    import jax

    return jax.scipy.special.erf(S)


# sigma of the "mean" normalisation; each has a closed-form kernel of the same name in kernels.py.
ACTIVATIONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "relu": lambda xp, S: xp.maximum(S, 0),
        "exp": lambda xp, S: xp.exp(S),
        "identity": lambda xp, S: S,
        "square": lambda xp, S: S * S,
        "erf": _erf,
    }
)
SCORES = (*ACTIVATIONS, "softmax")


def check_score(score: str, normalize: str) -> tuple[str, str]:
    """The pair (score, normalize) in its one canonical form.

    Softmax and relu_sum fix the score function themselves: ``score`` must then be left at its default or agree.

    >>> check_score("softmax", "mean")
    ('exp', 'softmax')
    """
    one_of("score", score, SCORES)
    one_of("normalize", normalize, NORMALIZATIONS)
    if normalize == "relu_sum":
        if score != "relu":
            raise ValueError(
                f"normalize='relu_sum' divides ReLU scores by their sum; score must be 'relu', got {score!r}"
            )
        return "relu", "relu_sum"
    if score == "softmax" or normalize == "softmax":
        if score not in ("softmax", "exp", "relu"):
            raise ValueError(f"normalize='softmax' exponentiates the scores itself; score={score!r} contradicts it")
        return "exp", "softmax"
    return score, "mean"


def attend(xp: Any, S: Any, score: str, normalize: str) -> Any:
    """Attention weights over the keys (axis 1); the 1/N of ``mean`` is left to the caller, who folds it into a scale.

    ``xp`` is numpy or jax.numpy.
    """
    if normalize == "softmax":
        E = xp.exp(S - S.max(axis=1, keepdims=True))
        return E / E.sum(axis=1, keepdims=True)
    A = ACTIVATIONS[score](xp, S)
    if normalize == "relu_sum":
        return A / xp.maximum(A.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return A
