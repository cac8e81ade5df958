"""Where the dense work runs: SciPy's BLAS on the CPU, JAX on an accelerator. One algorithm, two sets of verbs.

On a CPU the products go through BLAS, which measures faster than XLA there; on a GPU everything stays in device memory
until the coefficients come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from attnlab.common.compute import Compute
from attnlab.common.threads import in_spans, thread_count
from attnlab.rfa.features import TILE, FeatureMap

# Columns of a matrix that are copied together.
PANEL = 128
# What the precisions of matrix products are called in JAX.
PRODUCTS = {"highest": "highest", "bf16x3": "BF16_BF16_F32_X3", "tf32": "tensorfloat32"}


@runtime_checkable
class Backend(Protocol):
    """What solvers ask of a device."""

    def put(self, tokens: np.ndarray) -> Any:
        """Tokens in device memory."""

    def inputs(self, feature_map: FeatureMap, tokens: Any) -> Any:
        """What all blocks of a map share."""

    def features(self, feature_map: FeatureMap, inputs: Any, index: int, out: Any = None) -> Any:
        """Features of one block, in the memory of ``out`` where the device can reuse it."""

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """An accumulator."""

    def spread_gram(self, feature_map: FeatureMap, tokens: Any) -> Any:
        """The Gram matrix shared by several devices; None where there is one."""

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

    def inputs(self, feature_map: FeatureMap, tokens: np.ndarray) -> tuple[np.ndarray, ...]:
        """What all blocks share, contiguous."""
        return tuple(np.ascontiguousarray(x) for x in feature_map.inputs(np, tokens))

    def features(
        self, feature_map: FeatureMap, inputs: tuple[np.ndarray, ...], index: int, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Features of one block; the products of a tile are too small for BLAS to thread, so the threads are ours."""
        weights = feature_map.block(index).astype(self.dtype, copy=False)
        shape = (len(inputs[0]), feature_map.sizes[index])
        # The last block may be narrower than the memory of the one before.
        block = out if out is not None and out.shape == shape else np.empty(shape, dtype=self.dtype)

        def write(first: int, last: int) -> None:
            rows = slice(first * TILE, last * TILE)
            feature_map.write(block[rows], tuple(x[rows] for x in inputs), weights)

        # Whole tiles for each thread, so that the split changes no rounding.
        tiles = math.ceil(shape[0] / TILE)
        in_spans(write, tiles, thread_count() if tiles >= 16 else 1)
        return block

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        """Column-major, as BLAS accumulates in place."""
        return np.zeros(shape, dtype=self.dtype, order="F")

    def spread_gram(self, feature_map: FeatureMap, tokens: Any) -> None:
        """One device."""
        return

    def add_gram(self, G: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Symmetric rank-k update in place: half the work of a general product."""
        # A is row-major: its transpose is the column-major matrix that BLAS takes without a copy, and trans=1 is A A^T.
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
    # No entry of a Gram matrix exceeds the largest of its diagonal: n numbers tell of all n^2.
    if not np.isfinite(np.diagonal(G)).all():
        raise ValueError(
            "the Gram matrix is not finite: scores overflow; scale the tokens down or choose another activation"
        )
    # The upper triangle is neither written nor read.
    A: np.ndarray = np.empty(G.shape, order="F")
    for j in range(0, len(A), PANEL):
        A[j:, j : j + PANEL] = G[j:, j : j + PANEL]
    A.flat[:: len(A) + 1] += shift
    try:
        # A check for finite numbers would read the upper triangle, which holds whatever was in memory.
        factor = linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        solution = linalg.cho_solve(factor, Y, check_finite=False)
        # Tiny pivots pass the factorisation and overflow in the solve.
        if np.isfinite(solution).all():
            return np.asarray(solution)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(np.asarray(G, dtype=np.float64), lower=True)
    # Eigenvalues below the rounding error of the working precision carry no information.
    floor = len(values) * np.finfo(G.dtype).eps * max(float(values[-1]), 0.0)
    # np.where evaluates both branches; the maximum keeps the discarded one from dividing by zero.
    inverse = np.where(values > floor, 1 / np.maximum(values + shift, np.finfo(np.float64).tiny), 0.0)
    return np.asarray(vectors @ (inverse[:, None] * (vectors.T @ Y)))


def backend(machine: Compute) -> Backend:
    """The backend of the machine options; ``gpu`` without one is an error that says so."""
    if machine.device != "gpu":
        if machine.devices is not None:
            raise ValueError("compute.devices spreads the examples over accelerators; set device='gpu'")
        return Blas("float32" if machine.dtype == "auto" else machine.dtype)
    if machine.dtype == "float64":
        raise ValueError("dtype='float64' features are computed on the CPU; set device='cpu'")
    # Not at the top: that module imports this one.
    from attnlab.rfa.accelerator import Accelerator

    return Accelerator.first("gpu", PRODUCTS[machine.precision], machine.devices or 1)


@dataclass(frozen=True)
class Features:
    """The features of a batch, block by block; each pass computes them anew, so memory does not grow with the heads.

    With ``reuse`` a block takes the memory of the one before it, which saves the system from handing out and clearing
    new pages; only passes that keep no block may ask for it.
    """

    feature_map: FeatureMap
    tokens: Any
    backend: Backend
    reuse: bool = False

    def __iter__(self) -> Iterator[Any]:
        inputs, block = self.backend.inputs(self.feature_map, self.tokens), None
        for index in range(len(self.feature_map.sizes)):
            block = self.backend.features(self.feature_map, inputs, index, block if self.reuse else None)
            yield block

    def __len__(self) -> int:
        return len(self.feature_map.sizes)

    def passing(self) -> Features:
        """The same for a pass that is done with a block before it asks for the next."""
        return replace(self, reuse=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Examples and features."""
        return len(self.tokens), sum(self.feature_map.sizes)
