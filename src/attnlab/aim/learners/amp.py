r"""Approximate message passing for attention-indexed models.

==========  ======================================================================================
symbol      meaning
==========  ======================================================================================
omega, V    mean and variance of the whitened indices, damped by eta
g           output function of the channel
C           error of the estimate as the state evolution predicts it, finite_size F(Delta)
R, Delta    S + sqrt(Delta) noise, the effective observation of S, Delta = 1/q_hat
c           2 (tied) or 1 (untied)
==========  ======================================================================================

    omega <- A(S_hat) - C g,   V <- C,   both damped          (Onsager term)
    g     <- g_out(y, omega, V)
    q_hat <- c alpha E|g|^2(V)     (the channel's own formula; mean |g|^2 where there is none)
    R     <- S_hat + c/(q_hat d) A^T(g),   Delta <- 1/q_hat
    S_hat <- RIE(R, Delta),   C <- finite_size F(Delta)

With q_hat from the formula, V follows the state evolution whatever its start: an understated first error heals, where
mean |g|^2 would confirm it. Rank-one tokens give R outliers of relative size 1/sqrt(alpha k d) that the RIE would not
shrink: eigenvalues are clipped to the bulk before it, and the messages are damped. Hardmax does not see the scale of S,
which the prior alone fixes: there S_hat is given the trace sqrt(rho) d (tied) or the norm (1 - C) d (untied) of the
limit.

Source: arXiv:2506.01582; clipping, scale and untied attention derived here.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np

from attnlab.aim.channels import Channel
from attnlab.aim.learners.prediction import IndexedPredictor
from attnlab.aim.messages.blas import BlasMessages
from attnlab.aim.messages.denoise import denoise
from attnlab.aim.messages.device import DeviceMessages
from attnlab.aim.spectrum import check_rho
from attnlab.aim.token_stream import TokenStream
from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute
from attnlab.common.precision import float64
from attnlab.common.stopping import ended
from attnlab.common.validation import finite_array, integer, positive, real

DIVERGED = 10.0  # self-overlap in units of Q_0 that no estimate can reach
PATIENCE = 8  # iterations after which the change should be smaller
CROWDED = 100.0  # alpha k d below which single sequences stand out and more damping is needed
FAITHFUL = 3.0  # mean |g|^2 over its expectation beyond which V is not the variance of the indices
ROUNDING = 1e-4  # variance of the indices below which that does not matter


class AMP(IndexedPredictor):
    """The Bayes-optimal estimate of S by message passing.

    Parameters
    ----------
    rho : width of the prior (``inf``: Gaussian).
    channel : the output channel, by name or as an object with its parameters.
    tied, attention, mask : as in :class:`attnlab.aim.Task`.
    damping : share of the old messages kept; ``"auto"`` starts at 0.4 (0.5 untied) for channels without exact
        measurements, otherwise at 0.3 (0.1 when alpha k d > 100; 0.4 untied), and rises when the changes stop
        shrinking.
    max_iter, tol : stop when |S_hat - S_old|^2 / d < tol, or when the iterations are used up.
    prediction : ``"plug-in"`` or ``"bayes"``.
    compute : device, dtype and precision of the matrix products (spectra are always float64), number of devices over
        which the sequences are split, and bytes of tokens that are kept; more are streamed in chunks. A CPU works
        through BLAS unless ``devices`` is given.

    Attributes
    ----------
    S_ : the estimate.
    predicted_mse_ : the error |S_ - S|^2 / d that is expected of it.
    converged_, n_iter_, stop_reason_ : how the iteration ended.
    trace_ : per iteration ``change``, ``predicted_mse``, ``self_overlap``, ``noise``, ``seconds``; ``mse`` and
        ``overlap`` when ``truth`` was given.
    effective_noise_ : Delta of the last R.

    >>> from attnlab import aim
    >>> task = aim.Task(d=40, seed=1)
    >>> X, y = task.sample(task.n_samples(0.25))
    >>> model = aim.AMP(rho=0.5).fit(X, y)
    >>> bool(((model.S_ - task.S) ** 2).sum() / 40 < 1e-2)
    True
    """

    needs = ("rho", "channel", "tied", "attention", "mask")

    def __init__(
        self,
        rho: float = 0.5,
        channel: str | Channel = "softmax",
        *,
        tied: bool = True,
        attention: str = "self",
        mask: Any = "full",
        damping: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-7,
        prediction: str = "plug-in",
        compute: Compute | None = None,
    ) -> None:
        self.rho = rho
        self.channel = channel
        self.tied = tied
        self.attention = attention
        self.mask = mask
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.prediction = prediction
        self.compute = compute

    def remaining_error(self) -> float:
        """The predicted error."""
        return float(self.predicted_mse_)

    @float64
    def fit(
        self,
        X: np.ndarray | TokenStream | Any,
        y: ArrayLike | Any,
        *,
        truth: np.ndarray | None = None,
        start: ArrayLike | None = None,
        start_error: float = 1.0,
    ) -> AMP:
        """Run to convergence.

        Parameters
        ----------
        X, y : sequences (n, T, d) or a :class:`~attnlab.aim.TokenStream`, and their outputs; log outputs of a softmax
            are recognised.
        truth : the planted S, for the trace only.
        start, start_error : first estimate (None: the prior mean) and its error; the truth and a small error give an
            informed start.
        """
        self._check_parameters(start_error)
        X, summary = self._check_data(X, y)
        n, _, d = X.shape
        compute = Compute() if self.compute is None else self.compute
        blas = compute.devices is None and (compute.device == "cpu" or jax.default_backend() == "cpu")
        kind = BlasMessages if blas else DeviceMessages
        messages = kind(X, summary, self.law, self.layout_, compute)
        self._iterate(messages, n / d**2, d, truth, start, float(start_error))
        return self

    def _check_parameters(self, start_error: float) -> None:
        check_rho(self.rho)
        if self.damping != "auto":
            real("damping", self.damping, low=0, high=1, open_high=True)
        integer("max_iter", self.max_iter, low=1)
        positive("tol", self.tol)
        positive("start_error", start_error)

    def _iterate(self, messages: Any, alpha: float, d: int, truth: Any, start: Any, error: float) -> None:
        S = messages.array(self._first_estimate(d, start))
        reference = None if truth is None else messages.array(finite_array("truth", truth, shape=(d, d)))
        V, damping, rate, limit = error, 0.0, self.layout_.rate, self.prior.finite_size(d)
        self.trace_: dict[str, list[float]] = {}
        reason, began = "max_iter reached", time.perf_counter()
        for _ in range(self.max_iter):
            V = (1 - damping) * error + damping * V
            total, measured = messages.sweep(S, error, V, damping)
            expected = self._strength(V, measured)
            q_hat = rate * alpha * expected
            R = S + (rate / (q_hat * d) if q_hat > 0 else np.nan) * total
            if not np.isfinite(float(R.sum())):
                reason = "diverged"
                break
            error = limit * float(self.prior.denoising_mmse(1 / q_hat, self.rho))
            old, S = S, self._scaled(denoise(R, 1 / q_hat, self.rho, symmetric=self.layout_.tied), error)
            change = self._record(_distances(S, old, reference), error, 1 / q_hat, began)
            if not self.trace_["self_overlap"][-1] < DIVERGED * self.prior.second_moment(self.rho):
                reason = "diverged"
                break
            if change < self.tol:
                excess = measured / expected  # the real variance of the indices is about V * excess
                faithful = excess < FAITHFUL or V * excess < ROUNDING
                reason = "tolerance reached" if faithful else "the messages do not have the variance they assume"
                break
            damping = self._damping(alpha, d)
        self._finish(S, error, d, reason)

    def _strength(self, V: float, measured: float) -> float:
        """E|g|^2 by the channel's formula, which does not believe an understated V."""
        if not self.law.solved:
            return measured
        Q = self.prior.second_moment(self.rho)
        return float(self.law.strength(min(V, Q), Q, self.layout_).value)

    def _scaled(self, S: Any, error: float) -> Any:
        """Give S the scale of the prior where y does not know it: at finite d it would drift."""
        if not self.law.scale_free or (self.layout_.tied and not np.isfinite(self.rho)):
            return S
        if self.layout_.tied:
            return S * (self.prior.prior_mean(self.rho) * len(S) / S.trace())
        norm = float((S * S).sum()) / len(S)
        return S * np.sqrt(max(1 - error, 0.0) / norm) if norm > 0 else S

    def _first_estimate(self, d: int, start: Any) -> np.ndarray:
        if start is None:
            return np.asarray(self.prior.prior_mean(self.rho) * np.eye(d))
        return finite_array("start", start, shape=(d, d))

    def _damping(self, alpha: float, d: int) -> float:
        """The share for the next iteration; "auto" raises it whenever the changes have stopped shrinking."""
        if self.damping != "auto":
            return float(self.damping)
        k, tied = self.law.informative(self.layout_), self.layout_.tied
        crowded = k is None or alpha * k * d <= CROWDED
        base = (0.4 if tied else 0.5) if k is None else 0.4 if not tied else 0.3 if crowded else 0.1
        changes = np.array(self.trace_["change"])
        stalls = int((changes[PATIENCE::PATIENCE] > 0.9 * changes[:-PATIENCE:PATIENCE]).sum())
        return min(base + 0.1 * stalls, 0.8)

    def _record(self, distances: list[float], error: float, noise: float, began: float) -> float:
        entry = dict(zip(("change", "self_overlap", "mse", "overlap"), distances, strict=False))
        entry |= {"predicted_mse": error, "noise": noise, "seconds": time.perf_counter() - began}
        for name, value in entry.items():
            self.trace_.setdefault(name, []).append(value)
        return entry["change"]

    def _finish(self, S: Any, error: float, d: int, reason: str) -> None:
        if reason == "diverged":
            S, error = self._first_estimate(d, None), 1.0
            reason = "diverged, S_ is the prior mean; more damping or more samples help"
        self.S_ = np.asarray(S, dtype=np.float64)
        self.effective_noise_ = self.trace_["noise"][-1] if self.trace_ else float("inf")
        self.predicted_mse_ = self._reported(error)
        n_iter = len(self.trace_.get("change", []))
        ended(self, converged=reason == "tolerance reached", reason=reason, n_iter=n_iter)

    def _reported(self, error: float) -> float:
        """The expected error. The two variances of untied self-attention with hardmax or noise are not in the messages,
        whose own error is too small by up to 14 %.
        """
        exact = self.law.informative(self.layout_) is not None and self.law.noise == 0
        if exact or not self.layout_.two_variances or not self.trace_:
            return error
        return white_to_parts(self, error)


def white_to_parts(model: AMP, error: float) -> float:
    """M of the two-variance theory at the alpha at which the isotropic one gives this error."""
    from attnlab.aim.task import Task
    from attnlab.aim.theory.bayes import mmse

    law = Task(10**6, model.layout_.queries, model.rho, model.law, tied=False, mask=model.mask)
    V, Delta = error, model.effective_noise_
    alpha = 1 / (Delta * float(model.law.strength(V, 1.0, model.layout_).value))
    return float(mmse(law, alpha))


def _distances(S: Any, old: Any, truth: Any) -> list[float]:
    """Change and self-overlap, then error and overlap where the truth is known; per dimension."""
    pairs = [(S - old, S - old), (S, S)]
    if truth is not None:
        pairs += [(S - truth, S - truth), (S, truth)]
    return [float((a * b).sum()) / len(S) for a, b in pairs]
