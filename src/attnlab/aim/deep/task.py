"""Several attention layers with skip connections, every layer with its own planted matrix."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnlab.aim.indices import indices
from attnlab.aim.spectrum import check_rho, planted
from attnlab.common.seeds import Seed, branch, stream
from attnlab.common.validation import integer, nonnegative, positive


@dataclass(frozen=True)
class DeepTask:
    r"""Deep self-attention with tied weights, as an attention-indexed model with L indices (arXiv:2506.01582).

    .. math:: X_\ell = [c I + \sigma_\beta(X_{\ell-1} S_\ell X_{\ell-1}^T/\sqrt d)]\,X_{\ell-1}, \qquad
              y = \sigma_\beta(X_{L-1} S_L X_{L-1}^T/\sqrt d)

    with centred indices: X_l = B_l X, and every product B h B^T uses h_ab = (x_a^T S x_b - delta_ab Tr S)/sqrt(d).

    Parameters
    ----------
    d, tokens, layers : sizes.
    rho : width of every layer (``inf``: centred Gaussian prior).
    skip, beta : skip strength c and inverse temperature.
    seed : of the planted matrices ``S``, (layers, d, d).

    >>> X, y = DeepTask(d=10, layers=3).sample(4)
    >>> y.shape
    (4, 2, 2)
    """

    d: int
    tokens: int = 2
    layers: int = 2
    rho: float = 0.5
    skip: float = 1.0
    beta: float = 1.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        integer("d", self.d, low=2)
        integer("tokens", self.tokens, low=2)
        integer("layers", self.layers, low=1)
        check_rho(self.rho)
        nonnegative("skip", self.skip)
        positive("beta", self.beta)

    @functools.cached_property
    def S(self) -> Float[np.ndarray, "layers d d"]:
        """The planted attention matrices."""
        return np.stack([planted(self.d, self.rho, branch(self.seed, layer)) for layer in range(self.layers)])

    def n_samples(self, alpha: float) -> int:
        """n = round(alpha d^2), at least one sequence."""
        n = round(positive("alpha", alpha) * self.d**2)
        if n < 1:
            raise ValueError(f"alpha must give at least one sequence, got alpha={alpha} at d={self.d}")
        return n

    def outputs(self, X: Float[np.ndarray, "n tokens d"]) -> Float[np.ndarray, "n tokens tokens"]:
        """y of given sequences."""
        from attnlab.aim.deep.channel import deep_outputs

        return deep_outputs(np.stack([indices(X, S) for S in self.S]), self.skip, self.beta)

    def sample(
        self, n: int, seed: Seed = 0
    ) -> tuple[Float[np.ndarray, "n tokens d"], Float[np.ndarray, "n tokens tokens"]]:
        """Draw n sequences and their outputs."""
        X = stream(seed, "data", "aim").standard_normal((integer("n", n, low=1), self.tokens, self.d))
        return X, self.outputs(X)
