"""(1/N) sum_i <x_0, x_i>^q <b, x_i>, and the same with a rotation between query and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from attnlab.common.validation import integer
from attnlab.rfa.sphere import zonal_energies
from attnlab.rfa.targets.base import Energies, Target, exponent, scores

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class CorrPower(Target):
    """(1/N) sum_i <x_0, x_i>^q <b, x_i>: keys weighted by their correlation with the query."""

    q: int = 1
    name: ClassVar[str] = "corr_power"

    def __post_init__(self) -> None:
        integer("q", self.q, low=0)

    @property
    def label(self) -> str:
        """<x_0, x_i>^q <b, x_i>."""
        return rf"$\langle x_0, x_i\rangle{exponent(self.q)}\langle b, x_i\rangle$"

    @property
    def correlation_power(self) -> int | None:
        """Q: a value vector supplies the factor <b, x_i>."""
        return self.q

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The average."""
        return np.asarray((scores(query, keys) ** self.q * (keys @ task.b)).mean(axis=1))

    def energies(self, task: Task) -> Energies:
        r"""By averaging over the direction of b.

        The part of t^q of degree l in the query has degree l ± 1 in the key: the recursion
        :math:`(2l+d-2)\,v P_l = (l+d-2) P_{l+1} + l P_{l-1}` says in which shares.
        """
        d, found = task.d, {}
        for l, energy in enumerate(zonal_energies(self.q, d)):
            # max(., 1): on the circle both vanish at l = 0, where v P_0 = P_1.
            width = max(2 * l + d - 2, 1)
            found[l, l + 1] = float(energy / d * max(l + d - 2, 1) / width)
            if l:
                found[l, l - 1] = float(energy / d * l / width)
        return found

    def tensors(self, task: Task) -> Energies:
        """Bombieri norm: C(d+q-1, q) (1 + q/d) / (q+1), derived here from the Fischer product."""
        d, q = task.d, self.q
        return {(q, q + 1): float(np.sqrt(special.comb(d + q - 1, q) * (1 + q / d) / (q + 1)))}

    def degrees(self) -> tuple[int, int]:
        """Of degree q in the query and q + 1 in the key."""
        return self.q, self.q + 1


@dataclass(frozen=True)
class Rotated(CorrPower):
    """(1/N) sum_i <x_0, O x_i>^q <b, x_i>, O a planted rotation; a rotation of the query changes no energy."""

    name: ClassVar[str] = "rotated"

    @property
    def label(self) -> str:
        """<x_0, O x_i>^q <b, x_i>."""
        return rf"$\langle x_0, O x_i\rangle{exponent(self.q)}\langle b, x_i\rangle$"

    @property
    def correlation_power(self) -> None:
        """None: the correlation is with the rotated query."""
        return

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The average."""
        # <x_0, O x_i> = <O^T x_0, x_i>, and x_0^T O is a row of this product.
        return super().value(task, query @ task.rotation, keys)
