r"""Approximate message passing for attention-indexed models.

==========  ======================================================================================
symbol      meaning
==========  ======================================================================================
omega, V    mean and variance of the whitened indices, damped by eta
g           output function of the channel
C           error of the estimate as the algorithm predicts it, (1 + 1/d) F(Delta)
R, Delta    S + sqrt(Delta) GOE, the effective observation of S, Delta = 1/q_hat
==========  ======================================================================================

    omega <- A(S_hat) - C g,   V <- C,   both damped          (Onsager term)
    g     <- g_out(y, omega, V)
    q_hat <- 2 alpha k / V  (exact channels)  or  2 alpha mean |g|^2
    R     <- S_hat + 2/(q_hat d) A^T(g),   Delta <- 1/q_hat
    S_hat <- RIE(R, Delta),   C <- (1 + 1/d) F(Delta)

Rank-one tokens give R outliers of relative size 1/sqrt(alpha k d) that the RIE would not shrink: eigenvalues are
clipped to the bulk before it, and the messages are damped. Hardmax does not see the scale of S, which the prior alone
fixes: there S_hat is given the trace sqrt(rho) d that it has in the limit.

Source: arXiv:2506.01582; clipping and trace derived here.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from attnlab.aim.channels import Channel
from attnlab.aim.denoise import denoise
from attnlab.aim.device import DeviceMessages
from attnlab.aim.host import HostMessages
from attnlab.aim.learners.prediction import IndexedPredictor, check_data
from attnlab.aim.sensing import PRECISIONS
from attnlab.aim.spectrum import check_rho, denoising_mmse, prior_mean, second_moment
from attnlab.aim.stream import Chunks, TokenStream, sample_mesh
from attnlab.common.arrays import ArrayLike
from attnlab.common.precision import float64
from attnlab.common.validation import finite_array, integer, one_of, positive, real

DIVERGED = 10.0  # self-overlap in units of Q_0 that no estimate can reach
PATIENCE = 8  # iterations after which the change should be smaller
CROWDED = 100.0  # alpha k d below which single sequences stand out and more damping is needed


class AMP(IndexedPredictor):
    """The Bayes-optimal estimate of S by message passing.

    Parameters
    ----------
    rho : width of the prior (``inf``: centred Gaussian).
    channel, beta, noise : the output channel, as in :class:`attnlab.aim.Task`.
    damping : share of the old messages kept; ``"auto"`` starts at 0.4 for channels whose q_hat is estimated, otherwise
        at 0.3 (0.1 when alpha k d > 100), and rises when the changes stop shrinking.
    clip : move eigenvalues into the expected bulk before shrinking them.
    max_iter, tol, max_seconds : stop when |S_hat - S_old|^2 / d < tol, or when iterations or time are used up.
    start, start_error : first estimate (None: the prior mean) and its error; the truth and a small error give an
        informed start.
    log_targets : y is given as log y (softmax).
    prediction : ``"plug-in"`` or ``"bayes"``.
    dtype, precision : of the matrix products; ``"highest"``, ``"default"`` as in JAX, or ``"tf32"``, ``"tf32x3"``,
        ``"bf16x3"`` on a GPU. Spectra are always float64.
    memory_budget : bytes of tokens kept on the device; more are streamed in chunks.
    devices : number of JAX devices over which the sequences are split (None: one; a CPU then works through BLAS).

    Attributes
    ----------
    S_ : the estimate.
    predicted_mse_ : the error |S_ - S|^2 / d that the algorithm expects of itself.
    converged_, n_iter_ : whether the stopping rule was met, and after how many iterations.
    trace_ : per iteration ``change``, ``predicted_mse``, ``self_overlap``, ``noise``, ``seconds``; ``mse`` and
        ``overlap`` when ``truth`` was given.
    noise_ : Delta of the last R.

    >>> from attnlab import aim
    >>> task = aim.Task(d=40, seed=1)
    >>> X, y = task.sample(task.n_samples(0.25))
    >>> model = aim.AMP(rho=0.5).fit(X, y)
    >>> bool(((model.S_ - task.S) ** 2).sum() / 40 < 1e-2)
    True
    """

    needs = ("rho", "channel", "beta", "noise")

    def __init__(
        self,
        rho: float = 0.5,
        channel: str | Channel = "softmax",
        *,
        beta: float = 1.0,
        noise: float = 0.0,
        damping: float | str = "auto",
        clip: bool = True,
        max_iter: int = 200,
        tol: float = 1e-7,
        max_seconds: float | None = None,
        start: ArrayLike | None = None,
        start_error: float = 1.0,
        log_targets: bool = False,
        prediction: str = "plug-in",
        dtype: str = "float32",
        precision: str = "highest",
        memory_budget: float = 4e9,
        devices: int | None = None,
    ) -> None:
        self.rho = rho
        self.channel = channel
        self.beta = beta
        self.noise = noise
        self.damping = damping
        self.clip = clip
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.start = start
        self.start_error = start_error
        self.log_targets = log_targets
        self.prediction = prediction
        self.dtype = dtype
        self.precision = precision
        self.memory_budget = memory_budget
        self.devices = devices

    def remaining_variance(self) -> float:
        """The predicted error."""
        return float(self.predicted_mse_)

    @float64
    def fit(self, X: np.ndarray | TokenStream | Any, y: ArrayLike | Any, *, truth: np.ndarray | None = None) -> AMP:
        """Run to convergence; ``truth`` (the planted S) is used for the trace only."""
        self._check_parameters()
        X, y = check_data(X, y)
        n, self.tokens_, d = X.shape
        summary = self.law.summary(y, log=self.log_targets)
        budget = positive("memory_budget", self.memory_budget)
        messages: HostMessages | DeviceMessages
        if jax.default_backend() == "cpu" and self.devices is None:
            messages = HostMessages(X, summary, self.law, self.dtype, budget)
        else:
            chunks = Chunks(X, sample_mesh(self.devices), np.dtype(self.dtype), budget, self.law.shift_invariant)
            messages = DeviceMessages(chunks, summary, self.law, self.precision)
        self._iterate(messages, n / d**2, d, truth)
        return self

    def _check_parameters(self) -> None:
        check_rho(self.rho)
        if self.damping != "auto":
            real("damping", self.damping, low=0, high=1, open_high=True)
        integer("max_iter", self.max_iter, low=1)
        positive("tol", self.tol)
        positive("start_error", self.start_error)
        if self.max_seconds is not None:
            positive("max_seconds", self.max_seconds)
        one_of("dtype", self.dtype, ("float32", "float64"))
        one_of("precision", self.precision, PRECISIONS)

    def _iterate(self, messages: HostMessages | DeviceMessages, alpha: float, d: int, truth: np.ndarray | None) -> None:
        S = messages.array(self._first_estimate(d))
        reference = None if truth is None else messages.array(finite_array("truth", truth, shape=(d, d)))
        error = V = float(self.start_error)
        damping, k = 0.0, self.law.informative(self.tokens_)
        self.trace_: dict[str, list[float]] = {}
        self.converged_ = diverged = False
        began = time.perf_counter()
        deadline = began + (float("inf") if self.max_seconds is None else self.max_seconds)
        for _ in range(self.max_iter):
            V = (1 - damping) * error + damping * V
            total, strength = messages.sweep(S, error, V, damping)
            q_hat = 2 * alpha * (strength if k is None else k / (V + self.law.noise))
            R = S + (2 / (q_hat * d) if q_hat > 0 else np.nan) * total
            diverged = not np.isfinite(float(R.sum()))
            if diverged:
                break
            old, S = S, self._anchor(denoise(R, 1 / q_hat, self.rho, clip=self.clip))
            error = finite_size(d) * float(denoising_mmse(1 / q_hat, self.rho))
            change = self._record(_distances(S, old, reference), error, 1 / q_hat, began)
            diverged = not self.trace_["self_overlap"][-1] < DIVERGED * second_moment(self.rho)
            self.converged_ = change < self.tol and not diverged
            if self.converged_ or diverged or time.perf_counter() > deadline:
                break
            damping = self._damping(alpha, d, k)
        self._finish(S, error, d, diverged)

    def _anchor(self, S: Any) -> Any:
        """Give S the prior's trace where y does not know its scale: at finite d the scale would drift."""
        if self.law.scale_free and np.isfinite(self.rho):
            return S * (prior_mean(self.rho) * len(S) / S.trace())
        return S

    def _first_estimate(self, d: int) -> np.ndarray:
        if self.start is None:
            return np.asarray(prior_mean(self.rho) * np.eye(d))
        return finite_array("start", self.start, shape=(d, d))

    def _damping(self, alpha: float, d: int, k: int | None) -> float:
        """The share for the next iteration; "auto" raises it whenever the changes have stopped shrinking."""
        if self.damping != "auto":
            return float(self.damping)
        base = 0.4 if k is None else 0.1 if alpha * k * d > CROWDED else 0.3
        changes = np.array(self.trace_["change"])
        stalls = int((changes[PATIENCE::PATIENCE] > 0.9 * changes[:-PATIENCE:PATIENCE]).sum())
        return min(base + 0.1 * stalls, 0.8)

    def _record(self, distances: list[float], error: float, noise: float, began: float) -> float:
        entry = dict(zip(("change", "self_overlap", "mse", "overlap"), distances, strict=False))
        entry |= {"predicted_mse": error, "noise": noise, "seconds": time.perf_counter() - began}
        for name, value in entry.items():
            self.trace_.setdefault(name, []).append(value)
        return entry["change"]

    def _finish(self, S: Any, error: float, d: int, diverged: bool) -> None:
        self.n_iter_ = len(self.trace_.get("change", []))
        if diverged:
            S, error = prior_mean(self.rho) * np.eye(d), 1.0
            warnings.warn(
                f"AMP diverged after {self.n_iter_} iterations; S_ is the prior mean. "
                "More damping, clip=True or more samples help.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not self.converged_:
            warnings.warn(
                f"AMP did not settle in {self.n_iter_} iterations: "
                f"last change {self.trace_['change'][-1]:.3g}, tol {self.tol:g}",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.S_ = np.asarray(S, dtype=np.float64)
        self.predicted_mse_ = error
        self.noise_ = self.trace_["noise"][-1] if self.trace_ else float("inf")


def finite_size(d: int) -> float:
    """1 + 1/d = E|S - E S|^2 / d exactly, at any d, for both priors; the limit's errors are in units of it."""
    return 1 + 1 / d


def _distances(S: Any, old: Any, truth: Any) -> list[float]:
    """Change and self-overlap, then error and overlap where the truth is known; per dimension."""
    pairs = [(S - old, S - old), (S, S)]
    if truth is not None:
        pairs += [(S - truth, S - truth), (S, truth)]
    return [float((a * b).sum()) / len(S) for a, b in pairs]
