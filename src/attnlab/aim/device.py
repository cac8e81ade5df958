"""The data part of an AMP iteration on JAX devices: chunks of tokens, split over a mesh, with their messages."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.aim.channels import Channel
from attnlab.aim.sensing import sweep
from attnlab.aim.stream import Chunks


class DeviceMessages:
    """omega and g of every sequence, kept beside its chunk of tokens."""

    array = staticmethod(jnp.asarray)

    def __init__(self, chunks: Chunks, summary: np.ndarray, channel: Channel, precision: str) -> None:
        self.chunks, self.channel, self.precision = chunks, channel, precision
        self.n, tokens, self.d = chunks.source.shape
        parts = range(chunks.count)
        self.summary = [chunks.put(summary, i, np.float64) for i in parts]
        self.weights = [chunks.weights(i) for i in parts]
        zeros = np.zeros((self.n, tokens * (tokens + 1) // 2))
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
                frame=self.chunks.frame,
                precision=self.precision,
            )
            squares.append(square)
        return total, float(sum(float(s) for s in squares)) / self.n
