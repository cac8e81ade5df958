"""Chunks of tokens for a mesh of devices: resident there, sent from the host, or regenerated."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.aim.messages.probes import Probes
from attnlab.aim.token_stream import TokenStream, chunk_rows
from attnlab.common.validation import integer

if TYPE_CHECKING:
    from jax.sharding import Mesh, NamedSharding


def sample_mesh(devices: int | None) -> Mesh:
    """The first ``devices`` devices (None: one) in a row, along which samples are split."""
    import jax

    available = jax.devices()
    count = 1 if devices is None else integer("devices", devices, low=1, high=len(available))
    return jax.sharding.Mesh(np.array(available[:count]), ("samples",))


@dataclass(frozen=True)
class Chunks:
    """Equal chunks of the rows of X for a mesh, as vectors of their use, with weights that mark the padding.

    Kept on the device when they fit in ``memory`` bytes, otherwise sent there (or regenerated) at each pass.
    """

    source: np.ndarray | TokenStream | Any
    mesh: Mesh
    dtype: Any
    memory: float
    probes: Probes
    _resident: list[Any] = field(default_factory=list)

    @functools.cached_property
    def rows(self) -> int:
        """Sequences in a chunk, a multiple of the number of devices."""
        n, tokens, d = self.source.shape
        if isinstance(self.source, TokenStream):  # a chunk is drawn whole, where its rows lie
            if self.source.rows % self.mesh.size:
                raise ValueError(
                    f"chunk of a token stream must be a multiple of devices={self.mesh.size}, got {self.source.rows}"
                )
            return self.source.rows
        # Every device takes the same number of rows.
        return math.ceil(chunk_rows(n, tokens, d) / self.mesh.size) * self.mesh.size

    @property
    def count(self) -> int:
        """Number of chunks."""
        n: int = self.source.shape[0]
        return math.ceil(n / self.rows)

    @functools.cached_property
    def sharding(self) -> NamedSharding:
        """Rows split over the mesh."""
        import jax

        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec("samples"))  # type: ignore[no-untyped-call]

    @functools.cached_property
    def stays(self) -> bool:
        """Whether the tokens stay on the device."""
        n, tokens, d = self.source.shape
        size = n * tokens * d * np.dtype(self.dtype).itemsize
        return bool(size <= self.memory)

    def tokens(self, index: int) -> Any:
        """Chunk ``index`` on the device."""
        if not self.stays:
            return self._fetch(index)
        if not self._resident:
            self._resident.extend(self._fetch(i) for i in range(self.count))
        return self._resident[index]

    def _fetch(self, index: int) -> Any:
        # The last chunk is drawn whole: rows beyond n hold tokens too, which their weight 0 leaves out of all sums.
        if isinstance(self.source, TokenStream):
            return self.probes.view(self.source.draw(index, self.sharding))
        return self.probes.view(self.put(self.source, index))

    def put(self, values: Any, index: int, dtype: Any = None) -> Any:
        """Rows of chunk ``index`` of any array with n rows, padded with zeros."""
        import jax

        part = values[index * self.rows : (index + 1) * self.rows]
        # All chunks have one shape: one compiled program serves them.
        pad = self.rows - len(part)
        # Tokens on a device are padded there, not on the host.
        xp = jax.numpy if isinstance(part, jax.Array) else np
        part = xp.asarray(part, dtype=dtype or self.dtype)
        if pad:
            part = xp.concatenate([part, xp.zeros((pad, *part.shape[1:]), part.dtype)])
        return jax.device_put(part, self.sharding)

    def weights(self, index: int) -> Any:
        """1 for a sequence, 0 for padding."""
        return self.put(np.ones(self.source.shape[0]), index, np.float64)
