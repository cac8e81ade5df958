"""An erf raised to positive weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from attnlab.slr.activations.base import Elementwise
from attnlab.slr.namespace import Namespace


@dataclass(frozen=True)
class RaisedErf(Elementwise):
    r""":math:`\sigma_l = 1 + \mathrm{erf}(\chi_l)`."""

    name: ClassVar[str] = "raised_erf"

    def g(self, chi: Any, xp: Namespace) -> Any:
        """1 + erf."""
        return 1 + xp.erf(chi)
