"""Limits on what can be learned that need no integral over outputs."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.smi.check import checked
from attnlab.smi.draws import sobol_normals
from attnlab.smi.link import Link
from attnlab.smi.task import Task

PROBES = 8  # generic sequences at which equations are counted
LARGEST = 10  # rank up to which all sets of directions are examined


def recovery_bound(link: str | Link | Task) -> Prediction:
    r"""Sample complexity below which no direction with a vanishing conditional mean is learned weakly.

    .. math:: \alpha \ge \frac{1}{T(Tr + 1)}, \qquad
              \alpha \ge \frac{1}{T(T + 1)} \;\text{if the sign of each direction is a symmetry}

    The growth rate of a small overlap is at most E sum_ts (z_t z_s^T - delta I)^T (z_t z_s^T - delta I), since the
    conditional mean of a matrix is not larger than the matrix in mean square.

    Source: derived here.  Status: bound.

    >>> round(1 / float(recovery_bound("attention(tokens=3)")))
    12
    """
    link = checked(link)
    T = link.tokens
    separate = link.rank == 1 or link.symmetry in ("sign", "hyperoctahedral", "orthogonal")
    return Prediction(1 / (T * (T + 1) if separate else T * (T * link.rank + 1)), 0.0, "bound")


@float64
def counting_bound(link: str | Link | Task) -> Prediction:
    r"""Sample complexity below which the directions of a noiseless link cannot be recovered exactly.

    .. math:: \alpha \ge \max_U \frac{\dim U}{m_U}

    over sets U of directions, where m_U is the number of smooth equations of one sequence that see U: the rank of the
    derivative of y in the indices of U. n m_U equations must determine dim U vectors of length d. Infinite for
    discrete outputs, which have no smooth equation, and for noisy ones.

    Source: derived here.  Status: bound.

    >>> float(counting_bound("attention")), float(counting_bound("deep_attention"))
    (0.5, 1.0)
    """
    link = checked(link)
    if link.rank > LARGEST:
        raise ValueError(f"counting_bound examines all sets of directions, at most rank {LARGEST}, got {link.rank}")
    if link.noise:
        return Prediction(np.inf, 0.0, "bound")
    z = sobol_normals(link.dimension, PROBES, ("counting",)).reshape(PROBES, link.tokens, link.rank)
    slope = jax.vmap(jax.jacfwd(lambda x: jnp.ravel(link.sample(x, jnp.zeros(0)))))(jnp.asarray(z))
    found = []
    for size in range(1, link.rank + 1):
        for chosen in itertools.combinations(range(link.rank), size):
            part = np.asarray(slope)[..., list(chosen)].reshape(PROBES, slope.shape[1], -1)
            # The generic rank: single sequences may have less.
            equations = int(np.linalg.matrix_rank(part, rtol=1e-9).max())
            found.append(size / equations if equations else np.inf)
    return Prediction(max(found), 0.0, "bound", detail={"rank": link.rank})
