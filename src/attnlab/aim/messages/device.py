"""The data part of an AMP iteration on JAX devices: chunks of tokens, split over a mesh, with their messages."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.channels.channel import Channel
from attnlab.aim.indices import Layout
from attnlab.aim.messages.chunks import Chunks, sample_mesh
from attnlab.aim.messages.probes import Probes
from attnlab.aim.messages.products import sweep
from attnlab.common.compute import Compute

MEMORY = 4e9  # bytes of tokens that stay on the device


class DeviceMessages:
    """omega and g of every sequence, kept beside its chunk of tokens."""

    array = staticmethod(jnp.asarray)

    def __init__(self, source: Any, summary: np.ndarray, channel: Channel, layout: Layout, compute: Compute) -> None:
        self.channel, self.precision = channel, compute.precision
        dtype = np.dtype("float64" if compute.dtype == "float64" else "float32")
        memory = MEMORY if compute.memory is None else compute.memory
        probes = Probes(layout, channel.shift_invariant)
        self.chunks = chunks = Chunks(source, sample_mesh(compute.devices), dtype, memory, probes)
        self.n, _, self.d = source.shape
        parts = range(chunks.count)
        self.summary = [chunks.put(summary, i, np.float64) for i in parts]
        self.weights = [chunks.weights(i) for i in parts]
        zeros = np.zeros((self.n, layout.p))
        self.omega = [chunks.put(zeros, i, np.float64) for i in parts]
        self.g = [chunks.put(zeros, i, np.float64) for i in parts]

    def sweep(self, S: Any, onsager: float, V: float, damping: float) -> tuple[jax.Array, float]:
        """Update all messages; A^T g and the mean of |g|^2."""
        total, squares = jnp.zeros((self.d, self.d)), []
        for i in range(self.chunks.count):
            self.omega[i], self.g[i], total, square = sweep(
                self.chunks.tokens(i),
                self.weights[i],
                self.summary[i],
                self.omega[i],
                self.g[i],
                total,
                S,
                jnp.asarray(onsager),
                jnp.asarray(V),
                jnp.asarray(damping),
                channel=self.channel,
                probes=self.chunks.probes,
                precision=self.precision,
            )
            # Kept on the device until all chunks are under way: a float would wait for each.
            squares.append(square)
        return total, float(sum(float(s) for s in squares)) / self.n
