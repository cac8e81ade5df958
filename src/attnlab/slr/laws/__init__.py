"""The laws of the tokens: each file owns all that depends on its law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.common.validation import one_of
from attnlab.slr.laws.base import Law as Law
from attnlab.slr.laws.maximum import Max as Max
from attnlab.slr.laws.spiked import Spiked as Spiked

LAWS: Mapping[str, type[Law]] = {"spiked": Spiked, "max": Max}


def law_of(law: Any, nu: Any, gamma: Any) -> Law:
    """The law that a name and its parameters mean; with an object, a second value for a parameter is refused."""
    given = {name: value for name, value in (("nu", nu), ("gamma", gamma)) if value is not None}
    if not isinstance(law, Law):
        return LAWS[one_of("law", law, LAWS)](**given)
    for name, value in given.items():
        if value != getattr(law, name):
            raise ValueError(f"{name} is given twice: {name}={value!r} and {law!r}")
    return law
