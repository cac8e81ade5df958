"""The dense work on accelerators: the verbs of :class:`attnlab.rfa.backend.Backend` as compiled JAX functions for one
device, and the Gram matrix of a batch spread over several.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from attnlab.common.compute import jax_device
from attnlab.rfa.backend import solve_shifted
from attnlab.rfa.features import FeatureMap


# The map is hashed: its blocks of one shape share a compiled program, and so do maps of any seed and mean.
@functools.partial(jax.jit, static_argnames=("feature_map", "precision"))
def _features(feature_map: Any, inputs: tuple[Array, ...], weights: Array, precision: str) -> Array:
    with jax.default_matmul_precision(precision):
        phi: Array = feature_map.apply(jnp, inputs, weights)
    return phi


@functools.partial(jax.jit, static_argnames="precision", donate_argnums=0)
def _add_gram(G: Array, A: Array, precision: str) -> Array:
    with jax.default_matmul_precision(precision):
        return G + A @ A.T


@functools.partial(jax.jit, static_argnames="precision", donate_argnums=0)
def _add_product(C: Array, A: Array, B: Array, precision: str) -> Array:
    with jax.default_matmul_precision(precision):
        return C + A @ B


@jax.jit
def _cholesky_solve(G: Array, shift: Array, Y: Array) -> Array:
    A = G.astype(jnp.float64).at[jnp.diag_indices(len(G))].add(shift)
    # Callers promise the lower triangle, which is what is read; the default would first average both triangles.
    factor = jax.lax.linalg.cholesky(A, symmetrize_input=False)
    return jnp.asarray(jax.scipy.linalg.cho_solve((factor, True), Y))


@dataclass(frozen=True)
class Accelerator:
    """JAX arrays on one device; ``precision`` of matrix products is ``highest`` (fp32) or ``tensorfloat32``."""

    device: Any
    precision: str = "highest"
    count: int = 1

    @classmethod
    def first(cls, platform: str, precision: str = "highest", count: int = 1) -> Accelerator:
        """The first device of a platform, and how many share Gram matrices; their absence is an error that says so."""
        device = jax_device(platform)
        if count > len(jax.devices(platform)):
            raise ValueError(f"devices must be at most the {len(jax.devices(platform))} that JAX sees, got {count}")
        return cls(device, precision, count)

    def spread_gram(self, feature_map: FeatureMap, tokens: Any) -> Array | None:
        """The Gram matrix shared by several devices; None where there is one."""
        if self.count == 1:
            return None
        devices = jax.devices(self.device.platform)[: self.count]
        return sharded_gram(feature_map, np.asarray(tokens), devices, self.precision)

    def put(self, tokens: Any) -> Array:
        """An array in device memory, float32."""
        result: Array = jax.device_put(jnp.asarray(tokens, dtype=jnp.float32), self.device)
        return result

    def inputs(self, feature_map: FeatureMap, tokens: Array) -> tuple[Array, ...]:
        """What all blocks share, in device memory."""
        return feature_map.inputs(jnp, tokens)

    def features(
        self, feature_map: FeatureMap, inputs: tuple[Array, ...], index: int, out: Array | None = None
    ) -> Array:
        """Features of one block; the weights are drawn on the host, the same numbers as on the CPU.

        Memory is JAX's to reuse, so ``out`` is not looked at.
        """
        result: Array = _features(feature_map.program, inputs, self.put(feature_map.block(index)), self.precision)
        return result

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """A device array of zeros."""
        return jnp.zeros(shape, dtype=jnp.float32, device=self.device)

    def add_gram(self, G: Array, A: Array) -> Array:
        """Rank-k update; the accumulator's memory is reused."""
        result: Array = _add_gram(G, A, self.precision)
        return result

    def add_product(self, C: Array, A: Array, B: Any) -> Array:
        """General product; the accumulator's memory is reused."""
        result: Array = _add_product(C, A, self.put(B), self.precision)
        return result

    def solve(self, G: Array, shift: float, Y: np.ndarray) -> np.ndarray:
        """Cholesky in float64 on the device; a numerically singular matrix is pseudo-inverted on the host."""
        # Outside this block JAX turns float64 into float32, unless it is told otherwise for the whole process.
        with jax.enable_x64(True):
            right = jax.device_put(np.asarray(Y, dtype=np.float64), self.device)
            solution = np.asarray(_cholesky_solve(G, jnp.float64(shift), right))
        # A failed factorisation is no exception in JAX: the solution is NaN.
        return solution if np.isfinite(solution).all() else solve_shifted(np.asarray(G), shift, Y)


@functools.partial(jax.jit, static_argnames=("precision", "rows"), donate_argnums=0)
def _add_sharded_gram(G: Array, A: Array, precision: str, rows: NamedSharding) -> Array:
    with jax.default_matmul_precision(precision):
        # The constraint fixes that rows stay spread; the layout of a result is otherwise the compiler's choice.
        total: Array = jax.lax.with_sharding_constraint(G + A @ A.T, rows)  # type: ignore[no-untyped-call]
    return total


def sharded_gram(
    feature_map: FeatureMap, tokens: np.ndarray, devices: Sequence[Any] | None = None, precision: str = "highest"
) -> Array:
    """Phi Phi^T with its rows, and the examples they belong to, spread over devices (all that JAX sees).

    Each device computes the features of its own examples and receives those of the others block by block: memory
    n^2 / k + n block on each of k devices, and n block numbers sent for n^2 block / k products.
    """
    n, chosen = len(tokens), list(jax.devices() if devices is None else devices)
    mesh = Mesh(np.array(chosen), ("examples",))
    rows, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("examples",), ()))  # type: ignore[no-untyped-call]
    # Rows that fill the last device up; they are cut off again.
    filled = np.concatenate([tokens, np.zeros((-n % len(chosen), *tokens.shape[1:]))]).astype(np.float32)
    inputs = feature_map.inputs(jnp, jax.device_put(filled, rows))
    G = jnp.zeros((len(filled), len(filled)), dtype=jnp.float32, device=rows)
    for index in range(len(feature_map.sizes)):
        # Every device has all weights of the block, since each computes all features of its own examples.
        phi = _features(feature_map.program, inputs, jax.device_put(feature_map.block(index), everywhere), precision)
        G = _add_sharded_gram(G, phi, precision, rows)
    return G[:n, :n]
