"""Where the dense work runs: SciPy's BLAS on the CPU, JAX on an accelerator. One algorithm, two sets of six verbs.

On a CPU the products go through BLAS, which measures faster than XLA there; on a GPU everything stays in device memory
until the coefficients come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from attnlab.common.validation import one_of
from attnlab.rfa.features import FeatureMap
from attnlab.rfa.threads import thread_count

TILE = 128
DEVICES = ("cpu", "gpu")


@runtime_checkable
class Backend(Protocol):
    """What solvers ask of a device."""

    def put(self, tokens: np.ndarray) -> Any:
        """Tokens in device memory."""

    def features(self, feature_map: FeatureMap, tokens: Any, index: int) -> Any:
        """Features of one block."""

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """An accumulator."""

    def add_gram(self, G: Any, A: Any) -> Any:
        """G + A A^T; only the lower triangle is meant."""

    def add_product(self, C: Any, A: Any, B: Any) -> Any:
        """C + A B."""

    def solve(self, G: Any, shift: float, Y: np.ndarray) -> np.ndarray:
        """(G + shift I)^{-1} Y in float64, from the lower triangle of G."""


@dataclass(frozen=True)
class Blas:
    """NumPy arrays, SciPy's BLAS and LAPACK."""

    dtype: str = "float32"

    def put(self, tokens: np.ndarray) -> np.ndarray:
        """Tokens in the working precision."""
        return np.ascontiguousarray(tokens, dtype=self.dtype)

    def features(self, feature_map: FeatureMap, tokens: np.ndarray, index: int) -> np.ndarray:
        """Features of one block, tiled over examples so that scores stay in cache; threads share the tiles.

        The products of a tile are too small for BLAS to thread, so the threads are ours.
        """
        weights = feature_map.block(index).astype(self.dtype, copy=False)
        out = np.empty((len(tokens), feature_map.sizes[index]), dtype=self.dtype)

        def fill(first: int, last: int) -> None:
            for start in range(first, last, TILE):
                tile = slice(start, min(start + TILE, last))
                out[tile] = feature_map.apply(np, tokens[tile], weights)

        n, threads = len(tokens), thread_count()
        if threads == 1 or n < 8 * TILE:
            fill(0, n)
            return out
        span = -(-n // (threads * TILE)) * TILE
        with ThreadPoolExecutor(threads) as pool:
            done = [pool.submit(fill, first, min(first + span, n)) for first in range(0, n, span)]
            for part in done:
                part.result()
        return out

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        """Column-major, as BLAS accumulates in place."""
        return np.zeros(shape, dtype=self.dtype, order="F")

    def add_gram(self, G: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Symmetric rank-k update in place: half the work of a general product."""
        syrk = blas.ssyrk if self.dtype == "float32" else blas.dsyrk
        return np.asarray(syrk(1.0, A.T, beta=1.0, c=G, trans=1, lower=1, overwrite_c=1))

    def add_product(self, C: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """General product, in place."""
        C += A @ B.astype(self.dtype, copy=False)
        return C

    def solve(self, G: np.ndarray, shift: float, Y: np.ndarray) -> np.ndarray:
        """Cholesky in float64; a numerically singular matrix is pseudo-inverted."""
        return solve_shifted(G, shift, Y)


def solve_shifted(G: np.ndarray, shift: float, Y: np.ndarray) -> np.ndarray:
    """(G + shift I)^{-1} Y from the lower triangle of G; least norm where rounding leaves the matrix singular."""
    if not np.isfinite(np.diagonal(G)).all():
        raise ValueError(
            "the Gram matrix is not finite: scores overflow; scale the tokens down or choose another score"
        )
    A = np.array(G, dtype=np.float64, order="F")
    A.flat[:: len(A) + 1] += shift
    try:
        factor = linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        solution = linalg.cho_solve(factor, Y, check_finite=False)
        if np.isfinite(solution).all():
            return np.asarray(solution)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(np.asarray(G, dtype=np.float64), lower=True)
    # Eigenvalues below the rounding error of the working precision carry no information.
    floor = len(values) * np.finfo(G.dtype).eps * max(float(values[-1]), 0.0)
    inverse = np.where(values > floor, 1 / np.maximum(values + shift, np.finfo(np.float64).tiny), 0.0)
    return np.asarray(vectors @ (inverse[:, None] * (vectors.T @ Y)))


def backend(device: str = "cpu", dtype: str = "float32") -> Backend:
    """The backend of a device; ``gpu`` without one is an error that says so."""
    one_of("device", device, DEVICES)
    one_of("dtype", dtype, ("float32", "float64"))
    if device == "cpu":
        return Blas(dtype)
    if dtype == "float64":
        raise ValueError("dtype='float64' features are computed on the CPU; set device='cpu'")
    from attnlab.rfa.accelerator import Accelerator

    return Accelerator.first("gpu")


@dataclass(frozen=True)
class Features:
    """The features of a batch, block by block; each pass computes them anew, so memory does not grow with the heads."""

    feature_map: FeatureMap
    tokens: Any
    backend: Backend

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self.feature_map.sizes)):
            yield self.backend.features(self.feature_map, self.tokens, index)

    def __len__(self) -> int:
        return len(self.feature_map.sizes)

    @property
    def shape(self) -> tuple[int, int]:
        """Examples and features."""
        return len(self.tokens), sum(self.feature_map.sizes)
