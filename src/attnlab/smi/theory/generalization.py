"""Errors of predictions on fresh sequences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.arrays import ArrayLike
from attnlab.common.precision import float64
from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, one_of
from attnlab.smi.check import checked
from attnlab.smi.draws import REPLICATES, power_of_two
from attnlab.smi.link import Link
from attnlab.smi.outputs import mean_function, spread_mean
from attnlab.smi.task import Task
from attnlab.smi.theory.gains import draw, points_of, roots
from attnlab.smi.theory.overlap import overlap_matrix

PREDICTORS = ("bayes", "plug-in")


@float64
def generalization_error(
    link: str | Link | Task,
    Q: ArrayLike,
    *,
    predictor: str = "bayes",
    draws: int = 2**11,
    replicates: int = REPLICATES,
) -> Prediction:
    r"""Squared error of a fresh output, summed over its entries, when the estimate has the overlaps Q.

    .. math:: \mathbb{E}\,|y - \mathbb{E}[y | \omega]|^2 \;(\text{bayes}), \qquad
              \mathbb{E}\,|y - \mathrm{mean}(\omega)|^2 \;(\text{plug-in})

    with :math:`z \sim N(0, I)` and :math:`\omega = zQ + \zeta(QV)^{1/2}`, V = I - Q. E[y | omega] averages the mean
    output over z given omega; the error uses a product of two independent averages, which has no bias from their noise.

    Source: derived here.  Status: asymptotic.

    >>> round(float(generalization_error("linear(noise=0.1)", [[0.6]])), 2)
    0.5
    """
    link = checked(link)
    one_of("predictor", predictor, PREDICTORS)
    draws, replicates = power_of_two("draws", draws), integer("replicates", replicates, low=2)
    # Q = I is allowed: known directions leave the noise of the output.
    V = np.eye(link.rank) - overlap_matrix("Q", Q, link.rank, closed=True)
    normals, weights = points_of(link, draws, replicates, "generalization")
    root = roots(V)
    flat = jnp.asarray(normals.reshape(replicates * draws, -1))
    drawn = jax.vmap(lambda x: draw(link, x, root))(flat)
    y, omega = np.asarray(drawn.y), np.asarray(drawn.omega)
    if predictor == "plug-in":
        # No inner average, whose noise a product of two would have to remove.
        first = again = np.asarray(jax.vmap(mean_function(link))(jnp.asarray(omega)))
    else:
        first, again = (spread_mean(link, omega, V, which) for which in (0, 1))
    product = ((y - first) * (y - again)).reshape(replicates, draws, -1).sum(axis=2)
    found = (weights * product).sum(axis=1)
    return Prediction(found.mean(), found.std(ddof=1) / np.sqrt(replicates), "asymptotic")
