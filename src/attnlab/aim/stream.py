"""Token chunks: resident on the device, streamed from the host, or regenerated from a counter-based key."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.aim.frame import Frame
from attnlab.common.validation import integer

if TYPE_CHECKING:
    import jax
    from jax.sharding import Mesh, NamedSharding

CHUNK_BYTES = 2**30  # tokens of one chunk: many rows for each d x d sum, few enough that temporaries stay small
CPU_CHUNK_BYTES = 2**25


@dataclass(frozen=True)
class TokenStream:
    """Tokens that need not be stored: chunk i is drawn from ``fold_in(key(seed), i)`` whenever it is asked for.

    It stands in for X in :meth:`attnlab.aim.AMP.fit`: beyond its memory budget d is limited by arithmetic, not by
    memory.

    >>> TokenStream(1000, tokens=2, d=8, seed=0).shape
    (1000, 2, 8)
    """

    n: int
    tokens: int
    d: int
    seed: int = 0
    chunk: int | None = None

    def __post_init__(self) -> None:
        for name in ("n", "tokens", "d"):
            integer(name, getattr(self, name), low=1)
        integer("seed", self.seed, low=0)
        if self.chunk is not None:
            integer("chunk", self.chunk, low=1)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the array it stands for."""
        return self.n, self.tokens, self.d

    @property
    def rows(self) -> int:
        """Sequences in a chunk."""
        return self.chunk or chunk_rows(self.n, self.tokens, self.d)

    @property
    def n_chunks(self) -> int:
        """Number of chunks; the last is drawn whole and used in part."""
        return -(-self.n // self.rows)

    def draw(self, index: int, sharding: NamedSharding | None = None) -> jax.Array:
        """Chunk ``index``, (rows, tokens, d) in float32."""
        chunk: jax.Array = _drawer(self.rows, self.tokens, self.d, sharding)(self.seed, index)
        return chunk

    def array(self) -> np.ndarray:
        """All tokens at once, (n, tokens, d), for small n."""
        return np.concatenate([np.asarray(self.draw(i)) for i in range(self.n_chunks)])[: self.n]

    def whitened_indices(self, S: np.ndarray, *, differences: bool = False, precision: str = "highest") -> np.ndarray:
        """z of every sequence, (n, p), chunk by chunk; with ``differences`` up to one constant in h, at less cost."""
        import jax

        from attnlab.aim.sensing import measure

        frame = Frame(self.tokens, differences)
        with jax.enable_x64(True):
            on_device = jax.numpy.asarray(S)
            parts = (measure(self.draw(i), on_device, frame=frame, precision=precision) for i in range(self.n_chunks))
            return np.concatenate([np.asarray(part) for part in parts])[: self.n]


@functools.lru_cache(maxsize=8)
def _drawer(rows: int, tokens: int, d: int, sharding: NamedSharding | None) -> Any:
    import jax

    def draw(seed: Any, index: Any) -> jax.Array:
        key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), index)
        return jax.random.normal(key, (rows, tokens, d), jax.numpy.float32)

    return jax.jit(draw, out_shardings=sharding)


def chunk_rows(n: int, tokens: int, d: int) -> int:
    """Sequences in a chunk: all of them, or an equal share that the chunk size of the backend holds."""
    import jax

    limit = CPU_CHUNK_BYTES if jax.default_backend() == "cpu" else CHUNK_BYTES
    count = -(-n // max(1, limit // (4 * tokens * d)))
    return -(-n // count)


def sample_mesh(devices: int | None) -> Mesh:
    """The first ``devices`` devices (None: one) in a row, along which samples are split."""
    import jax

    available = jax.devices()
    count = 1 if devices is None else integer("devices", devices, low=1, high=len(available))
    return jax.sharding.Mesh(np.array(available[:count]), ("samples",))


@dataclass(frozen=True)
class Chunks:
    """Equal chunks of the rows of X for a mesh, in the frame of their use, with weights that mark the padding.

    Kept on the device when they fit in ``memory_budget`` bytes, otherwise sent there (or regenerated) at each pass.
    """

    source: np.ndarray | TokenStream | Any
    mesh: Mesh
    dtype: Any
    memory_budget: float
    differences: bool = False
    _resident: list[Any] = field(default_factory=list)

    @functools.cached_property
    def rows(self) -> int:
        """Sequences in a chunk, a multiple of the number of devices."""
        n, tokens, d = self.source.shape
        rows = self.source.rows if isinstance(self.source, TokenStream) else chunk_rows(n, tokens, d)
        return -(-rows // self.mesh.size) * self.mesh.size

    @property
    def frame(self) -> Frame:
        """The frame in which the tokens are handed out."""
        return Frame(self.source.shape[1], self.differences)

    @property
    def count(self) -> int:
        """Number of chunks."""
        return int(-(-self.source.shape[0] // self.rows))

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
        return bool(size <= self.memory_budget)

    def tokens(self, index: int) -> Any:
        """Chunk ``index`` on the device."""
        if not self.stays:
            return self._fetch(index)
        if not self._resident:
            self._resident.extend(self._fetch(i) for i in range(self.count))
        return self._resident[index]

    def _fetch(self, index: int) -> Any:
        if isinstance(self.source, TokenStream):
            return self.frame.view(self.source.draw(index, self.sharding))
        return self.frame.view(self.put(self.source, index))

    def put(self, values: Any, index: int, dtype: Any = None) -> Any:
        """Rows of chunk ``index`` of any array with n rows, padded with zeros."""
        import jax

        part = values[index * self.rows : (index + 1) * self.rows]
        pad = self.rows - len(part)
        xp = jax.numpy if isinstance(part, jax.Array) else np
        part = xp.asarray(part, dtype=dtype or self.dtype)
        if pad:
            part = xp.concatenate([part, xp.zeros((pad, *part.shape[1:]), part.dtype)])
        return jax.device_put(part, self.sharding)

    def weights(self, index: int) -> Any:
        """1 for a sequence, 0 for padding."""
        return self.put(np.ones(self.source.shape[0]), index, np.float64)
