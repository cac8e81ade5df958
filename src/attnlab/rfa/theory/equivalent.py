r"""Deterministic equivalent of ridge regression on finitely many random features that come in classes.

A head contributes one feature of the constant class and d of the key class; the classes have kernels that are diagonal
in the same harmonics, but a function of the query alone lives in the first class only, one feature a head.

==========  ===========================================================================================
symbol      meaning
==========  ===========================================================================================
L_cj        eigenvalue of class c on mode j in the limit of infinitely many heads;  m_j multiplicity
p_c         number of features of class c (infinite for infinitely many heads);  S_c = L_c / p_c
constant    n lam, the ridge of the Gram matrix
nu          effective ridge:  n - constant / nu = df(nu)
q_j         1 / (sum_c L_cj / (1 + delta_c) + nu)
delta_c     sum_j m_j L_cj q_j / p_c, zero for infinitely many heads
df          degrees of freedom, sum_c p_c delta_c / (1 + delta_c);  df' its derivative in nu
==========  ===========================================================================================

Source: deterministic equivalents of random features (arXiv:2405.15699, in dimension-free form), with two classes as
derived here.  Status: asymptotic; heuristic at small sizes, where the features of one head are not independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.rfa.theory.spectrum import Spectrum

STEPS = 200
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Equivalent:
    """The solution for a batch of settings; arrays have one entry (or row) per setting.

    ``slope`` is delta', ``gap`` is 1 - Upsilon = (constant / nu - nu df') / n, a sum of positive terms.
    """

    nu: np.ndarray
    delta: np.ndarray
    slope: np.ndarray
    df: np.ndarray
    gap: np.ndarray
    residual: np.ndarray

    def unlearned(self, parts: np.ndarray) -> np.ndarray:
        """nu^2 q^2 (1 - sum_c L_c delta_c' / (1 + delta_c)^2): the share of a mode's energy that stays as bias.

        ``parts`` are L of the modes asked for, ``(classes, modes)``; the result is ``(settings, modes)``.
        """
        grown = 1 + self.delta
        q = 1 / ((1 / grown) @ parts + self.nu[:, None])
        return np.asarray((self.nu[:, None] * q) ** 2 * (1 - (self.slope / grown**2) @ parts))


def solve(bulk: Spectrum, n: np.ndarray, units: np.ndarray, constant: np.ndarray) -> Equivalent:
    """Solve for all settings at once: n examples, ``units`` heads or units (infinity is allowed)."""
    thin = 1 / (units[:, None] * bulk.counts)
    # A constant below the rounding error of the trace cannot be told from zero.
    constant = np.maximum(constant, 1e-15 * bulk.trace)
    low, high = np.log(constant / n), np.log((bulk.trace + constant) / n)
    log_nu = high
    for _ in range(STEPS):
        nu = np.exp(log_nu)
        state = _at(bulk, nu, thin)
        filled = state.df + constant / nu
        # It falls in nu, so its side of n moves one end of the bracket.
        low, high = np.where(filled > n, log_nu, low), np.where(filled > n, high, log_nu)
        # On logarithmic axes it is close to a power law, for which Newton's method needs one step.
        newton = log_nu - np.log(filled / n) * filled / (nu * state.df_slope - constant / nu)
        # A step of rounding size may end beyond the end that the last one moved.
        inside = (newton > low - TOLERANCE) & (newton < high + TOLERANCE)
        step = np.where(inside, newton, (low + high) / 2)
        done = np.abs(step - log_nu) <= TOLERANCE
        log_nu = step
        if done.all():
            break
    nu = np.exp(log_nu)
    state = _at(bulk, nu, thin)
    residual = np.abs(state.df + constant / nu - n) / n
    gap = (constant / nu - nu * state.df_slope) / n
    return Equivalent(nu, state.delta, state.slope, state.df, gap, np.maximum(residual, state.residual))


@dataclass(frozen=True)
class _State:
    delta: np.ndarray
    slope: np.ndarray
    df: np.ndarray
    df_slope: np.ndarray
    residual: np.ndarray


def _at(bulk: Spectrum, nu: np.ndarray, thin: np.ndarray) -> _State:
    """delta and df at given nu, and their derivatives.

    The map delta -> sum_j m_j L_j q_j / p is increasing and concave, and the start below is above its fixed point:
    from there Newton's method falls monotonically to it. (Plain iteration converges too, but slowly near the peak.)
    """
    weighted = bulk.parts * bulk.multiplicity
    delta = thin * weighted.sum(axis=1) / nu[:, None]
    identity = np.eye(len(bulk.counts))
    residual = np.full(len(nu), np.inf)
    for _ in range(STEPS):
        grown = 1 + delta
        q = 1 / ((1 / grown) @ bulk.parts + nu[:, None])
        filled = q @ weighted.T
        # jacobian[s, c, e] = sum_j m_j L_cj L_ej q_j^2 / p_c / (1 + delta_e)^2
        jacobian = np.einsum("sj,cj,ej->sce", q**2, weighted, bulk.parts) * thin[:, :, None] / grown[:, None] ** 2
        change = thin * filled - delta
        residual = np.max(np.abs(change) / np.maximum(delta, np.finfo(float).tiny), axis=1, where=delta > 0, initial=0)
        if (residual <= TOLERANCE).all():
            break
        delta = delta + np.linalg.solve(identity - jacobian, change[..., None])[..., 0]
    drain = (q**2) @ weighted.T
    slope = -np.linalg.solve(identity - jacobian, (thin * drain)[..., None])[..., 0]
    # p_c delta_c' without p_c, which may be infinite: - sum_j m_j L_cj q_j^2 (1 - sum_e L_ej delta_e' / (1+delta_e)^2).
    kept = 1 - (slope / grown**2) @ bulk.parts
    filled_slope = -(q**2 * kept) @ weighted.T
    return _State(delta, slope, np.sum(filled / grown, axis=1), np.sum(filled_slope / grown**2, axis=1), residual)
