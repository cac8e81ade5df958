"""Linear weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attnlab.slr.activations.base import Best, Elementwise
from attnlab.slr.laws.base import Law
from attnlab.slr.namespace import Namespace


@dataclass(frozen=True)
class Linear(Elementwise):
    r""":math:`\sigma_l = 1 + \chi_l`."""

    name: ClassVar[str] = "linear"

    def g(self, chi: Any, xp: Namespace) -> Any:
        """1 + chi."""
        return 1 + chi

    def best(self, law: Law, sizes: Sequence[int], count: int) -> Best:
        r"""In closed form.

        With :math:`A = \mathbb{E}\sum_J\chi_j`, :math:`S = \mathbb{E}\sum\chi_l`, :math:`B = \mathbb{E}\sum\chi_l^2`
        and :math:`N = \mathbb{E}L`, the best of :math:`(K + mA)^2/K(N + 2mS + m^2B)` is at
        :math:`m = (NA - KS)/(KB - AS)`.
        """
        A, S, B = np.mean([law.mean_marks(L, count) for L in sizes], axis=0)
        N = float(np.mean(sizes))
        kept = (count**2 * B + A**2 * N - 2 * count * A * S) / (count * (N * B - S**2))
        # At equality the best weights are chi alone, which a finite slope only approaches.
        slope = (N * A - count * S) / (count * B - A * S) if count * B != A * S else float("inf")
        return Best(float(1 - kept), float(slope), error=1e-14)
