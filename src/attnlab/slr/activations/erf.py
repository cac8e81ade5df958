"""The erf of arXiv:2410.01537: an odd function of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from attnlab.common.validation import positive
from attnlab.slr.activations.base import Elementwise
from attnlab.slr.namespace import Namespace


@dataclass(frozen=True)
class Erf(Elementwise):
    r""":math:`\sigma_l = \mathrm{erf}(\lambda\chi_l)`.

    With |k| = |v| = 1 it is :class:`~attnlab.slr.SingleLocationAttention`, whose exact theory is
    :func:`~attnlab.slr.theory.risk` and what follows it.
    """

    lam: float = 1.0
    name: ClassVar[str] = "erf"

    def __post_init__(self) -> None:
        positive("lam", self.lam)

    def g(self, chi: Any, xp: Namespace) -> Any:
        """The error function of the scaled score."""
        return xp.erf(self.lam * chi)
