"""Softmax weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attnlab.slr.activations.base import Best, Normalised
from attnlab.slr.laws.base import Law
from attnlab.slr.namespace import Namespace


@dataclass(frozen=True)
class Softmax(Normalised):
    r""":math:`\sigma_l = e^{\chi_l}/\sum_j e^{\chi_j}`."""

    name: ClassVar[str] = "softmax"

    def log_g(self, chi: Any, xp: Namespace) -> Any:
        """The score itself."""
        return chi

    def best(self, law: Law, sizes: Sequence[int], count: int) -> Best:
        """For one location the Bayes predictor (arXiv:2509.21936, proposition 4.2); for several, a search."""
        if count > 1:
            return super().best(law, sizes, count)
        return Best(float(np.mean([law.bayes_excess(L) for L in sizes])), law.bayes_scale)
