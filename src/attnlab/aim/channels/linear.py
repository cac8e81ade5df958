"""Linear attention scores: the output is the indices themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attnlab.aim.channels.channel import Integral
from attnlab.aim.channels.measurement import Measurement
from attnlab.aim.channels.residual import Residual
from attnlab.aim.indices import Layout
from attnlab.common.validation import nonnegative


@dataclass(frozen=True)
class Linear(Measurement):
    """y = h at the visible entries: every visible component is measured. One tied token with noise is the quadratic
    network (h_11 has noise 2 ``noise``).
    """

    noise: float = 0.0
    name: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        nonnegative("noise", self.noise)

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None, visible: Any = None) -> np.ndarray:
        """y for indices h."""
        return h if visible is None else np.where(visible, h, 0.0)

    def functionals(self, layout: Layout) -> np.ndarray:
        """The visible components."""
        return np.asarray(np.eye(layout.p)[np.unique(layout.component[layout.visible])])

    def summary(self, y: np.ndarray, layout: Layout) -> np.ndarray:
        """The visible components of z, zeros elsewhere."""
        y, visible = np.asarray(y, dtype=np.float64), layout.visible
        if (y[:, ~visible] != 0).any():
            raise ValueError("y has weight on entries that the mask hides")
        if layout.tied:
            both = visible & visible.T
            gap = np.abs(y - y.swapaxes(1, 2))[:, both]
            if gap.size and gap.max() > 1e-4 * (1 + np.abs(y).max()):
                raise ValueError("y of channel 'linear' must be symmetric matrices, the indices themselves")
            # a pair that is visible twice is averaged
            y = (y + y.swapaxes(1, 2)) / np.maximum(visible.astype(int) + visible.T, 1)
        return np.asarray(layout.whiten(y))

    def generalization(self, residual: Residual, predictor: str) -> Integral:
        """The residual variances of the visible entries; both predictors agree."""
        layout = residual.layout
        entries = zip(*np.nonzero(layout.visible), strict=True)
        scale = layout.scale[layout.component] ** 2
        return Integral(float(sum(scale[a, b] * (residual.entry(int(a), int(b)) + self.noise) for a, b in entries)))
