"""The element-wise erf of arXiv:2509.21936: positive weights with a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import optimize

from attnlab.common.validation import real
from attnlab.slr.activations.base import Best, Elementwise
from attnlab.slr.laws.base import Law
from attnlab.slr.namespace import Namespace


@dataclass(frozen=True)
class OffsetErf(Elementwise):
    r""":math:`\sigma_l = 1 + \mathrm{erf}(c + \chi_l)`; a learner keeps c fixed, theory finds the best one."""

    offset: float = 0.0
    name: ClassVar[str] = "offset_erf"

    def __post_init__(self) -> None:
        real("offset", self.offset)

    def g(self, chi: Any, xp: Namespace) -> Any:
        """1 + erf of the shifted score."""
        return 1 + xp.erf(self.offset + chi)

    def best(self, law: Law, sizes: Sequence[int], count: int) -> Best:
        """Nelder-Mead over scale and offset from three starts; the residual is the slope at the best point."""

        def objective(x: np.ndarray) -> float:
            return replace(self, offset=float(x[1])).excess(law, float(x[0]), sizes, count)

        # nu is infinite where the largest mark decides.
        size = math.sqrt(min(law.nu, 25.0))
        starts = np.array([[0.5 * size, 0.0], [size, -size], [3.0 + size, -3.0]])
        # The risk comes without its slope. Starts: a small scale, one of the size of the marks, and a steep step.
        found = [optimize.minimize(objective, start, method="Nelder-Mead", tol=1e-9) for start in starts]
        best = min(found, key=lambda result: float(result.fun))
        slope = np.abs(optimize.approx_fprime(best.x, objective, 1e-5)).max()
        return Best(float(best.fun), float(best.x[0]), float(best.x[1]), bool(best.success), float(slope))
