"""Softmax attention: the output is the row-wise softmax of the indices."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from attnlab.aim.channels.channel import Integral, rows_sum_to_one
from attnlab.aim.channels.measurement import Measurement
from attnlab.aim.channels.residual import Residual
from attnlab.aim.channels.rows import rows_error
from attnlab.aim.indices import Layout
from attnlab.common.validation import nonnegative, positive

SMALLEST = 1e-37  # of a weight inside a logarithm: 0 log 0 = 0, in single precision too


@dataclass(frozen=True)
class Softmax(Measurement):
    r"""y_ab = exp(beta h_ab) / sum_c exp(beta h_ac) over the visible c.

    Row logits are known up to a constant, so y fixes the differences (log y_ab - log y_ac)/beta = h_ab - h_ac. Tied,
    full mask: all of h up to one constant, k = p - 1.

    Parameters
    ----------
    beta : inverse temperature.
    noise : variance of the Gaussian noise added to the whitened indices.
    """

    beta: float = 1.0
    noise: float = 0.0
    name: ClassVar[str] = "softmax"
    shift_invariant: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("squared_output", "cross_entropy", "logits")

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        nonnegative("noise", self.noise)

    def output(self, h: np.ndarray, rng: np.random.Generator | None = None, visible: Any = None) -> np.ndarray:
        """y for indices h."""
        return np.asarray(np.exp(self.log_output(h, visible)))

    def log_output(self, h: np.ndarray, visible: Any = None) -> np.ndarray:
        """log y, which stays exact where y underflows; minus infinity where the mask hides."""
        h = h if visible is None else np.where(visible, h, -np.inf)
        top = np.maximum(h.max(axis=-1, keepdims=True), -1e300)  # a row that sees nothing has weight nowhere
        logits = self.beta * (h - top)
        return np.asarray(logits - np.log(np.maximum(np.exp(logits).sum(axis=-1, keepdims=True), 1e-300)))

    def functionals(self, layout: Layout) -> np.ndarray:
        """h_ab - h_ac for the visible b and the last visible c of each row."""
        kept, last = _contrasts(layout)
        component, scale = layout.component, layout.scale
        rows = np.zeros((len(kept), layout.p))
        for row, (a, b) in enumerate(kept):
            rows[row, component[a, b]] += scale[component[a, b]]
            rows[row, component[a, last[a]]] -= scale[component[a, last[a]]]
        return rows

    def summary(self, y: np.ndarray, layout: Layout) -> np.ndarray:
        """The measured part of z, from y or from log y: a softmax is positive somewhere, its logarithm nowhere."""
        y = np.asarray(y, dtype=np.float64)
        log = bool((y[:, layout.visible] <= 0).all())
        visible = layout.visible
        rows_sum_to_one(np.where(visible, np.exp(np.where(visible, y, 0.0)), 0.0) if log else y, visible)
        if not log and (y[:, visible] <= 0).any():
            raise ValueError(
                "y must be positive wherever the mask lets it: where softmax outputs underflowed to 0 the indices "
                "cannot be read off, and log y is needed (task.sample(..., log=True))"
            )
        logits = y if log else np.log(np.where(visible, y, 1.0))
        kept, last = _contrasts(layout)
        contrasts = [logits[:, a, b] - logits[:, a, last[a]] for a, b in kept]
        return np.asarray(np.stack(contrasts, axis=-1) @ _inverse(self, layout).T / self.beta)

    def loss_and_slope(self, loss: str, h: Any, target: Any, layout: Layout) -> tuple[Any, Any]:
        """cross_entropy: sum_ab y_ab log(y_ab / y_hat_ab); squared_output: |y_hat - y|_F^2; logits as measured."""
        if loss == "logits":
            return super().loss_and_slope(loss, h, target, layout)
        xp, visible = h.__array_namespace__(), layout.visible
        logits = xp.where(visible, self.beta * h, -1e30)
        # A masked entry is -1e30 and not minus infinity: infinity minus infinity, in a row without visible entries, is
        # NaN.
        weights = xp.where(visible, xp.exp(logits - logits.max(axis=-1, keepdims=True)), 0.0)
        found = weights / xp.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
        gap = found - target
        if loss == "cross_entropy":
            logs = xp.where(target > 0, xp.log(xp.maximum(target, SMALLEST) / xp.maximum(found, SMALLEST)), 0.0)
            return (target * logs).sum(axis=(-1, -2)), self.beta * gap
        # beta (diag p - p p^T), the derivative of a softmax row, applied to 2 gap.
        slope = 2 * self.beta * found * (gap - (found * gap).sum(axis=-1, keepdims=True))
        return (gap**2).sum(axis=(-1, -2)), slope

    def majorant(self, loss: str, h: np.ndarray, layout: Layout) -> np.ndarray:
        """A row's second derivative beta^2 (diag p - p p^T) is at most beta^2 / 2."""
        if loss == "logits":
            return super().majorant(loss, h, layout)
        return self.beta**2 / 2 * np.where(layout.visible, h, 0.0)

    def generalization(self, residual: Residual, predictor: str) -> Integral:
        """Row by row: sigmoids for two visible entries (quadrature), quasi-Monte Carlo for more."""
        return rows_error(
            residual, self.noise, predictor, self.output, functools.partial(_two_sigmoids, beta=self.beta)
        )


def _two_sigmoids(q: float, V: float, predictor: str, beta: float) -> float:
    """2 E Var[p | omega] (Bayes) or 2 E (p - p_hat)^2 (plug-in), p the sigmoid of a row's logit difference."""
    (centre, w), (shift, v) = (_trapezoid(np.sqrt(variance), beta) for variance in (q, V))
    p = expit(beta * (centre[:, None] + shift))
    best = p @ v if predictor == "bayes" else expit(beta * centre)
    # Both entries of a row, p and 1 - p, miss by the same amount.
    return float(2 * (w @ ((p - best[:, None]) ** 2 @ v)))


def _trapezoid(sigma: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for N(0, sigma^2) against functions of sigmoid(beta x), whose poles are pi/beta away."""
    # Spacing 0.6/beta or sigma/2.5, the smaller: poles at pi/beta then leave exp(-2 pi^2/0.6) = 5e-15.
    half = int(np.clip(9 * sigma * max(beta / 0.6, 2.5 / max(sigma, 1e-12)), 1, 2000))
    x = np.linspace(-9, 9, 2 * half + 1)
    weights = np.exp(-(x**2) / 2)
    return sigma * x, weights / weights.sum()


@functools.lru_cache(maxsize=32)
def _contrasts(layout: Layout) -> tuple[list[tuple[int, int]], list[int]]:
    """Entries (a, b) compared with the last visible one of their row, and that last one for each row."""
    last = [int(np.flatnonzero(row)[-1]) if row.any() else 0 for row in layout.visible]
    kept = [(int(a), int(b)) for a, b in zip(*np.nonzero(layout.visible), strict=True) if b != last[a]]
    return kept, last


@functools.lru_cache(maxsize=32)
def _inverse(channel: Softmax, layout: Layout) -> np.ndarray:
    """The pseudo-inverse of the functionals: the shortest z with these contrasts, (p, m)."""
    return np.asarray(np.linalg.pinv(channel.functionals(layout)))
