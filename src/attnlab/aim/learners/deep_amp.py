r"""Message passing for two attention layers on two tokens.

As :mod:`attnlab.aim.learners.amp` with one set of messages per layer: the output function couples them
(:mod:`attnlab.aim.deep.channel`), the priors do not, q_hat being taken diagonal:

    q_hat_l = 2 alpha mean |g_l|^2,   R_l <- S_l + 2/(q_hat_l d) A^T(g_l)
    S_l <- RIE(R_l, 1/q_hat_l),   C_l <- F(1/q_hat_l)

Source: derived here from arXiv:2506.01582.  Status: exact cross term only for the centred prior.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from attnlab.aim.deep.channel import deep_outputs, logit_differences, output_functions
from attnlab.aim.indices import Layout, indices
from attnlab.aim.messages.denoise import denoise
from attnlab.aim.messages.probes import Probes
from attnlab.aim.messages.products import adjoint, forward
from attnlab.aim.spectrum import check_rho, denoising_mmse, finite_size, prior_mean, second_moment
from attnlab.common.arrays import ArrayLike
from attnlab.common.precision import float64
from attnlab.common.stopping import ended
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import finite_array, integer, nonnegative, positive, real

LAYERS, TOKENS = 2, 2
CHUNK = 2**14  # sequences at a time: the integral of one holds 289 nodes with some 30 numbers each, 1 GB in all
PROBES = Probes(Layout(TOKENS, TOKENS), differences=True)  # both layers see their indices up to one constant


class DeepAMP(BaseEstimator):
    """Estimates of both attention matrices from the output of two layers.

    Parameters
    ----------
    rho, skip, beta : as in :class:`attnlab.aim.DeepTask`.
    damping, max_iter, tol : as in :class:`attnlab.aim.AMP`.
    start, start_error : first estimates (2, d, d) and their error (None: the prior means, 1).

    Attributes
    ----------
    S_ : the estimates, (2, d, d).
    predicted_mse_ : the errors the algorithm expects of itself, (2,).
    converged_, n_iter_, trace_ : as in :class:`attnlab.aim.AMP`; ``trace_`` entries are pairs.
    """

    needs = ("rho", "skip", "beta")

    def __init__(
        self,
        rho: float = 0.5,
        *,
        skip: float = 1.0,
        beta: float = 1.0,
        damping: float = 0.4,
        max_iter: int = 100,
        tol: float = 1e-6,
        start: ArrayLike | None = None,
        start_error: float = 1.0,
    ) -> None:
        self.rho = rho
        self.skip = skip
        self.beta = beta
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.start = start
        self.start_error = start_error

    @float64
    def fit(self, X: Any, y: Any, *, truth: np.ndarray | None = None) -> DeepAMP:
        """Run to convergence; ``truth`` (2, d, d) is used for the trace only."""
        rho, damping = check_rho(self.rho), real("damping", self.damping, low=0, high=1, open_high=True)
        nonnegative("skip", self.skip)
        X = check_tokens(X)
        y = check_targets(y, len(X), shape=(X.shape[1], X.shape[1]))
        n, tokens, d = X.shape
        if tokens != TOKENS:
            raise ValueError(f"DeepAMP is for 2 tokens, got X of shape {X.shape}")
        if (np.asarray(y) <= 0).any():
            raise ValueError("y holds zeros: softmax outputs underflowed and their logits cannot be read off")
        w = logit_differences(y, positive("beta", self.beta))
        parts = [slice(start, start + CHUNK) for start in range(0, n, CHUNK)]
        S = self._first_estimates(d)
        error = V = np.full(LAYERS, positive("start_error", self.start_error))
        omega, g = np.zeros((2, LAYERS, n, 3))
        self.trace_: dict[str, list[list[float]]] = {"change": [], "predicted_mse": []}
        reason, share = "max_iter reached", 0.0
        for _ in range(integer("max_iter", self.max_iter, low=1)):
            V = (1 - share) * error + share * V
            totals, squares = np.zeros((LAYERS, d, d)), np.zeros(LAYERS)
            for part in parts:
                data = (
                    PROBES.view(jnp.asarray(X[part], jnp.float32)),
                    w[part],
                    jnp.asarray(S),
                    omega[:, part],
                    g[:, part],
                )
                found = _sweep(*data, error, V, share, self.skip, self.beta)
                omega[:, part], g[:, part] = np.asarray(found[0]), np.asarray(found[1])
                totals, squares = totals + np.asarray(found[2]), squares + np.asarray(found[3])
            q_hat = 2 * squares / d**2
            if not (np.isfinite(q_hat).all() and (q_hat > 0).all()):
                reason = "diverged"
                break
            R = S + 2 / (q_hat[:, None, None] * d) * totals
            new = np.stack([np.asarray(denoise(r, 1 / q, rho)) for r, q in zip(R, q_hat, strict=True)])
            error = finite_size(d) * np.array([float(denoising_mmse(1 / q, rho)) for q in q_hat])
            change, S = ((new - S) ** 2).sum(axis=(1, 2)) / d, new
            self._record(change, error, S, truth)
            if (S**2).sum() / d > 10 * LAYERS * second_moment(rho):
                reason = "diverged"
                break
            if (change < self.tol).all():
                reason = "tolerance reached"
                break
            share = damping
        self.S_, self.predicted_mse_ = S, error
        ended(self, converged=reason == "tolerance reached", reason=reason, n_iter=len(self.trace_["change"]))
        return self

    def _first_estimates(self, d: int) -> np.ndarray:
        if self.start is None:
            return np.stack([prior_mean(self.rho) * np.eye(d)] * LAYERS)
        return finite_array("start", self.start, shape=(LAYERS, d, d))

    def _record(self, change: np.ndarray, error: np.ndarray, S: np.ndarray, truth: np.ndarray | None) -> None:
        self.trace_["change"].append(change.tolist())
        self.trace_["predicted_mse"].append(error.tolist())
        if truth is not None:
            mse = ((S - truth) ** 2).sum(axis=(1, 2)) / S.shape[1]
            self.trace_.setdefault("mse", []).append(mse.tolist())

    def predict(self, X: Any) -> np.ndarray:
        """Plug-in outputs (n, 2, 2) for fresh sequences."""
        check_is_fitted(self, "S_")
        X = np.asarray(check_tokens(X, n_tokens=TOKENS, d=self.S_.shape[1]), dtype=np.float64)
        return deep_outputs(np.stack([indices(X, S) for S in self.S_]), self.skip, self.beta)

    def score(self, X: Any, y: Any) -> float:
        """R^2 over all entries."""
        predicted = self.predict(X)
        y = check_targets(y, len(predicted), shape=predicted.shape[1:])
        return float(1 - ((y - predicted) ** 2).sum() / ((y - y.mean(axis=0)) ** 2).sum())


@functools.partial(jax.jit, static_argnames=("skip", "beta"))
def _sweep(
    X: jax.Array,
    w: jax.Array,
    S: jax.Array,
    omega: Any,
    g: Any,
    error: Any,
    V: Any,
    share: Any,
    skip: float,
    beta: float,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """New messages of both layers, A^T g_l, and the sums of |g_l|^2, for one chunk of sequences."""
    fresh = jnp.stack([forward(X, S[layer], PROBES) - error[layer] * g[layer] for layer in range(LAYERS)])
    omega = (1 - share) * fresh + share * omega
    out = output_functions(w, omega[0], omega[1], V[0], V[1], skip, beta)
    g = jnp.stack([out.g1, out.g2])
    totals = jnp.stack([adjoint(X, g[layer], PROBES) for layer in range(LAYERS)])
    return omega, g, totals, (g**2).sum(axis=(1, 2))
