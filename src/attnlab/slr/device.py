"""Where a compiled loop runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from attnlab.common.compute import Compute


@contextlib.contextmanager
def placed(compute: Compute | None, owner: object) -> Iterator[None]:
    """Run JAX on the device that ``compute`` names; its other options are refused, not ignored."""
    device = (compute or Compute()).supports(owner, "device").device
    if device == "auto":
        yield
        return
    import jax

    with jax.default_device(jax.devices(device)[0]):
        yield
