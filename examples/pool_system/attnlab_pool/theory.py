"""What is predicted."""

from __future__ import annotations

import numpy as np

from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab_pool.task import Task


@from_law(Task, "d", "noise_std")
def risk(task: Task, n: int) -> Prediction:
    r"""Test error of least squares after n examples, :math:`\sigma^2 (1 + d/(n - d - 1))` for n > d + 1.

    Source: the mean of an inverse Wishart matrix.  Status: exact.

    >>> risk(Task(d=4), 15)
    0.35 (exact)
    """
    room = n - task.d - 1
    return Prediction(task.noise_std**2 * (1 + task.d / room) if room > 0 else np.inf)


EXAMPLES = {"n": "50", "d": "8"}
