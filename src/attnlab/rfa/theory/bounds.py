r"""Bounds: how far finitely many heads are from the target, and how many samples suffice.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
B           complexity of the target
M, n        heads, samples;  delta failure probability
R           radius of the class |theta| <= R
K           kernel; E K(x,x) its mean diagonal
==========  =======================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.common.prediction import Prediction
from attnlab.common.validation import integer, one_of, positive, real
from attnlab.rfa.task import Task
from attnlab.rfa.theory.brfa import biased_trace_bound
from attnlab.rfa.theory.complexity import (
    MODELS,
    complexity,
    complexity_approx,
    complexity_exact,
    tensors,
    witness_degree,
)
from attnlab.rfa.theory.spectrum import attention_trace


@dataclass(frozen=True)
class Witness:
    """Values v(W_m) / M of M random heads that represent f* up to a distance, on an event of probability 1 - delta.

    Attributes
    ----------
    radius : bound on |theta|, the norm of the witness.
    distance : bound on its distance to f* in L2.
    trace : bound on the mean diagonal of the kernel of the M heads.
    """

    radius: float
    distance: float
    trace: float


def witness(task: Task, n_heads: int, *, delta: float = 0.1) -> Witness:
    r"""One witness for M heads, and the event on which its norm, its distance and the kernel's trace are bounded.

    With v(W) a polynomial of degree k in W, :math:`B = \mathbb{E}|v|^2` and T = E K(x, x), each of

    .. math:: |\theta|^2 \le B\Big(1 + \sqrt{3(9^k-1)/\delta M}\Big), \quad
              \|f_* - f_M\|^2 \le \frac{3}{\delta}\,\frac{2\sqrt{3/2}\,3^k B}{M}, \quad
              \mathbb{E}_x K_M(x, x) \le T + \sqrt{18/\delta M}

    fails with probability at most delta/3: the first and third by Chebyshev's inequality with the fourth moments
    :math:`\mathbb{E}|v|^4 \le 9^k B^2` and :math:`\mathbb{E}|\phi|^4 \le 6`, or by Markov's where that is smaller, the
    second by Markov's.

    Source: derived here.  Status: bound, for tokens on the unit sphere.
    """
    M, delta = integer("n_heads", n_heads, low=1), real("delta", delta, low=0, high=1, open_low=True)
    terms = [(*witness_degree(*degrees), norm) for degrees, norm in tensors(task).items()]
    # One witness for the sum of the terms: its degree is the largest, norms add up.
    k, B = max(k for k, _, _ in terms), sum(math.sqrt(price) * norm for _, price, norm in terms) ** 2
    trace = attention_trace(task.d, task.n_keys)
    return Witness(
        radius=math.sqrt(B * min(1 + math.sqrt(3 * (9.0**k - 1) / (delta * M)), 3 / delta)),
        distance=math.sqrt(3 / delta * heads_bound(task, M)),
        trace=min(trace + math.sqrt(18 / (delta * M)), 3 * trace / delta),
    )


def heads_bound(task: Task, n_heads: int, *, form: str = "explicit", delta: float = 0.1) -> Prediction:
    r"""Bound on :math:`\mathbb{E}\|f_* - f_M\|^2_{L2}` of the best values for M random heads.

    ``explicit``: :math:`2\sqrt{3/2}\,3^k B^{(k)}/M`, from a witness v(W) of degree k in W and hypercontractivity, free
    of d; the best k is taken. ``paper``: :math:`(d^2 + \log M)\,B/(\delta M)` with constant one and the paper's B, with
    probability 1 - delta.

    Source: explicit form derived here; arXiv:2307.11353, Theorem 1.  Status: bound.
    """
    M = integer("n_heads", n_heads, low=1)
    delta = real("delta", delta, low=0, high=1, open_low=True)
    if one_of("form", form, ("explicit", "paper")) == "paper":
        B = float(complexity(task, "rfa", form="paper"))
        return Prediction((task.d**2 + math.log(M)) * B / (delta * M), status="bound")
    root = 0.0
    for (r, s), norm in tensors(task).items():
        k, price = witness_degree(r, s)
        # The terms' errors add up in norm, by the triangle inequality; the square follows.
        root += math.sqrt(2 * math.sqrt(1.5) * 3.0**k * price) * norm
    return Prediction(root**2 / M, status="bound")


def heads_for_bound(task: Task, eps: float, *, form: str = "explicit", delta: float = 0.1) -> Prediction:
    r"""Heads that make :func:`heads_bound` at most eps (squared error).

    Source: as :func:`heads_bound`.  Status: bound.
    """
    eps, M = positive("eps", eps), 1
    while (bound := float(heads_bound(task, M, form=form, delta=delta))) > eps:
        # M times the bound does not fall in M, so that M bound / eps never passes the least M.
        M = max(M + 1, math.ceil(M * min(bound / eps, 2.0)))
    return Prediction(M, status="bound")


def _complexity_and_trace(task: Task, model: str, eps: float) -> tuple[float, float]:
    if model == "rfa":
        return float(complexity_exact(task, "rfa")), attention_trace(task.d, task.n_keys)
    if model == "rfmlp":
        # E relu(g)^2 = 1/2: pre-activations have variance one.
        return float(complexity_exact(task, "rfmlp")), 0.5
    return float(complexity_approx(task, "brfa", eps=eps)), biased_trace_bound(task.d)


def excess_risk_bound(
    task: Task,
    n: int,
    n_heads: int | None = None,
    *,
    model: str = "rfa",
    form: str = "explicit",
    delta: float = 0.1,
    eps: float = 0.1,
) -> Prediction:
    r"""Bound on the excess risk of the norm-constrained learner under a 1-Lipschitz loss.

    ``explicit``: :math:`2R\sqrt{\mathbb{E}K(x,x)/n} + \|f_* - f_M\|_{L2}`, in expectation over the sample. For
    infinitely many heads R is the norm of f*. For M of them R, the distance and the trace are those of one
    :func:`witness`, all on one event of probability 1 - delta over the heads; the learner minimises over that ball. For
    ``brfa`` B is that of an approximation within relative squared error eps, whose distance
    :math:`\sqrt{\varepsilon\,\mathbb{E}F^2}` is added; finitely many heads are bounded for ``rfa`` only.
    ``paper``: :math:`\sqrt B\,\big[\sqrt{\log(dM)\log(nNM)/n} + \sqrt{(d^2 + \log M)/(\delta M)}\big]` with
    constant one.

    Source: explicit form derived here; arXiv:2307.11353, Theorem 2.  Status: bound.
    """
    n = integer("n", n, low=1)
    delta = real("delta", delta, low=0, high=1, open_low=True)
    one_of("model", model, MODELS)
    if one_of("form", form, ("explicit", "paper")) == "paper":
        if n_heads is None:
            raise ValueError("the paper's form needs n_heads")
        M, d = integer("n_heads", n_heads, low=1), task.d
        statistical = math.sqrt(math.log(d * M) * math.log(n * task.n_keys * M) / n)
        approximation = math.sqrt((d**2 + math.log(M)) / (delta * M))
        B = float(complexity(task, model, form="paper"))
        return Prediction(math.sqrt(B) * (statistical + approximation), status="bound")
    if n_heads is not None:
        if model != "rfa":
            raise ValueError(f"finitely many heads are bounded for model='rfa' only, got {model!r}")
        found = witness(task, n_heads, delta=delta)
        return Prediction(2 * found.radius * math.sqrt(found.trace / n) + found.distance, status="bound")
    B, trace = _complexity_and_trace(task, model, eps)
    distance = math.sqrt(eps * sum(task.energies.values())) if model == "brfa" else 0.0
    return Prediction(2 * math.sqrt(B * trace / n) + distance, status="bound")


def sample_size(task: Task, eps: float, *, model: str = "rfa", approximation: float = 0.1) -> Prediction:
    r"""Samples that bring the statistical part of the excess risk (1-Lipschitz loss) to eps.

    .. math:: n \ge 4 B\,\mathbb{E}K(x,x)/\varepsilon^2

    For ``brfa`` the complexity is that of an ``approximation`` (relative squared error) of the target.

    Source: derived here.  Status: bound.

    >>> task = Task(target="key_power", p=2)
    >>> bool(sample_size(task, eps=0.5) < sample_size(task, eps=0.5, model="rfmlp"))
    True
    """
    eps = positive("eps", eps)
    B, trace = _complexity_and_trace(task, one_of("model", model, MODELS), approximation)
    return Prediction(math.ceil(4 * B * trace / eps**2), status="bound")


def rademacher_ball(K: np.ndarray, radius: float) -> float:
    r"""Empirical Rademacher complexity of :math:`\{|\theta| \le R\}`: at most :math:`R\sqrt{\operatorname{tr} K}/n`.

    Source: standard.  Status: bound (data dependent).
    """
    return positive("radius", radius) * math.sqrt(float(np.trace(K))) / len(K)


def rademacher_heads(features: np.ndarray, bound: float) -> float:
    r"""Empirical Rademacher complexity of :math:`\{\sum_m |v_m| \le K_1\}`.

    ``features`` are ``(n, M, D)``, without the factor :math:`M^{-1/2}`.

    .. math:: K_1\,(1 + \sqrt{2\ln M})\,\max_m \sqrt{\tfrac1n \sum_j |\phi_m(x_j)|^2}\,/\sqrt n

    Source: derived here.  Status: bound (data dependent).
    """
    n, M = features.shape[:2]
    largest = float(np.sqrt((features**2).sum(axis=2).mean(axis=0)).max())
    return positive("bound", bound) * (1 + math.sqrt(2 * math.log(M))) * largest / math.sqrt(n)
