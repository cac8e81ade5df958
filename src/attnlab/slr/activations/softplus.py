"""Normalised softplus weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from attnlab.slr.activations.base import Normalised
from attnlab.slr.namespace import Namespace


@dataclass(frozen=True)
class Softplus(Normalised):
    r""":math:`\sigma_l = \ln(1 + e^{\chi_l})/\sum_j \ln(1 + e^{\chi_j})`.

    With a large negative offset of the scores it would become softmax; there is none here.
    """

    name: ClassVar[str] = "softplus"

    def log_g(self, chi: Any, xp: Namespace) -> Any:
        """log log(1 + e^chi), which is chi to rounding below -30, where the inner logarithm would be lost."""
        # Both branches are evaluated: without the maximum the discarded log(0) would make the gradient NaN.
        return xp.where(chi < -30, chi, xp.log(xp.logaddexp(0.0, xp.maximum(chi, -30.0))))
