"""How much an output channel tells: E|g|^2, the one number of the channel that enters the state evolution."""

from __future__ import annotations

import numpy as np

from attnlab.aim.task import Task
from attnlab.common.arrays import ArrayLike
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction

# The dimension of a law that is described by its parameters alone, and d -> infinity: any rho gives a width >= 1.
LIMIT = {"d": 10**18}


@from_law(Task, "tokens", "channel", "noise", **LIMIT)
def channel_strength(task: Task, q: ArrayLike, V: ArrayLike) -> Prediction:
    r""":math:`\mathbb{E}\|g\|^2` of the output channel, omega ~ N(0, q I), z ~ N(omega, V I); broadcasts over q >= 0
    and V > 0.

    Exact measurements (softmax, linear): k / (V + noise). Hardmax: s(tau)/(V + noise), tau = (V + noise)/(q + V +
    noise).

    Source: arXiv:2506.01582; hardmax and untied layouts derived here.  Status: exact; the error is that of the
    integration (hardmax with more than 2 tokens, own channels).

    >>> round(float(channel_strength(0.5, 1.0, channel="hardmax")), 6)
    1.058484
    """
    q, V = np.broadcast_arrays(np.asarray(q, dtype=float), np.asarray(V, dtype=float))
    if not ((q >= 0).all() and (V + task.law.noise > 0).all()):
        raise ValueError(f"q must be >= 0 and V > 0, got q={q!r}, V={V!r}")
    totals = (q + V).ravel()
    value, error = np.empty(totals.shape), np.empty(totals.shape)
    # A channel takes one total variance and many V.
    for total in np.unique(totals):
        here = totals == total
        value[here], error[here] = task.law.strength(V.ravel()[here], float(total), task.layout)
    if q.ndim == 0:
        return Prediction(float(value[0]), float(error[0]))
    return Prediction(value.reshape(q.shape), error.reshape(q.shape))


@from_law(Task, "tokens", "tied", "attention", "mask", "channel", **LIMIT)
def measurements(task: Task) -> Prediction:
    r"""k, the number of exact linear measurements of S in one sequence.

    ============================  =================  ==============
    ..                            full               causal
    ============================  =================  ==============
    tied softmax                  (T^2 + T - 2)/2    T (T - 1)/2
    untied self softmax           T (T - 1)          T (T - 1)/2
    untied cross softmax          T_q (T_k - 1)      --
    linear                        all components     visible ones
    ============================  =================  ==============

    Source: arXiv:2506.01582 (tied, full); derived here.  Status: exact.

    >>> int(measurements(3, tied=False).value), int(measurements(3, mask="causal").value)
    (6, 3)
    """
    k = task.law.informative(task.layout)
    if k is None:
        raise ValueError(f"channel {task.law.name!r} is not an exact linear measurement")
    return Prediction(k)
