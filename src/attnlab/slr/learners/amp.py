"""Bayes-optimal approximate message passing for the spiked law (arXiv:2509.21936)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy import special

from attnlab.common.stopping import ended
from attnlab.common.validation import integer, nonnegative, positive, real
from attnlab.slr.learners.tokens import TokenRegressor, present


class AMP(TokenRegressor):
    r"""Estimates the posterior means of k* and v* in the spiked law with gamma = 1 and Gaussian k*, v*.

    One iteration, with :math:`\alpha = n/d` and all updates damped:

    .. math::
        \omega^k = Xk/\sqrt d - V_kg^k,\quad \omega^v = Xv/\sqrt d - V_vg^v,\quad
        w_l \propto e^{\sqrt\nu\,\omega^k_l - (y - \omega^v_l)^2/2(V_v + \Delta)} \\
        g^k = \sqrt\nu\,w,\quad g^v = w(y - \omega^v)/(V_v + \Delta),\quad
        A_k = \tfrac{\nu}{d}\sum w^2,\quad A_v = \tfrac1d\sum (g^v)^2 \\
        k = \frac{(A_k - \alpha\nu)k + X^\top g^k/\sqrt d}{1 + A_k},\quad
        v = \frac{A_vv + X^\top g^v/\sqrt d}{1 + A_v},\quad V = \frac{1}{1 + A}

    Parameters
    ----------
    nu : strength of the mark.
    noise_std : standard deviation :math:`\sqrt\Delta` of the output noise, as the algorithm assumes it.
    damping : share of the old iterate that is kept; without damping the iteration diverges.
    max_iter, tol : iterations allowed, and the relative change of (k, v) at which they stop.
    n_tokens : tokens of the flat form ``X (n, n_tokens * d)``.

    Attributes
    ----------
    k_, v_ : (d,), posterior means; k*, v* have norm sqrt(d) in this normalisation.
    change_ : relative change of (k, v) at each iteration.
    converged_, n_iter_, stop_reason_ : whether the tolerance was met, the iterations made, and why they stopped.

    Source: arXiv:2509.21936; equations derived here. Its performance is
    :func:`attnlab.slr.theory.bayes_state_evolution`.
    """

    needs: ClassVar[dict[str, str]] = {"nu": "strength", "noise_std": "noise_std"}

    def __init__(
        self,
        nu: Any = 2.0,
        noise_std: Any = 0.1,
        *,
        damping: Any = 0.5,
        max_iter: Any = 300,
        tol: Any = 1e-5,
        n_tokens: Any = None,
    ):
        self.nu = nu
        self.noise_std = noise_std
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.n_tokens = n_tokens

    def fit(self, X: Any, y: Any) -> AMP:
        """Iterate from zero to convergence."""
        nu, noise_var = nonnegative("nu", self.nu), positive("noise_std", self.noise_std) ** 2
        damping = real("damping", self.damping, low=0.0, high=1.0, open_high=True)
        max_iter, tol = integer("max_iter", self.max_iter, low=1), positive("tol", self.tol)
        X, y = self._check_fit(X, y)
        if not present(X).all():
            raise ValueError("X must hold no padding (tokens of zeros): message passing is written for one length")
        self.k_, self.v_, self.change_ = _iterate(X, y, nu, noise_var, damping, max_iter, tol)
        last = self.change_[-1]
        cut = "max_iter reached" if np.isfinite(last) else "diverged"
        settled = bool(last <= tol)
        ended(self, converged=settled, reason="tolerance reached" if settled else cut, n_iter=len(self.change_))
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " n"]:
        r""":math:`\sum_l \mathrm{softmax}(\sqrt\nu\,Xk/\sqrt d)_l\,X_l\cdot v/\sqrt d`."""
        X = self._check_predict(X)
        chi, z = np.moveaxis(X @ np.stack([self.k_, self.v_], axis=1) / np.sqrt(self.d_in_), 2, 0)
        score = np.where(present(X), np.sqrt(self.nu) * chi, -np.inf)
        return np.asarray(np.sum(special.softmax(score, axis=1) * z, axis=1))


def _iterate(
    X: np.ndarray, y: np.ndarray, nu: float, noise_var: float, damping: float, max_iter: int, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, L, d = X.shape
    flat, alpha, y = X.reshape(n * L, d) / np.sqrt(d), n / d, y[:, None]
    estimate, g = np.zeros((d, 2)), np.zeros((n, L, 2))
    A = np.zeros(2)
    changes = []
    for _ in range(max_iter):
        V = 1 / (1 + A)
        # Less the Onsager term V g: what the samples' own pull on the estimate gives back to their fields.
        omega_k, omega_v = np.moveaxis((flat @ estimate).reshape(n, L, 2) - V * g, 2, 0)
        spread = V[1] + noise_var
        w = special.softmax(np.sqrt(nu) * omega_k - (y - omega_v) ** 2 / (2 * spread), axis=1)
        g_new = np.stack([np.sqrt(nu) * w, w * (y - omega_v) / spread], axis=2)
        A_new = np.sum(g_new**2, axis=(0, 1)) / d
        g, A = damping * g + (1 - damping) * g_new, damping * A + (1 - damping) * A_new
        # - alpha nu comes from the factor exp(-nu |k|^2 / 2d) that each sample brings to the posterior of k.
        pull = (A - [alpha * nu, 0.0]) * estimate + flat.T @ g.reshape(n * L, 2)
        update = damping * estimate + (1 - damping) * pull / (1 + A)
        # The small number keeps an estimate that stays zero from 0/0.
        changes.append(float(np.linalg.norm(update - estimate) / (np.linalg.norm(update) + 1e-300)))
        estimate = update
        if changes[-1] <= tol or not np.isfinite(changes[-1]):
            break
    return estimate[:, 0].copy(), estimate[:, 1].copy(), np.array(changes)
