"""Output channels of attention-indexed models, one file each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from attnlab.aim.channels.channel import Channel, NotSolved
from attnlab.aim.channels.hardmax import Hardmax
from attnlab.aim.channels.linear import Linear
from attnlab.aim.channels.softmax import Softmax
from attnlab.aim.channels.user import UserChannel
from attnlab.common.validation import one_of

__all__ = ["CHANNELS", "Channel", "Hardmax", "Linear", "NotSolved", "OfChannel", "Softmax", "UserChannel", "as_channel"]

CHANNELS: dict[str, Callable[..., Channel]] = {
    "softmax": Softmax,
    "hardmax": Hardmax,
    "linear": Linear,
    "hardmax_legacy": functools.partial(Hardmax, legacy=True),
}


class OfChannel(float):
    """A parameter that a task copied from its channel. ``dataclasses.replace`` hands it back beside the channel,
    which is not the same as a user who gives it twice.
    """


def as_channel(channel: str | Channel, **given: Any) -> Channel:
    """A channel by name with its parameters (None: not given); an object has its own, and giving one again is an
    error.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(channel, Channel):
        given = {name: value for name, value in given.items() if not isinstance(value, OfChannel)}
        if given:
            raise ValueError(f"{', '.join(given)} is given twice: the channel {channel} has it")
        return channel
    make = CHANNELS[one_of("channel", channel, CHANNELS)]
    known = [field.name for field in fields(make.func if isinstance(make, functools.partial) else make)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise ValueError(f"{name} is not a parameter of channel {channel!r}, which has {', '.join(known)}")
    return make(**given)
