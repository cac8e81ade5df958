r"""The exact test error of linear attention: no test sample is needed.

For tasks with :math:`|w|^2 = d`, mean :math:`\mu` and second moment R, the test error of :math:`x^T G h` is

.. math:: e = 1 + \rho - \frac2d \mathrm{Tr}\,G A^T + \frac1d \mathrm{Tr}\,G B G^T,
          \qquad A = \mathbb{E}\,w h^T,\ B = \mathbb{E}\,h h^T.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attnlab.common.validation import finite_array, one_of
from attnlab_icl.task import TASKS, Task, Tasks


def moments(task: Task, tasks: Tasks = "pretraining") -> tuple[Float[np.ndarray, "d d+1"], Float[np.ndarray, "p p"]]:
    r"""A and B of the contexts of ``pretraining`` or ``new`` tasks.

    .. math:: A = [R,\ (1+\rho)\mu], \qquad
              B = \begin{pmatrix}(1+\rho)\frac dl I + (1+\frac1l)R & (1+\rho)(1+\frac2l)\mu \\
              \cdot & (1+\rho)^2(1+\frac2l)\end{pmatrix}

    Source: arXiv:2405.11751.  Status: exact.
    """
    d, l, s = task.d, task.l, 1 + task.rho
    if one_of("tasks", tasks, TASKS) == "new" or task.k is None:
        R, mu = np.eye(d), np.zeros(d)
    else:
        R, mu = task.W.T @ task.W / task.k, task.W.mean(axis=0)
    A = np.column_stack([R, s * mu])
    B = np.empty((d + 1, d + 1))
    # Pairs i != j of examples give (1 - 1/l) R; i = j give 2 R / l and s d / l I, by Wick's theorem.
    B[:d, :d] = s * d / l * np.eye(d) + (1 + 1 / l) * R
    B[d, :d] = B[:d, d] = s * (1 + 2 / l) * mu
    # E y^4 = 3 s^2: (1 - 1/l) + 3/l.
    B[d, d] = s**2 * (1 + 2 / l)
    return A, B


def exact_error(gamma: Any, task: Task, tasks: Tasks = "new") -> float:
    """Test error of a fitted :class:`~attnlab_icl.LinearAttention`, or of its matrix G, on fresh contexts.

    Source: arXiv:2405.11751.  Status: exact.
    """
    G = finite_array("gamma", getattr(gamma, "gamma_", gamma), shape=(task.d, task.d + 1))
    A, B = moments(task, tasks)
    return float(1 + task.rho + (np.vdot(G @ B, G) - 2 * np.vdot(G, A)) / task.d)
