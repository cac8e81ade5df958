r"""Channels whose output is a set of exact linear measurements of the indices: softmax and linear.

y fixes the projection :math:`\Pi z` on k directions and nothing else. With z^0 = Pi z read off y,

.. math:: g = -\Pi(\omega - z^0)/(V + noise), \qquad E\|g\|^2 = k/(V + noise).

Source: arXiv:2506.01582; masks and untied layouts derived here.  Status: exact.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attnlab.aim.channels.channel import Channel, Integral, NotSolved
from attnlab.aim.indices import Layout

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class Measurement(Channel):
    """Exact linear measurements; a subclass says which (``functionals``) and reads them off y (``summary``)."""

    losses: ClassVar[tuple[str, ...]] = ("squared_output", "logits")

    def functionals(self, layout: Layout) -> np.ndarray:
        """Linear functionals of z that y fixes, (m, p); they need not be independent."""
        raise NotImplementedError

    def check(self, layout: Layout) -> None:
        """Refuse layouts in which y says nothing."""
        if not self.informative(layout):
            raise NotSolved(
                f"channel {self.name!r} needs at least 2 tokens that a row sees, got tokens={layout.keys}, "
                f"mask={layout.mask}"
            )

    def informative(self, layout: Layout) -> int:
        """k, the rank of the projection."""
        return len(basis(self, layout))

    def g(self, summary: jax.Array, omega: jax.Array, V: jax.Array, layout: Layout) -> jax.Array:
        """The output function."""
        result: jax.Array = (summary - omega) @ (projection(self, layout) / (V + self.noise))
        return result

    def strength(self, V: Any, total: float, layout: Layout) -> Integral:
        """k / (V + noise)."""
        return Integral(self.informative(layout) / (np.asarray(V, dtype=float) + self.noise))

    def strength_parts(self, Vs: float, Va: float, layout: Layout) -> tuple[float, float]:
        r"""Tr P_s K and Tr P_a K, :math:`K = B^T(B C B^T + noise)^{-1}B`, C = Vs P_s + Va P_a, B a basis of what y
        fixes.
        """
        symmetric = layout.symmetric
        C = Vs * symmetric + Va * (np.eye(layout.p) - symmetric)
        B = basis(self, layout)
        K = B.T @ np.linalg.solve(B @ C @ B.T + self.noise * np.eye(len(B)), B)
        of_symmetric = float(np.sum(symmetric * K))
        return of_symmetric, float(np.trace(K)) - of_symmetric

    def loss_and_slope(self, loss: str, h: Any, target: Any, layout: Layout) -> tuple[Any, Any]:
        """logits: |Pi (z - z^0)|^2 / 2 on the measured whitened indices; squared_output: |y_hat - y|_F^2."""
        if loss == "logits":
            # Pi is a projection, so that Pi gap is the slope of |Pi gap|^2/2 as well.
            gap = (layout.whiten(h) - target) @ projection(self, layout).astype(h.dtype)
            return (gap**2).sum(axis=-1) / 2, layout.spread(gap)
        xp = h.__array_namespace__()
        gap = xp.where(layout.visible, h, 0.0) - target
        return (gap**2).sum(axis=(-1, -2)), 2 * gap

    def majorant(self, loss: str, h: np.ndarray, layout: Layout) -> np.ndarray:
        """A h, for A not below the second derivative of a convex loss in h, anywhere."""
        # The convex losses here are quadratic: the slope at target 0 is the second derivative times h.
        return np.asarray(self.loss_and_slope(loss, h, np.zeros(1), layout)[1])

    def entropy(self, V: float, total: float, layout: Layout) -> Integral:
        """-(k/2) log(V + noise)."""
        return Integral(float(-self.informative(layout) / 2 * np.log(V + self.noise)))


@functools.lru_cache(maxsize=64)
def basis(channel: Any, layout: Layout) -> np.ndarray:
    """Orthonormal rows that span what y fixes of z, (k, p)."""
    functionals = channel.functionals(layout)
    if not len(functionals):
        return np.zeros((0, layout.p))
    _, singular, right = np.linalg.svd(functionals, full_matrices=False)
    # Two rows of a tied h can show the same pair: only independent functionals count in k.
    return np.asarray(right[singular > 1e-10 * singular[0]])


@functools.lru_cache(maxsize=64)
def projection(channel: Any, layout: Layout) -> np.ndarray:
    """Pi, (p, p)."""
    B = basis(channel, layout)
    return np.asarray(B.T @ B)
