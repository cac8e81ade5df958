"""Errors of predictions on fresh sequences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.common.validation import finite_array, integer, one_of
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, power_of_two
from attnlab.smi.outputs import mean_function, spread_mean
from attnlab.smi.theory.gains import draw, normals_of

PREDICTORS = ("bayes", "plugin")


@float64
def generalization_error(
    link: Any, Q: Any, *, predictor: str = "bayes", draws: int = 2**11, replicates: int = REPLICATES
) -> Prediction:
    r"""Squared error of a fresh output, summed over its entries, when the estimate has the overlaps Q.

    .. math:: \mathbb{E}\,|y - \mathbb{E}[y | \omega]|^2 \;(\text{bayes}), \qquad
              \mathbb{E}\,|y - \mathrm{mean}(\omega)|^2 \;(\text{plugin})

    with :math:`z \sim N(0, I)` and :math:`\omega = zQ + \zeta(QV)^{1/2}`, V = I - Q. E[y | omega] averages the mean
    output over z given omega; the error uses a product of two independent averages, which has no bias from their noise.

    Source: derived here.  Status: asymptotic.

    >>> round(float(generalization_error("linear(noise=0.1)", [[0.6]])), 2)
    0.5
    """
    link = checked(link)
    one_of("predictor", predictor, PREDICTORS)
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=2)
    Q = finite_array("Q", Q, shape=(link.rank, link.rank)).astype(float)
    q = np.linalg.eigvalsh(Q)
    if not np.allclose(Q, Q.T) or q[0] < -1e-9 or q[-1] > 1 + 1e-9:
        raise ValueError(f"Q must be symmetric with eigenvalues in [0, 1], got eigenvalues {q}")
    V = np.eye(link.rank) - Q
    normals = normals_of(link, draws, replicates, "generalization").reshape(replicates * draws, -1)
    drawn = jax.vmap(lambda x: draw(link, x, jnp.asarray(V)))(jnp.asarray(normals))
    y, omega = np.asarray(drawn.y), np.asarray(drawn.omega)
    if predictor == "plugin":
        first = again = np.asarray(jax.vmap(mean_function(link))(jnp.asarray(omega)))
    else:
        first, again = (spread_mean(link, omega, V, which) for which in (0, 1))
    product = ((y - first) * (y - again)).reshape(replicates, draws, -1).sum(axis=2).mean(axis=1)
    return Prediction(product.mean(), product.std(ddof=1) / np.sqrt(replicates), "asymptotic")
