r"""Which combinations of the tokens are multiplied by S, and how the products become whitened indices.

==========  ==============================================================================================
symbol      meaning
==========  ==============================================================================================
e_b         tokens in the frame: x_b; or x_b - x_T for b < T and x_T itself (``differences``)
D_ab        e_a^T S e_b for a <= b, a < ``probes``: only the probes e_a are multiplied by S
mixing      sqrt(d) z = D @ mixing - Tr S centre, z_ab = h_ab / sqrt(1 + delta_ab) for a <= b
==========  ==============================================================================================

Softmax and hardmax rows do not change when one constant is added to all of h. For them x_T^T S x_T is not needed, and
T - 1 products with S do the work of T: half of it for two tokens. The indices then come out up to that constant.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.aim.indices import n_pairs, pair_of, pair_scale, pairs


@dataclass(frozen=True)
class Frame:
    """The frame of T tokens; immutable, so that it can be a static argument of a compiled program."""

    tokens: int
    differences: bool

    @property
    def probes(self) -> int:
        """Number of vectors that are multiplied by S."""
        return self.tokens - self.differences

    @functools.cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(a, b) of every D_ab."""
        return tuple((a, b) for a in range(self.probes) for b in range(a, self.tokens))

    def pairs_from(self, a: int) -> slice:
        """The positions of the pairs (a, a), (a, a + 1), ... that share the probe e_a."""
        start = sum(self.tokens - first for first in range(a))
        return slice(start, start + self.tokens - a)

    @functools.cached_property
    def mixing(self) -> np.ndarray:
        """sqrt(d) z = D @ mixing - Tr S centre."""
        last, table = self.tokens - 1, pair_of(self.tokens)
        mixing = np.zeros((len(self.pairs), n_pairs(self.tokens)))
        for row, (a, b) in enumerate(self.pairs):
            mixing[row, table[a, b]] += 1
            if self.differences and b == last:  # x_a = e_a + x_T: D_aT is in every h_ac
                others = [table[a, c] for c in range(last)]
                mixing[row, others] += 1
                mixing[row, table[a, a]] += 1
        return np.asarray(mixing / pair_scale(self.tokens))

    @functools.cached_property
    def centre(self) -> np.ndarray:
        """The share of Tr S in each whitened index."""
        return np.where(np.equal(*pairs(self.tokens)), np.sqrt(0.5), 0.0)

    def view(self, X: Any) -> Any:
        """Tokens (..., T, d) in the frame; NumPy or JAX arrays."""
        if not self.differences:
            return X
        xp = np if isinstance(X, np.ndarray) else X.__array_namespace__()
        return xp.concatenate([X[..., :-1, :] - X[..., -1:, :], X[..., -1:, :]], axis=-2)

    def indices(self, D: Any, trace: Any, d: int) -> Any:
        """Whitened indices (m, p) from products (m, pairs)."""
        return D @ (self.mixing / np.sqrt(d)) - trace / np.sqrt(d) * self.centre

    def weights(self, g: Any, d: int) -> Any:
        """The coefficient of every e_a e_b^T in A^T g, (m, pairs)."""
        return g @ (self.mixing.T / np.sqrt(d))

    def trace_weight(self, g: Any, d: int) -> Any:
        """The coefficient of -I in A^T g."""
        return (g @ self.centre).sum() / np.sqrt(d)
