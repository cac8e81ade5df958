"""Several random attention layers below one trained layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.seeds import stream
from attnlab.common.validation import integer
from attnlab.rfa.backend import Blas, Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures, each_token_as_query
from attnlab.rfa.learners.base import draw_seed
from attnlab.rfa.learners.features import RidgeOnFeatures
from attnlab.rfa.solvers.ridge import apply


class RFAStack(RidgeOnFeatures):
    r"""Random layers that pass messages between tokens, then random-feature attention on the result.

    In each lower layer every token attends to all tokens and appends ``width`` random read-outs to itself,

    .. math:: x_t \leftarrow
              \Big[x_t;\ \sum_m \tfrac1T \sum_s \mathrm{relu}(\tilde x_t^T W_m \tilde x_s)\, V_m \tilde x_s\Big],

    standardised over the training tokens to unit length on average; W and V are random and frozen. Only the values of
    the top layer are trained, so the problem stays convex.

    Parameters
    ----------
    n_layers : attention layers in all; 1 is :class:`RandomFeatureAttention`.
    width : random read-outs that a lower layer appends to each token.
    inner_heads : heads of a lower layer.
    n_heads, ridge, loss, solver, compute, n_tokens, random_state : of the top layer, as in
        :class:`RandomFeatureAttention`.

    Attributes
    ----------
    centers_, scales_ : (n_layers - 1, width), the standardisation of the read-outs.
    """

    def __init__(
        self,
        n_layers: Any = 2,
        *,
        width: Any = 16,
        inner_heads: Any = 64,
        n_heads: Any = 1000,
        ridge: Any = 1e-6,
        loss: Any = "squared",
        solver: Any = "auto",
        compute: Any = None,
        n_tokens: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_layers = n_layers
        self.width = width
        self.inner_heads = inner_heads
        self.n_heads = n_heads
        self.ridge = ridge
        self.loss = loss
        self.solver = solver
        self.compute = compute
        self.n_tokens = n_tokens
        self.random_state = random_state

    def _depends_on_sample(self) -> bool:
        # The read-outs of lower layers are standardised on the training tokens.
        return bool(self.n_layers > 1)

    def _prepare(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Standardise the read-outs of each lower layer on the training tokens."""
        for name in ("n_layers", "width", "inner_heads", "n_heads"):
            integer(name, getattr(self, name), low=1)
        self.centers_ = np.zeros((self.n_layers - 1, self.width))
        self.scales_ = np.ones((self.n_layers - 1, self.width))
        for layer in range(self.n_layers - 1):
            Z = self._read_outs(X, layer)
            # A read-out that is the same for all tokens has deviation zero.
            self.centers_[layer], self.scales_[layer] = Z.mean(axis=(0, 1)), Z.std(axis=(0, 1)) + 1e-12
            X = self._append(X, Z, layer)

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        for layer in range(self.n_layers - 1):
            X = self._append(X, self._read_outs(X, layer), layer)
        return X

    def _read_outs(self, X: np.ndarray, layer: int) -> np.ndarray:
        d, device = X.shape[2], Blas(self._dtype)
        # A seed for each layer: with the same one the layers would share their random numbers.
        heads = AttentionFeatures(self.inner_heads, d, draw_seed(self.seed_, "layer", layer), mean_matrix(None, d))
        V = stream(self.seed_, "learner", "rfa", "read-outs", layer).standard_normal((sum(heads.sizes), self.width))
        return apply(Features(heads, device.put(each_token_as_query(X)), device), V).reshape(*X.shape[:2], self.width)

    def _append(self, X: np.ndarray, Z: np.ndarray, layer: int) -> np.ndarray:
        Z = (Z - self.centers_[layer]) / (self.scales_[layer] * np.sqrt(self.width))
        return np.concatenate([X, Z], axis=2)

    def _feature_map(self) -> AttentionFeatures:
        d = self.d_ + (self.n_layers - 1) * self.width
        return AttentionFeatures(self.n_heads, d, self.seed_, mean_matrix(None, d))
