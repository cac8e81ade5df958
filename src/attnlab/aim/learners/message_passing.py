r"""The iteration of message passing, for one attention matrix or one for each of several layers.

==========  ======================================================================================
symbol      meaning
==========  ======================================================================================
omega, V    mean and variance of the whitened indices, damped by eta
g           output function of the channel
C           error of the estimate as the state evolution predicts it, finite_size F(Delta)
R, Delta    S + sqrt(Delta) noise, the effective observation of S, Delta = 1/q_hat
c           2 (tied) or 1 (untied)
==========  ======================================================================================

In every layer:

    omega <- A(S_hat) - C g,   V <- C,   both damped          (Onsager term)
    g     <- g_out(y, omega, V)                               (couples the layers)
    q_hat <- c alpha E|g|^2(V)     (the channel's own formula; mean |g|^2 where there is none)
    R     <- S_hat + c/(q_hat d) A^T(g),   Delta <- 1/q_hat
    S_hat <- RIE(R, Delta),   C <- finite_size F(Delta)

Rank-one tokens give R outliers of relative size 1/sqrt(alpha k d) that the RIE would not shrink: eigenvalues are
clipped to the bulk before it, and the messages are damped.

Source: arXiv:2506.01582; clipping and several layers derived here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from attnlab.aim.indices import Layout
from attnlab.aim.messages.denoise import denoise
from attnlab.common.stopping import ended

DIVERGED = 10.0  # self-overlap in units of Q_0 that no estimate can reach
FAITHFUL = 3.0  # mean |g|^2 over its expectation beyond which V is not the variance of the indices
VANISHED = 1e-3  # predicted error below which S counts as recovered, and share of Q_0 beyond its rank that it may have
ROUNDING = 1e-4  # variance of the indices below which that does not matter

# (S, C, V, damping) to A^T g and mean |g|^2, layer by layer
Sweep = Callable[[list[Any], np.ndarray, np.ndarray, float], tuple[Sequence[Any], np.ndarray]]


class MessagePassing:
    """The loop; a learner has ``rho``, ``max_iter``, ``tol``, ``prior`` and ``layout_``, and says how it damps."""

    rho: float
    max_iter: int
    tol: float
    trace_: dict[str, list[Any]]
    S_: np.ndarray
    predicted_mse_: Any

    @property
    def prior(self) -> ModuleType:
        """The spectrum of the prior."""
        raise NotImplementedError

    @property
    def layout_(self) -> Layout:
        """Which queries meet which keys."""
        raise NotImplementedError

    def _strengths(self, V: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """E|g|^2 of every layer."""
        return measured

    def _scaled(self, S: Any, error: float) -> Any:
        """An estimate, given the scale of the prior where y does not know it."""
        return S

    def _damping(self, alpha: float, d: int) -> float:
        """The share of the old messages in the next iteration."""
        raise NotImplementedError

    def _iterate(
        self, sweep: Sweep, array: Any, alpha: float, truth: Any, start: np.ndarray, error: np.ndarray
    ) -> None:
        """Run to convergence from estimates ``start`` (layers, d, d) with errors ``error`` (layers,)."""
        layers, d, _ = start.shape
        S, reference = [array(s) for s in start], None if truth is None else [array(s) for s in truth]
        # Undamped at first: there are no old messages to keep.
        V, damping, rate, limit = error, 0.0, self.layout_.rate, self.prior.finite_size(d)
        self.trace_ = {}
        reason, began = "max_iter reached", time.perf_counter()
        for _ in range(self.max_iter):
            V = (1 - damping) * error + damping * V
            totals, measured = sweep(S, error, V, damping)
            expected = self._strengths(V, measured)
            q_hat = rate * alpha * expected
            # A mean |g|^2 from the product of two noisy estimates can be negative: NaN ends the run as diverged.
            R = [s + (rate / (q * d) if q > 0 else np.nan) * t for s, q, t in zip(S, q_hat, totals, strict=True)]
            if not all(np.isfinite(float(r.sum())) for r in R):
                reason = "diverged"
                break
            error = limit * np.array([float(self.prior.denoising_mmse(1 / q, self.rho)) for q in q_hat])
            old, S = S, [self._denoised(r, 1 / q, e) for r, q, e in zip(R, q_hat, error, strict=True)]
            found = [_distances(S[i], old[i], None if reference is None else reference[i]) for i in range(layers)]
            self._record(np.array(found).T, error, 1 / q_hat, began)
            change, overlap = np.array(found)[:, 0], np.array(found)[:, 1]
            # Negated, so that NaN counts as diverged.
            if not (overlap < DIVERGED * self.prior.second_moment(self.rho)).all():
                reason = "diverged"
                break
            if (change < self.tol).all():
                reason = self._verdict(S, error, V, measured / expected)
                break
            damping = self._damping(alpha, d)
        if reason == "diverged":
            S, error = list(self._prior_means(layers, d)), np.ones(layers)
            reason = "diverged, S_ is the prior mean; more damping or more samples help"
        self.S_, self.predicted_mse_ = np.stack([np.asarray(s, dtype=np.float64) for s in S]), error
        n_iter = len(self.trace_.get("change", []))
        ended(self, converged=reason == "tolerance reached", reason=reason, n_iter=n_iter)

    def _verdict(self, S: list[Any], error: np.ndarray, V: np.ndarray, excess: np.ndarray) -> str:
        """Whether what has settled is an estimate of the predicted error."""
        # the real variance of the indices is about V * excess
        if not ((excess < FAITHFUL) | (V * excess < ROUNDING)).all():
            return "the messages do not have the variance they assume"
        # At small d a wrong matrix can fit all data: its rank tells, where the error is predicted to vanish.
        recovered = [np.asarray(s) for s, e in zip(S, error, strict=True) if e < VANISHED]
        most = VANISHED * self.prior.second_moment(self.rho)
        if self.rho < 1 and any(_beyond(s, round(self.rho * len(s))) > most for s in recovered):
            return "the estimate fits the data and has more than rho d directions"
        return "tolerance reached"

    def _denoised(self, R: Any, noise: float, error: float) -> Any:
        return self._scaled(denoise(R, noise, self.rho, symmetric=self.layout_.tied), error)

    def _prior_means(self, layers: int, d: int) -> np.ndarray:
        return np.stack([self.prior.prior_mean(self.rho) * np.eye(d)] * layers)

    def _record(self, distances: np.ndarray, error: np.ndarray, noise: np.ndarray, began: float) -> None:
        """Add to the trace: numbers for one layer, lists for several."""
        entry = dict(zip(("change", "self_overlap", "mse", "overlap"), distances, strict=False))
        for name, value in (entry | {"predicted_mse": error, "noise": noise}).items():
            self.trace_.setdefault(name, []).append(value.tolist() if len(value) > 1 else float(value[0]))
        self.trace_.setdefault("seconds", []).append(time.perf_counter() - began)


def _beyond(S: np.ndarray, rank: int) -> float:
    """Squared singular values beyond the largest ``rank``, per dimension."""
    return float((np.linalg.svd(S, compute_uv=False)[rank:] ** 2).sum()) / len(S)


def _distances(S: Any, old: Any, truth: Any) -> list[float]:
    """Change and self-overlap, then error and overlap where the truth is known; per dimension."""
    pairs = [(S - old, S - old), (S, S)]
    if truth is not None:
        pairs += [(S - truth, S - truth), (S, truth)]
    sums = [(a * b).sum() for a, b in pairs]  # all are under way on a device before the first is waited for
    return [float(each) / len(S) for each in sums]
