"""sum_i softmax_i(sharpness <x_0, x_i>) <b, x_i>."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import integrate, special

from attnlab.common.validation import real
from attnlab.rfa.sphere import inner_product_law
from attnlab.rfa.targets.base import Target, scores

if TYPE_CHECKING:
    from attnlab.rfa.task import Task


@dataclass(frozen=True)
class Softmax(Target):
    """sum_i softmax_i(sharpness <x_0, x_i>) <b, x_i>: one softmax head. Not an average over keys of one function."""

    sharpness: float = 4.0
    name: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        real("sharpness", self.sharpness)

    @property
    def label(self) -> str:
        """softmax_i(...) <b, x_i>."""
        factor = "" if self.sharpness == 1 else f"{self.sharpness:g}"
        return rf"softmax$_i({factor}\langle x_0, x_i\rangle)\,\langle b, x_i\rangle$"

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The attention output along b."""
        weights = special.softmax(self.sharpness * scores(query, keys), axis=1)
        return np.asarray((weights * (keys @ task.b)).sum(axis=1))

    def variance(self, task: Task) -> float | None:
        r"""Variance of :math:`\sum_i w_i \langle b, x_i\rangle` with softmax weights w, for tokens on the sphere.

        Given the scores t the components of the keys across the query are independent and centred, so that
        :math:`d\,\mathrm{Var} = \mathbb{E}\big[(\sum_i w_i t_i)^2 + \sum_i w_i^2 (1 - t_i^2)\big]`. With
        :math:`Z^{-2} = \int_0^\infty s e^{-sZ} ds` for the normalisation Z the expectation factorises over keys.
        """
        return _variance(self.sharpness, task.d, task.n_keys) if task.token_law == "sphere" else None


@functools.lru_cache(maxsize=256)
def _variance(sharpness: float, d: int, N: int) -> float:
    t, weight = inner_product_law(d)
    # A common factor cancels in the weights; with this one no weight overflows for sharpness >= 0.
    e = np.exp(sharpness * (t - 1))

    def integrand(log_s: float) -> float:
        s = np.exp(log_s)
        damped = weight * np.exp(-s * e)
        # w_i^2 t_i^2 from the square of the sum and w_i^2 (1 - t_i^2) add up to w_i^2: hence e^2 without t.
        g, first, second = damped.sum(), damped @ (e * t), damped @ e**2
        pairs = N * (N - 1) * g ** (N - 2) * first**2 if N > 1 else 0.0
        # s ds = s^2 d(log s).
        return float(s * s * (N * g ** (N - 1) * second + pairs))

    value, _ = integrate.quad(integrand, -30, 30, limit=400, points=[-3, 0, 3, 6, 10])
    return float(value / d)
