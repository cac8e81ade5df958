"""Where and how a learner computes: one object, the same for every learner of every system."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from attnlab.common.validation import integer, one_of, positive

if TYPE_CHECKING:
    import jax

DEVICES = ("auto", "cpu", "gpu")
DTYPES = ("auto", "float32", "float64")
PRECISIONS = ("highest", "bf16x3", "tf32")


@dataclass(frozen=True)
class Compute:
    """Options of the machine, which change the speed of a result and its rounding, not its meaning.

    Parameters
    ----------
    device : ``cpu``, ``gpu``, or ``auto``: the learner's own choice.
    dtype : ``float32``, ``float64``, or ``auto``: what the learner needs to be accurate.
    precision : of float32 matrix products on a GPU.
    devices : number of devices that share the examples; None for one.
    memory : bytes that a learner may use for what it could also compute again; None for its own default.

    >>> Compute(device="tpu")
    Traceback (most recent call last):
    ...
    ValueError: device must be one of 'auto', 'cpu', 'gpu', got 'tpu'; did you mean 'gpu'?
    """

    device: str = "auto"
    dtype: str = "auto"
    precision: str = "highest"
    devices: int | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        one_of("device", self.device, DEVICES)
        one_of("dtype", self.dtype, DTYPES)
        one_of("precision", self.precision, PRECISIONS)
        if self.devices is not None:
            integer("devices", self.devices, low=1)
        if self.memory is not None:
            positive("memory", self.memory)

    def supports(self, owner: object, *names: str) -> Compute:
        """Return self; an option that ``owner`` does not support and that is set is an error, never ignored."""
        for field in fields(self):
            value = getattr(self, field.name)
            # a default asks for nothing: one Compute can serve learners that support different options
            if field.name not in names and value != field.default:
                raise ValueError(
                    f"compute.{field.name} is not supported by {type(owner).__name__}, got {value!r}; "
                    f"supported: {', '.join(names) or 'none'}"
                )
        return self


def jax_device(name: str) -> jax.Device:
    """The device that a name means; ``auto`` is JAX's own choice, and an absent one is an error."""
    import jax

    try:
        return jax.devices(None if one_of("device", name, DEVICES) == "auto" else name)[0]
    except RuntimeError as absent:
        raise ValueError(f"device is {name!r} and JAX sees no {name.upper()}; use 'cpu' or 'auto'") from absent


def placed(compute: Compute | None, owner: object, *options: str) -> AbstractContextManager[object]:
    """A block in which JAX computes on the device of ``compute``; ``options`` are those ``owner`` supports besides."""
    device = (compute or Compute()).supports(owner, "device", *options).device
    if device == "auto":  # a block of the caller's own with another default device stays in force
        return nullcontext()
    import jax

    block: AbstractContextManager[object] = jax.default_device(jax_device(device))
    return block
