r"""The convex problem behind weight decay: smallest nuclear norm, exactly or as a penalty.

.. math:: \min_{S \succeq 0} \sum_\mu \ell(y^\mu, h^\mu(S)) + d\lambda\,\mathrm{Tr}S \qquad
          \text{(untied: } d\lambda\|S\|_*\text{)}

Penalised: accelerated proximal gradient with restarts. Without penalty (lambda -> 0+): Douglas-Rachford splitting
between the affine set of exact fits and the nuclear norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from attnlab.aim.channels import Channel
from attnlab.aim.channels.measurement import basis
from attnlab.aim.learners.prediction import IndexedPredictor
from attnlab.common.seeds import stream
from attnlab.common.stopping import ended
from attnlab.common.validation import integer, nonnegative, one_of, positive

CONVEX = ("logits", "cross_entropy")  # losses without other minima
LARGEST = 8000  # measurements whose Gram matrix is factored without penalty


class NuclearNorm(IndexedPredictor):
    """What gradient descent with weight decay converges to, by convex optimisation.

    Parameters
    ----------
    weight_decay : lambda; 0 is the interpolator of smallest trace (for n k up to 8000 measurements).
    loss : ``logits`` or ``cross_entropy`` (with decay).
    channel, tied, attention, mask : as in :class:`attnlab.aim.Task`; softmax or linear.
    max_iter, tol : stop when the relative change of S is below tol.

    Attributes
    ----------
    S_, rank_ : the minimiser, and its number of non-zero eigenvalues.
    loss_ : its training loss per sequence, without the penalty.
    converged_, n_iter_, stop_reason_ : how the iteration ended.

    >>> from attnlab import aim
    >>> task = aim.Task(d=24, seed=1)
    >>> model = aim.NuclearNorm(weight_decay=0.05).fit(*task.sample(task.n_samples(0.2)))
    >>> bool(model.rank_ < 24), model.converged_
    (True, True)
    """

    needs = ("channel", "tied", "attention", "mask")
    prediction = "plug-in"

    def __init__(
        self,
        weight_decay: float = 0.0,
        loss: str = "logits",
        *,
        channel: str | Channel = "softmax",
        tied: bool = True,
        attention: str = "self",
        mask: Any = "full",
        max_iter: int = 2000,
        tol: float = 1e-6,
    ) -> None:
        self.weight_decay = weight_decay
        self.loss = loss
        self.channel = channel
        self.tied = tied
        self.attention = attention
        self.mask = mask
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any) -> NuclearNorm:
        """Solve on the whole batch."""
        decay, law = nonnegative("weight_decay", self.weight_decay), self.law
        one_of("loss", law.check_loss(self.loss), CONVEX)
        integer("max_iter", self.max_iter, low=1)
        positive("tol", self.tol)
        X, z = self._check_data(X, y)
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        S, n_iter, settled = self._penalised(X, y, z, decay) if decay else self._interpolating(X, z)
        values = np.abs(np.linalg.eigvalsh(S)) if self.layout_.tied else np.linalg.svd(S, compute_uv=False)
        self.S_, self.rank_ = S, int((values > 1e-3 * values.max()).sum()) if values.max() > 0 else 0
        self.loss_ = self._loss(X, y, z, S)[0] / len(X)
        ended(self, converged=settled, reason="tolerance reached" if settled else "max_iter reached", n_iter=n_iter)
        return self

    def _loss(self, X: np.ndarray, y: np.ndarray, z: np.ndarray, S: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of the losses, and its gradient in S."""
        target = z if self.loss == "logits" else y
        losses, pull = self.law.loss_and_slope(self.loss, self.layout_.indices(X, S), target, self.layout_)
        return float(losses.sum()), self._adjoint(X, pull)

    def _adjoint(self, X: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """Gradient in S from the derivative in h."""
        layout, d = self.layout_, X.shape[2]
        left, right = (X[:, : layout.queries], X[:, layout.queries :]) if layout.cross else (X, X)
        total = np.einsum("nad,nae->de", left, np.einsum("nab,nbe->nae", pull, right), optimize=True)
        if not layout.cross:
            total = total - np.trace(pull.sum(axis=0)) * np.eye(d)
        total = total / np.sqrt(d)
        # The derivative in a tied h stands at a <= b only: the gradient among symmetric S is the symmetric part.
        return np.asarray((total + total.T) / 2 if layout.tied else total)

    def _penalised(self, X: np.ndarray, y: np.ndarray, z: np.ndarray, decay: float) -> tuple[np.ndarray, int, bool]:
        d = X.shape[2]
        step = 1 / self._curvature(X)
        S = point = np.zeros((d, d))
        weight = 1.0
        for iteration in range(1, self.max_iter + 1):
            _, slope = self._loss(X, y, z, point)
            new = self._shrunk(point - step * slope, step * d * decay)
            if ((point - new) * (new - S)).sum() > 0:  # the momentum points uphill: start it again
                weight = 1.0
            # Nesterov's sequence, as in FISTA.
            heavier = (1 + np.sqrt(1 + 4 * weight**2)) / 2
            point = new + (weight - 1) / heavier * (new - S)
            change, S, weight = np.linalg.norm(new - S), new, heavier
            if change <= self.tol * (float(np.linalg.norm(S)) + 1e-12) and iteration > 5:
                return S, iteration, True
        return S, self.max_iter, False

    def _curvature(self, X: np.ndarray) -> float:
        """Largest curvature of the loss in S, by power iteration."""
        layout = self.layout_
        S = stream(0, "learner", "aim", "curvature").standard_normal((X.shape[2],) * 2)
        S = S + S.T if layout.tied else S
        size = 1.0
        for _ in range(30):
            h = layout.indices(X, S / np.linalg.norm(S))
            S = self._adjoint(X, self.law.majorant(self.loss, h, layout))
            size = float(np.linalg.norm(S))
        # Power iteration comes from below, and a step beyond 1/curvature may diverge.
        return 1.05 * size

    def _shrunk(self, S: np.ndarray, by: float) -> np.ndarray:
        if self.layout_.tied:
            # The proximal map of the nuclear norm: soft thresholding of the spectrum.
            x, U = np.linalg.eigh(S)
            return np.asarray((U * np.maximum(x - by, 0.0)) @ U.T)
        U, x, Vt = np.linalg.svd(S)
        return np.asarray((U * np.maximum(x - by, 0.0)) @ Vt)

    def _interpolating(self, X: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, int, bool]:
        """p = projection on the exact fits, s = shrunk reflection, w <- w + s - p."""
        d, layout = X.shape[2], self.layout_
        B = basis(self.law, layout)
        if len(X) * len(B) > LARGEST:
            raise ValueError(
                f"weight_decay=0 factors the Gram matrix of n k <= {LARGEST} measurements, got {len(X) * len(B)}; "
                "a small weight_decay has no such limit"
            )
        A = self._functionals(X, B)
        target = (z @ B.T).ravel()
        gram = A @ A.T
        # Repeated sequences make the Gram matrix singular; the shift is far below the tolerance of the fit.
        factor = scipy.linalg.cho_factor(gram + 1e-12 * np.trace(gram) / len(gram) * np.eye(len(gram)))
        w = np.zeros((d, d))
        for iteration in range(1, self.max_iter + 1):
            fit = w - (A.T @ scipy.linalg.cho_solve(factor, A @ w.ravel() - target)).reshape(d, d)
            # Any threshold ends at the same S: in Douglas-Rachford splitting it is the length of a step, not a penalty.
            s = self._shrunk(2 * fit - w, 0.5)
            w = w + s - fit
            if np.linalg.norm(s - fit) < 10 * self.tol * np.sqrt(d):
                # s and not the fit: its small eigenvalues are exactly zero.
                return s, iteration, True
        return s, self.max_iter, False

    def _functionals(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The measured functionals of S as rows, (n k, d^2)."""
        layout, d = self.layout_, X.shape[2]
        left, right = (X[:, : layout.queries], X[:, layout.queries :]) if layout.cross else (X, X)
        rows = []
        for a, b, scale in zip(*layout.entries, layout.scale, strict=True):
            one = left[:, a, :, None] * right[:, b, None, :]
            if a == b and not layout.cross:
                one = one - np.eye(d)
            one = (one + one.swapaxes(1, 2)) / 2 if layout.tied else one
            rows.append(one.reshape(len(X), -1) / (np.sqrt(d) * scale))
        return np.asarray(np.einsum("kp,pnx->nkx", B, np.stack(rows)).reshape(-1, d * d))
