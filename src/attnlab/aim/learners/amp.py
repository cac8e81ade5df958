r"""Approximate message passing for attention-indexed models.

The iteration of :mod:`attnlab.aim.learners.message_passing` for one matrix. With q_hat from the channel's formula, V
follows the state evolution whatever its start: an understated first error heals, where mean |g|^2 would confirm it.
Hardmax does not see the scale of S, which the prior alone fixes: there S_hat is given the trace sqrt(rho) d (tied) or
the norm (1 - C) d (untied) of the limit.

Source: arXiv:2506.01582; scale and untied attention derived here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.aim.channels import Channel
from attnlab.aim.learners.message_passing import MessagePassing
from attnlab.aim.learners.prediction import IndexedPredictor
from attnlab.aim.messages.blas import BlasMessages
from attnlab.aim.messages.device import DeviceMessages
from attnlab.aim.spectrum import check_rho
from attnlab.aim.token_stream import TokenStream
from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute, jax_device
from attnlab.common.precision import float64
from attnlab.common.validation import finite_array, integer, positive, real

PATIENCE = 8  # iterations after which the change should be smaller
# alpha k d below which single sequences stand out and more damping is needed, tied and untied. Above it too much lets
# rounding grow: untied, at 90, two runs of four left their fixed point after 130 iterations with 0.4, none with 0.3.
CROWDED = {True: 100.0, False: 60.0}


class AMP(IndexedPredictor, MessagePassing):
    """The Bayes-optimal estimate of S by message passing.

    Parameters
    ----------
    rho : width of the prior (``inf``: Gaussian).
    channel : the output channel, by name or as an object with its parameters.
    tied, attention, mask : as in :class:`attnlab.aim.Task`.
    damping : share of the old messages kept; ``"auto"`` starts at 0.4 (0.5 untied) for channels without exact
        measurements, otherwise at 0.3 (0.1 when alpha k d > 100; untied 0.4, 0.3 when alpha k d > 60), and rises
        when the changes stop shrinking.
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
        blas = compute.devices is None and jax_device(compute.device).platform == "cpu"
        kind = BlasMessages if blas else DeviceMessages
        messages = kind(X, summary, self.law, self.layout_, compute)

        def sweep(S: list[Any], error: np.ndarray, V: np.ndarray, damping: float) -> tuple[list[Any], np.ndarray]:
            total, measured = messages.sweep(S[0], float(error[0]), float(V[0]), damping)
            return [total], np.array([measured])

        first = self._prior_means(1, d) if start is None else finite_array("start", start, shape=(d, d))[None]
        truth = None if truth is None else finite_array("truth", truth, shape=(d, d))[None]
        self._iterate(sweep, messages.array, n / d**2, truth, first, np.array([float(start_error)]))
        self.S_ = self.S_[0]
        self.effective_noise_ = self.trace_["noise"][-1] if self.trace_ else float("inf")
        self.predicted_mse_ = self._reported(float(self.predicted_mse_[0]))
        return self

    def _check_parameters(self, start_error: float) -> None:
        check_rho(self.rho)
        if self.damping != "auto":
            real("damping", self.damping, low=0, high=1, open_high=True)
        integer("max_iter", self.max_iter, low=1)
        positive("tol", self.tol)
        positive("start_error", start_error)

    def _strengths(self, V: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """E|g|^2 by the channel's formula, which does not believe an understated V."""
        if not self.law.solved:
            return measured
        Q = self.prior.second_moment(self.rho)
        # start_error may exceed Q_0; overlaps are not negative, and no table goes beyond.
        return np.array([float(self.law.strength(min(v, Q), Q, self.layout_).value) for v in V])

    def _scaled(self, S: Any, error: float) -> Any:
        """Give S the scale of the prior where y does not know it: at finite d it would drift."""
        # The centred tied prior has no trace to scale to.
        if not self.law.scale_free or (self.layout_.tied and not np.isfinite(self.rho)):
            return S
        if self.layout_.tied:
            return S * (self.prior.prior_mean(self.rho) * len(S) / S.trace())
        # |S_hat|^2/d of a posterior mean is its overlap with the truth, 1 - C.
        norm = float((S * S).sum()) / len(S)
        return S * np.sqrt(max(1 - error, 0.0) / norm) if norm > 0 else S

    def _damping(self, alpha: float, d: int) -> float:
        """The share for the next iteration; "auto" raises it whenever the changes have stopped shrinking."""
        if self.damping != "auto":
            return float(self.damping)
        k, tied = self.law.informative(self.layout_), self.layout_.tied
        low, high = (0.1, 0.3) if tied else (0.3, 0.4)
        base = (0.4 if tied else 0.5) if k is None else high if alpha * k * d <= CROWDED[tied] else low
        changes = np.array(self.trace_["change"])
        # Over the whole course, so that a raised share is not lowered again.
        stalls = int((changes[PATIENCE::PATIENCE] > 0.9 * changes[:-PATIENCE:PATIENCE]).sum())
        return min(base + 0.1 * stalls, 0.8)

    def _reported(self, error: float) -> float:
        """The expected error. The two variances of untied self-attention with hardmax or noise are not in the messages,
        whose own error is too small, by up to a quarter.
        """
        exact = self.law.informative(self.layout_) is not None and self.law.noise == 0
        if exact or not self.layout_.two_variances or not self.trace_:
            return error
        return white_to_parts(self, error)


def white_to_parts(model: AMP, error: float) -> float:
    """M of the two-variance theory at the alpha at which the isotropic one gives this error."""
    from attnlab.aim.task import Task
    from attnlab.aim.theory.bayes import mmse

    # d enters through the width alone, which must be at least one.
    law = Task(10**6, model.layout_.queries, model.rho, model.law, tied=False, mask=model.mask)
    V, Delta = error, model.effective_noise_
    alpha = 1 / (Delta * float(model.law.strength(V, 1.0, model.layout_).value))
    return float(mmse(law, alpha))
