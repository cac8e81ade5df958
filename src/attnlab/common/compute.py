"""Where and how a learner computes: one object, the same for every learner of every system."""

from __future__ import annotations

from dataclasses import dataclass, fields

from attnlab.common.validation import integer, one_of, positive

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
            if field.name not in names and value != field.default:
                raise ValueError(
                    f"compute.{field.name} is not supported by {type(owner).__name__}, got {value!r}; "
                    f"supported: {', '.join(names) or 'none'}"
                )
        return self
