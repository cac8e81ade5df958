"""The target functions, one file each. A new one is a subclass of :class:`Target`, given to the task as an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np

from attnlab.common.validation import one_of
from attnlab.rfa.targets.base import Energies, Target
from attnlab.rfa.targets.corr_power import CorrPower, Rotated
from attnlab.rfa.targets.correlation import Correlation
from attnlab.rfa.targets.given import Given
from attnlab.rfa.targets.harmonic import Harmonic
from attnlab.rfa.targets.key_power import KeyPower
from attnlab.rfa.targets.mixed_rotation import MixedRotation
from attnlab.rfa.targets.query_power import QueryPower
from attnlab.rfa.targets.softmax import Softmax

__all__ = [
    "TARGETS",
    "CorrPower",
    "Correlation",
    "Energies",
    "Given",
    "Harmonic",
    "KeyPower",
    "MixedRotation",
    "QueryPower",
    "Rotated",
    "Softmax",
    "Target",
    "as_target",
]

TARGETS: Mapping[str, type[Target]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (KeyPower, CorrPower, Correlation, QueryPower, Rotated, MixedRotation, Softmax, Harmonic)
    }
)


def as_target(
    target: str | Target | Callable[[np.ndarray, np.ndarray], np.ndarray], parameters: Mapping[str, Any]
) -> Target:
    """The one object behind a name with parameters, a function, or a target; None is a parameter that is not given.

    >>> as_target("key_power", {"p": 3, "q": None})
    KeyPower(p=3)
    >>> as_target(KeyPower(p=3), {"p": 3})
    Traceback (most recent call last):
    ...
    ValueError: p is given twice, the target KeyPower(p=3) has it
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if isinstance(target, str):
        kind = TARGETS[one_of("target", target, TARGETS)]
        known = [field.name for field in fields(kind)]
        for name in given:
            if name not in known:
                raise ValueError(f"{name} is not a parameter of target {target!r}, which has {', '.join(known)}")
        return kind(**given)
    made = target if isinstance(target, Target) else Given(target)
    for name in given:
        known = [field.name for field in fields(made)]
        problem = "is given twice, the" if name in known else "is not a parameter of the"
        raise ValueError(f"{name} {problem} target {made!r}{' has it' if name in known else ''}")
    return made
