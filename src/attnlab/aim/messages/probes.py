r"""Which combinations of the tokens are multiplied by S, and how the products become whitened indices.

==========  ==============================================================================================
symbol      meaning
==========  ==============================================================================================
e_b         vectors of a sequence. Self-attention: x_b; or x_b - x_T for b < T and x_T itself (``differences``).
            Cross-attention: keys (or their differences from the last key, which is left out), then queries
D_ab        e_b^T S e_a for a probe e_a and its partners e_b: only the probes are multiplied by S
mixing      sqrt(d) z = D @ mixing - Tr S centre
==========  ==============================================================================================

Softmax and hardmax rows do not change when one constant is added to a row of h (to all of h, where S is tied and h must
stay symmetric). For them the last key is not needed, and one product with S less does the work: half of it for two
tokens. The indices then come out up to these constants.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.aim.indices import Layout


@dataclass(frozen=True)
class Probes:
    """The vectors of a layout; immutable, so that it can be a static argument of a compiled program."""

    layout: Layout
    differences: bool

    @property
    def count(self) -> int:
        """Number of vectors that are multiplied by S."""
        return self.layout.keys - self.differences

    def partners(self, a: int) -> slice:
        """The vectors that meet probe a; tied: each pair once."""
        if self.layout.cross:
            return slice(self.count, self.count + self.layout.queries)
        return slice(a if self.layout.tied else 0, self.layout.queries)

    @functools.cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """(a, b) of every D_ab, probe by probe."""
        return tuple((a, b) for a in range(self.count) for b in range(self.partners(a).start, self.partners(a).stop))

    def pairs_of(self, a: int) -> slice:
        """The positions of the pairs of probe a."""
        sizes = [self.partners(b).stop - self.partners(b).start for b in range(a + 1)]
        return slice(sum(sizes[:-1]), sum(sizes))

    @functools.cached_property
    def mixing(self) -> np.ndarray:
        """sqrt(d) z = D @ mixing - Tr S centre."""
        layout = self.layout
        last, table = layout.keys - 1, layout.component
        mixing = np.zeros((len(self.pairs), layout.p))
        for row, (a, b) in enumerate(self.pairs):
            if layout.cross:
                mixing[row, table[b - self.count, a]] = 1
            elif not self.differences or b != last:
                mixing[row, table[b, a]] = 1
            elif layout.tied:  # x_a = e_a + x_T: D_aT is in every h_ac, twice in h_aa
                mixing[row, [table[a, c] for c in range(layout.keys)]] += 1
                mixing[row, table[a, a]] += 1
            else:  # and in every h_ca
                mixing[row, table[:, a]] += 1
        return np.asarray(mixing / layout.scale)

    @functools.cached_property
    def centre(self) -> np.ndarray:
        """The share of Tr S in each whitened index."""
        layout, diagonal = self.layout, np.equal(*self.layout.entries).astype(float)
        if layout.cross:
            return np.zeros(layout.p)
        if self.differences and not layout.tied:  # h_aT is subtracted from row a, and h_TT holds a trace
            rows, columns = layout.entries
            last = layout.keys - 1
            diagonal = np.where(columns == last, 0.0, diagonal - (rows == last))
        # Tied differences: the constant taken out is x_T^T S x_T, without its trace, so that every diagonal entry keeps
        # Tr S.
        return np.asarray(diagonal / layout.scale)

    def view(self, X: Any) -> Any:
        """The vectors (..., vectors, d) of tokens (..., T, d); NumPy or JAX arrays."""
        xp = np if isinstance(X, np.ndarray) else X.__array_namespace__()
        if self.layout.cross:
            queries, keys = X[..., : self.layout.queries, :], X[..., self.layout.queries :, :]
            probes = keys[..., :-1, :] - keys[..., -1:, :] if self.differences else keys
            return xp.concatenate([probes, queries], axis=-2)
        if not self.differences:
            return X
        return xp.concatenate([X[..., :-1, :] - X[..., -1:, :], X[..., -1:, :]], axis=-2)

    def indices(self, D: Any, trace: Any, d: int) -> Any:
        """Whitened indices (m, p) from products (m, pairs)."""
        return D @ (self.mixing / np.sqrt(d)) - trace / np.sqrt(d) * self.centre

    def weights(self, g: Any, d: int) -> Any:
        """The coefficient of every e_b e_a^T in A^T g, (m, pairs)."""
        return g @ (self.mixing.T / np.sqrt(d))

    def trace_weight(self, g: Any, d: int) -> Any:
        """The coefficient of -I in A^T g."""
        return (g @ self.centre).sum() / np.sqrt(d)

    def oriented(self, total: Any) -> Any:
        """Sum of e_a e_b^T, probe first, as a gradient in S: symmetric where S is, otherwise partner first."""
        return (total + total.T) / 2 if self.layout.tied else total.T
