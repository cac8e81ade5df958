"""Where a fit is computed: the CPU's BLAS, or JAX on a device, as ``compute=`` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attnlab.common.compute import Compute, jax_device
from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.device import levenberg_marquardt_on_device
from attnlab.mha.engine.iterated import LARGE, fit_rows
from attnlab.mha.engine.levenberg_marquardt import Fit


def padded(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Examples with some of zeros, up to one of few numbers: one compilation serves many n.

    The mean key of zero tokens is zero in every layer without biases, and so is their label: they add nothing.
    """
    n = len(X)
    step = max(64, 2 ** (n.bit_length() - 4))  # at most an eighth of a large number is added
    missing = -n % step
    return tuple(np.concatenate([part, np.zeros((missing, *part.shape[1:]))]) for part in (X, y))  # type: ignore[return-value]


def full_solver(compute: Compute, m: int, d: int, budget: Budget) -> Callable[..., Fit]:
    """The Levenberg-Marquardt step for all entries of Theta: by BLAS, or on an accelerator when there is one."""
    device = jax_device(compute.device)
    # An accelerator that was not asked for gets large layers only: it is busy only with large products.
    if device.platform == "cpu" or (compute.device == "auto" and m * d * d < LARGE):
        return fit_rows
    # H and its factor, eight bytes a number.
    needed, memory = 16 * (m * d * d) ** 2, _memory(device, compute)
    if memory is not None and needed > memory:
        raise ValueError(
            f"the equations of {m} heads of width {d} take {needed / 1e9:.0f} GB and the device has "
            f"{memory / 1e9:.0f} GB; give rank= for heads of low rank"
        )
    return partial(levenberg_marquardt_on_device, budget=budget)


def _memory(device: Any, compute: Compute) -> float | None:
    """Bytes that may be used, where the device says."""
    if compute.memory is not None:
        return float(compute.memory)
    known = device.memory_stats() or {}
    return float(known["bytes_limit"]) if "bytes_limit" in known else None
