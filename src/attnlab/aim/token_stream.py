"""Tokens that need not be stored: each chunk is drawn from a counter-based key whenever it is needed."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.aim.indices import Layout
from attnlab.common.seeds import jax_key
from attnlab.common.validation import integer

if TYPE_CHECKING:
    import jax
    from jax.sharding import NamedSharding

CHUNK_BYTES = 2**30  # tokens of one chunk: many rows for each d x d sum, few enough that temporaries stay small
CPU_CHUNK_BYTES = 2**25


@dataclass(frozen=True)
class TokenStream:
    """Chunk i is drawn from ``fold_in(key(seed), i)``, the key being that of the data stream of the seed.

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
        return math.ceil(self.n / self.rows)

    def draw(self, index: int, sharding: NamedSharding | None = None) -> jax.Array:
        """Chunk ``index``, (rows, tokens, d) in float32."""
        chunk: jax.Array = _drawer(self.rows, self.tokens, self.d, sharding)(jax_key(self.seed, "data", "aim"), index)
        return chunk

    def array(self) -> np.ndarray:
        """All tokens at once, (n, tokens, d), for small n."""
        return np.concatenate([np.asarray(self.draw(i)) for i in range(self.n_chunks)])[: self.n]

    def whitened_indices(self, S: np.ndarray, layout: Layout, *, differences: bool = False) -> np.ndarray:
        """z of every sequence, (n, p), chunk by chunk; with ``differences`` up to one constant in each row, at less
        cost.
        """
        import jax

        from attnlab.aim.messages.probes import Probes
        from attnlab.aim.messages.products import measure

        probes = Probes(layout, differences)
        with jax.enable_x64(True):
            # float64 for what has the size n p; the products with the tokens are float32 all the same.
            on_device = jax.numpy.asarray(S)
            parts = (measure(self.draw(i), on_device, probes=probes) for i in range(self.n_chunks))
            return np.concatenate([np.asarray(part) for part in parts])[: self.n]


# A function that is made anew is compiled anew, here at every chunk.
@functools.lru_cache(maxsize=8)
def _drawer(rows: int, tokens: int, d: int, sharding: NamedSharding | None) -> Any:
    import jax

    def draw(key: Any, index: Any) -> jax.Array:
        return jax.random.normal(jax.random.fold_in(key, index), (rows, tokens, d), jax.numpy.float32)

    return jax.jit(draw, out_shardings=sharding)


def chunk_rows(n: int, tokens: int, d: int) -> int:
    """Sequences in a chunk: all of them, or an equal share that the chunk size of the backend holds."""
    import jax

    limit = CPU_CHUNK_BYTES if jax.default_backend() == "cpu" else CHUNK_BYTES
    # 4 bytes of float32. Equal shares, because the last chunk is drawn whole: most of it would be waste otherwise.
    return math.ceil(n / math.ceil(n / max(1, limit // (4 * tokens * d))))
