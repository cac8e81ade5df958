"""The information that the tokens of a tilted link carry by themselves."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.precision import float64
from attnlab.smi.draws import sobol_normals
from attnlab.smi.link import Link

DRAWS = 2**14


@functools.lru_cache(maxsize=256)
@float64
def tilt(link: Link) -> np.ndarray:
    r""":math:`B_0 = E \sum_t (z_t z_t^\top - I)` under the law of the tokens; zero for a link without ``indices``."""
    if link.indices is None:
        return np.zeros((link.rank, link.rank))
    x = sobol_normals(link.dimension + link.noise, DRAWS, ("tilt",))
    z = jnp.asarray(x[:, : link.dimension].reshape(-1, link.tokens, link.rank))
    tilted = jax.vmap(link.indices)(z, jnp.asarray(x[:, link.dimension :]))
    # The untilted indices are a control variate: their second moment is known.
    return np.asarray((jnp.einsum("nta,ntb->ab", tilted, tilted) - jnp.einsum("nta,ntb->ab", z, z)) / DRAWS)
