"""What attention does to its scores, a file each. A new one is a subclass of :class:`Activation`, passed as object."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attnlab.common.validation import one_of
from attnlab.rfa.activations.base import Activation
from attnlab.rfa.activations.erf import Erf
from attnlab.rfa.activations.exponential import Exponential, SoftmaxWeights
from attnlab.rfa.activations.polynomial import Identity, Square
from attnlab.rfa.activations.relu import Relu, ReluSum

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Erf",
    "Exponential",
    "Identity",
    "Relu",
    "ReluSum",
    "SoftmaxWeights",
    "Square",
    "as_activation",
]

ACTIVATIONS: Mapping[str, type[Activation]] = MappingProxyType(
    {kind.name: kind for kind in (Relu, Exponential, Identity, Square, Erf, SoftmaxWeights, ReluSum)}
)


def as_activation(activation: str | Activation) -> Activation:
    """The one object behind a name; an object is itself.

    >>> as_activation("relu")
    Relu(tau=0.5)
    """
    if isinstance(activation, Activation):
        return activation
    return ACTIVATIONS[one_of("activation", activation, ACTIVATIONS)]()
