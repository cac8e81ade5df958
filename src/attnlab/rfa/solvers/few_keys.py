r"""The Gram matrix of attention features when there are few keys: products of scores in place of products of features.

.. math:: G(x, x') = \sum_{i,j} \langle v_i, v'_j\rangle \sum_m A_m(x, i)\, A_m(x', j)

==========  ============================================================================
symbol      meaning
==========  ============================================================================
A           attention weights (n, N, heads) of a group of heads
v           homogenised keys (n, N, D), carrying the scale of the features
==========  ============================================================================

N (N + 1) n^2 FLOP a head, against D n^2 for the symmetric product of the features.
"""

from __future__ import annotations

import numpy as np

from attnlab.rfa.backend import Blas, Features
from attnlab.rfa.features import BLOCK, AttentionFeatures, query_and_keys

# Heads taken together: the products of the keys, formed once for each group, then cost little beside those of scores.
GROUP = 8 * BLOCK


def has_few_keys(features: Features) -> bool:
    """Whether the scores are the cheaper way, on a CPU."""
    if not (isinstance(features.feature_map, AttentionFeatures) and isinstance(features.backend, Blas)):
        return False
    N = query_and_keys(features.tokens)[1].shape[1]
    return bool(features.feature_map.d + 1 > N * (N + 1))


def gram_of_scores(features: Features) -> np.ndarray:
    """Phi Phi^T, whole; memory O(n^2 + n N GROUP)."""
    heads = features.feature_map
    assert isinstance(heads, AttentionFeatures)
    inputs = features.backend.inputs(heads, features.tokens)
    (n, N), dtype = inputs[1].shape[:2], inputs[1].dtype
    values = inputs[2].transpose(2, 0, 1)
    G = np.zeros((n, n), dtype=dtype)
    count = GROUP // BLOCK
    for first in range(0, len(heads.sizes), count):
        blocks = [heads.block(index).astype(dtype) for index in range(len(heads.sizes))[first : first + count]]
        A = np.concatenate([heads.attention(np, inputs, block) for block in blocks], axis=2).transpose(1, 0, 2)
        for i in range(N):
            for j in range(i + 1):
                term = A[i] @ A[j].T
                term *= values[i] @ values[j].T
                G += term
                # The term (j, i) is the transpose of (i, j).
                if j < i:
                    G += term.T
    return G
