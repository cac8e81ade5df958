"""How attention turns scores into weights: each file owns all that depends on its activation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.common.validation import one_of
from attnlab.slr.activations.base import Activation as Activation
from attnlab.slr.activations.base import Elementwise as Elementwise
from attnlab.slr.activations.base import Normalised as Normalised
from attnlab.slr.activations.erf import Erf as Erf
from attnlab.slr.activations.linear import Linear as Linear
from attnlab.slr.activations.offset_erf import OffsetErf as OffsetErf
from attnlab.slr.activations.raised_erf import RaisedErf as RaisedErf
from attnlab.slr.activations.softmax import Softmax as Softmax
from attnlab.slr.activations.softplus import Softplus as Softplus

ACTIVATIONS: Mapping[str, type[Activation]] = {
    kind.name: kind for kind in (Softmax, Linear, Softplus, Erf, RaisedErf, OffsetErf)
}


def activation_of(activation: Any) -> Activation:
    """The activation that a name means; an activation of the user's own passes through."""
    if isinstance(activation, Activation):
        return activation
    return ACTIVATIONS[one_of("activation", activation, ACTIVATIONS)]()
