r"""Approximate message passing for sequence multi-index models.

==========  ======================================================================================
symbol      meaning
==========  ======================================================================================
F, K        X / sqrt(d) as (n, T, d), and the Gram matrix X_mu X_mu^T / d of each sequence
omega, V    mean and covariance of the indices
g           V^-1 (E[z | y, omega] - omega), the output function; gbar is its damped memory
A           precision that the data add to the prior of W
==========  ======================================================================================

    V     = (I + A)^-1
    omega = F W^T - K gbar V                     (exact removal of the self-coupling)
    C     = (1/d) sum [V^-1 - V^-1 Cov(z_t | y, omega) V^-1]
    gbar, A, B <- damped averages of g, C, C W  (the same damping, the same memory)
    W     = (I + A)^-1 (gbar^T F + B)

The product C W must be remembered as a whole: A W with a damped A does not settle. For tilted links, whose tokens carry
information, the precision is C + alpha B0 with B0 = E sum_t (z_t z_t^T - I), while C multiplies W.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.common.precision import float64
from attnlab.common.seeds import Seed, stream
from attnlab.common.stopping import ended
from attnlab.common.threads import single_threaded_blas
from attnlab.common.validation import finite_array, integer, one_of, positive, real
from attnlab.smi.alignment import align
from attnlab.smi.learners.output import Outputs
from attnlab.smi.learners.predictor import PREDICTIONS, DirectionsPredictor
from attnlab.smi.learners.spectral import spectral_start
from attnlab.smi.link import Link
from attnlab.smi.tilt import tilt

INITS = ("random", "spectral")
STATIONARY = 1e-3  # largest change of V in each of the last WINDOW iterations of a stationary run
WINDOW = 50
PLAIN = 0.7  # share of a step at the default damping, for which STATIONARY and WINDOW are meant
PATIENCE = 100  # iterations in which the smallest change must fall by a tenth
DRIFT = 0.1  # share of an eigenvalue of V or I - V by which its mean over half a window may still move
EXACT = 1e-8  # tr V / r from which the directions count as known, as in state evolution


class AMP(DirectionsPredictor):
    """The Bayes-optimal estimate of the directions by message passing.

    Parameters
    ----------
    link : as in :class:`attnlab.smi.Task`.
    damping : share of the old messages kept, in [0, 1).
    max_iter, tol : iterations allowed, and the relative change of W at which they stop.
    init : ``random`` with entries N(0, 1/d), or ``spectral``, the leading eigenvectors of the linearised iteration
        (arXiv:2502.02545).
    kick : directions whose self-overlap is below it receive noise up to this size, the finite-d form of infinitesimal
        side information: a direction that becomes learnable late has left the range of the arithmetic otherwise.
    prediction : ``plug-in`` or ``bayes``, the mean output at the estimate or averaged over its error.
    random_state : of the start and the kicks.

    Attributes
    ----------
    W_ : (r, d), the estimate.
    V_, Q_ : covariance of its error as the algorithm expects it, and W_ W_^T / d.
    predicted_error_ : tr V_.
    trace_ : per iteration ``change`` and ``V``, and ``overlap`` (M of :func:`attnlab.smi.align`) if ``truth`` is given.
    resolved_ : whether the posteriors were integrated accurately to the end.
    converged_, n_iter_, stop_reason_ : how the iteration ended.

    Source: arXiv:2502.00901; damping and kick derived here.

    >>> from attnlab import smi
    >>> task = smi.Task("attention", d=200)
    >>> X, y = task.sample(task.n_samples(0.8))
    >>> model = smi.AMP("attention", random_state=0).fit(X, y)
    >>> bool(smi.align(model.W_, task.W, "sign").cos2[0] > 0.99)
    True
    """

    needs = ("link",)

    def __init__(
        self,
        link: str | Link = "attention",
        *,
        damping: float = 0.3,
        max_iter: int = 300,
        tol: float = 1e-5,
        init: str = "random",
        kick: float = 1e-3,
        prediction: str = "plug-in",
        random_state: Seed = None,
    ) -> None:
        self.link = link
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.kick = kick
        self.prediction = prediction
        self.random_state = random_state

    @float64
    def fit(self, X: Any, y: Any, *, truth: Any = None) -> AMP:
        """Iterate to convergence; ``truth`` (the planted W) is used for the trace only."""
        real("damping", self.damping, low=0.0, high=1.0, open_high=True)
        integer("max_iter", self.max_iter, low=1)
        positive("tol", self.tol)
        real("kick", self.kick, low=0.0, high=1.0)
        one_of("init", self.init, INITS)
        one_of("prediction", self.prediction, PREDICTIONS)
        X, y = self._check_data(X, y)
        d = X.shape[2]
        if truth is not None:
            truth = finite_array("truth", truth, shape=(self.law.rank, d))
        rng = stream(self.random_state, "learner", "smi")
        W = rng.standard_normal((self.law.rank, d)) / np.sqrt(d)
        if self.init == "spectral":
            W = spectral_start(self.law, X, y, W)
        messages = Messages(self.law, X, y, float(self.damping), float(self.kick), rng)
        # The products have r columns and wait for memory: threads of BLAS would spin for five times the work.
        with single_threaded_blas():
            self._iterate(messages, W, truth)
        return self

    def _iterate(self, messages: Messages, W: np.ndarray, truth: np.ndarray | None) -> None:
        changes, Vs, overlaps = [], [], []
        reason, converged = "max_iter reached", False
        for _ in range(self.max_iter):
            W, change = messages.step(W)
            changes.append(change)
            Vs.append(messages.V)
            if truth is not None:
                overlaps.append(align(W, truth, self.law.symmetry).M)
            if not np.isfinite(change):
                reason = "diverged"
                break
            if ended_as := _settled(changes, Vs, self.tol, min(1.0, (1 - self.damping) / PLAIN)):
                reason, converged = ended_as
                break
        self.W_, self.V_ = W, messages.V
        self.Q_ = W @ W.T / W.shape[1]
        self.predicted_error_ = float(np.trace(self.V_))
        self.resolved_ = messages.outputs.resolved
        self.trace_ = {"change": np.array(changes), "V": np.stack(Vs)}
        if truth is not None:
            self.trace_["overlap"] = np.stack(overlaps)
        if converged and not messages.outputs.resolved:
            reason, converged = f"{reason}, but the posteriors are too narrow for the integration rule", False
        ended(self, converged=converged, reason=reason, n_iter=len(changes))


def _settled(changes: list[float], Vs: list[np.ndarray], tol: float, pace: float = 1.0) -> tuple[str, bool] | None:
    """Why the iteration ends here, and whether that counts as converged; ``pace`` is the share of a step taken."""
    if changes[-1] <= tol:
        return "tolerance reached", True
    if np.trace(Vs[-1]) / len(Vs[-1]) < EXACT:
        return "exact recovery", True
    if len(Vs) <= WINDOW or _drifts(np.stack(Vs[-WINDOW:])):
        return None
    still = np.abs(np.diff(np.stack(Vs[-WINDOW - 1 :]), axis=0)).max() < STATIONARY * pace
    # A run whose changes still fall goes on to its tolerance.
    if still and changes[-1] > 0.5**pace * changes[-1 - WINDOW]:
        return "stationary", True
    if len(changes) > 2 * PATIENCE and min(changes[-PATIENCE:]) > 0.9 * min(changes[:-PATIENCE]):
        return "no progress; more damping may help", False
    return None


def _drifts(Vs: np.ndarray) -> bool:
    """Whether V moves on average: a direction that is being learned late grows by small steps that do not fall."""
    half = len(Vs) // 4 * 2  # even: an oscillation from step to step has no mean
    before, after = (np.linalg.eigvalsh(part.mean(axis=0)) for part in (Vs[:half], Vs[-half:]))
    return bool((np.abs(after - before) > STATIONARY + DRIFT * np.minimum(before, 1 - before)).any())


class Messages:
    """The state of the iteration on one data set."""

    def __init__(
        self, link: Link, X: np.ndarray, y: np.ndarray, damping: float, kick: float, rng: np.random.Generator
    ) -> None:
        n, T, d = X.shape
        self.damping, self.kick = damping, kick
        # The same noise in every iteration: fresh noise would keep the other directions moving for ever.
        self.noise = rng.standard_normal((link.rank, d))
        self.F = np.ascontiguousarray(X.reshape(n * T, d) / np.sqrt(d))
        rows = self.F.reshape(n, T, d)
        self.K = rows @ rows.swapaxes(1, 2)
        self.outputs = Outputs(link, np.asarray(y, dtype=float))
        self.extra = n / d * tilt(link)
        r = link.rank
        self.g, self.A, self.B = np.zeros((n, T, r)), np.zeros((r, r)), np.zeros((r, d))
        self.V: np.ndarray = np.eye(r)

    def step(self, W: np.ndarray) -> tuple[np.ndarray, float]:
        """The next estimate, and its relative change outside the kicked directions."""
        r, d = W.shape
        n, T, _ = self.g.shape
        eye = np.eye(r)
        self.V = np.linalg.inv(eye + self.A)
        # inv leaves V symmetric up to rounding only; eigh reads one triangle, and L must not depend on which.
        v, basis = np.linalg.eigh(0.5 * (self.V + self.V.T))
        L = (basis * np.sqrt(v)) @ basis.T
        omega = (self.F @ W.T).reshape(n, T, r) - self.K @ self.g @ self.V
        found = self.outputs(omega, L)
        # Of a tilted link C alone may be negative; the precision C + extra is not.
        C, keep = clipped(found.C / d + self.extra) - self.extra, self.damping
        self.g = keep * self.g + (1 - keep) * found.g
        self.A = keep * self.A + (1 - keep) * (C + self.extra)
        self.B = keep * self.B + (1 - keep) * (C @ W)
        new = np.linalg.solve(eye + self.A, self.g.reshape(n * T, r).T @ self.F + self.B)
        return self._kicked(new, W)

    def _kicked(self, new: np.ndarray, old: np.ndarray) -> tuple[np.ndarray, float]:
        d = new.shape[1]
        size, basis = np.linalg.eigh(new @ new.T / d)
        weak = size < self.kick
        # The stopping rule looks at the other directions, else a run with an unlearnable one would never end.
        strong = basis[:, ~weak]
        moved, total = np.linalg.norm(strong.T @ (new - old)), np.linalg.norm(strong.T @ new)
        change = float(moved / total) if strong.size else 1.0
        # Only directions that are nearly lost are kicked, up to the size kick and not beyond it.
        missing = np.sqrt(np.maximum(self.kick - np.maximum(size, 0.0), 0.0))
        return new + (basis * missing) @ (basis.T @ self.noise), change


def clipped(C: np.ndarray) -> np.ndarray:
    """The symmetric part with negative eigenvalues set to zero: a precision cannot be negative."""
    values, basis = np.linalg.eigh(0.5 * (C + C.T))
    return np.asarray((basis * np.maximum(values, 0.0)) @ basis.T)
