"""Baselines without heads: random units on the concatenated tokens, and on (query, key) pairs pooled over keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.validation import integer
from attnlab.rfa.features import MLPFeatures, PatchFeatures
from attnlab.rfa.learners.features import RidgeOnFeatures

HEADS_MATCHED = 1000


class _RandomUnits(RidgeOnFeatures):
    """Parameters of the two baselines."""

    def __init__(
        self,
        width: Any = None,
        *,
        ridge: Any = 1e-6,
        loss: Any = "squared",
        solver: Any = "auto",
        compute: Any = None,
        n_tokens: Any = None,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.ridge = ridge
        self.loss = loss
        self.solver = solver
        self.compute = compute
        self.n_tokens = n_tokens
        self.random_state = random_state

    def _prepare(self, X: np.ndarray, Y: np.ndarray) -> None:
        """None means as many trained parameters as 1000 attention heads have."""
        default = HEADS_MATCHED * (self.d_ + 1)
        self.width_ = default if self.width is None else integer("width", self.width, low=1)


class RandomFeatureMLP(_RandomUnits):
    r"""Ridge regression on random ReLU units that see all tokens concatenated (RFMLP, arXiv:2307.11353).

    .. math:: f(x) = \sum_m a_m\, \mathrm{relu}(\langle w_m, [x_0; \dots; x_N; 1]\rangle),
              \qquad w_m \sim \mathcal N(0, I/(N+2))

    ``width=None`` takes 1000 (d + 1) units, as many trained parameters as 1000 heads. Other parameters as in
    :class:`RandomFeatureAttention`.
    """

    def _feature_map(self) -> MLPFeatures:
        return MLPFeatures(self.width_, self.d_, self.tokens_, self.seed_)


class PatchRandomFeatures(_RandomUnits):
    r"""Ridge regression on random ReLU units of (query, key) pairs, averaged over the keys: the pooled control.

    .. math:: f(x) = \sum_m a_m\, \tfrac1N \sum_i \mathrm{relu}(\langle w_m, [x_0; x_i; 1]\rangle),
              \qquad w_m \sim \mathcal N(0, I/3)

    It is invariant under permutations of the keys, as attention is, but has no heads: it separates what pooling gives
    from what attention gives. ``width=None`` takes 1000 (d + 1) units.
    """

    def _feature_map(self) -> PatchFeatures:
        return PatchFeatures(self.width_, self.d_, self.seed_)
