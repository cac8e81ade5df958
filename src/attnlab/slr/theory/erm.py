r"""Learning by empirical risk minimisation from N = alpha D samples: state evolution (arXiv:2509.21936).

=====================  =======================================================================
symbol                 meaning
=====================  =======================================================================
alpha                  samples per dimension
ridge_k, ridge_v       penalties r_k, r_v on k and v
m_k, q_k, V_k          overlap of k with k*, its squared norm (both / D), and its response
m_v, q_v, V_v          the same for v
omega^k, omega^v       cavity fields: the scores and values a new sample would have
g^k, g^v               by how much a sample shifts its own fields
hm, hq, hV             what the data bring: m = hm / (r + hV), q = (hm^2 + hq) / (r + hV)^2, V = 1 / (r + hV)
noise_var              variance Delta of the output noise
=====================  =======================================================================

The minimised objective is :math:`\tfrac12\sum_i(y_i - f(X_i))^2 + \tfrac{r_k}{2}|k|^2 + \tfrac{r_v}{2}|v|^2` with
:math:`f(X) = \sigma(Xk/\sqrt D)\cdot Xv/\sqrt D`, k*, v* standard Gaussian and gamma = 1.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from attnlab.common.precision import float64
from attnlab.common.validation import integer, one_of, positive
from attnlab.slr.activations import KINDS, weights
from attnlab.slr.task import LAWS


@dataclass(frozen=True)
class EmpiricalRisk:
    """A fixed point: the six order parameters, the excess risk, and whether the iteration settled."""

    m_k: float
    q_k: float
    V_k: float
    m_v: float
    q_v: float
    V_v: float
    error: float
    converged: bool
    n_iter: int
    residual: float


class Draws(NamedTuple):
    """Fixed quasi-random points: marks and values of the tokens (informative one first), and independent noise."""

    chi: Any
    z: Any
    noise_k: Any
    noise_v: Any
    noise_y: Any
    tilt: Any


def erm_state_evolution(
    attention: str,
    alpha: float,
    *,
    nu: float,
    L: int,
    noise_var: float = 0.01,
    ridge_k: float = 1.0,
    ridge_v: float = 1.0,
    law: str = "spiked",
    n_draws: int = 2**13,
    max_iter: int = 300,
    tol: float = 1e-5,
) -> EmpiricalRisk:
    r"""Order parameters and excess risk of the minimiser of the regularised empirical risk, as D grows.

    .. math:: \hat m_k = \alpha\,\mathbb{E}\sum_l g^k_l\,\partial_l\log g_\nu,\quad
              \hat m_v = \alpha\,\mathbb{E}\frac{dg^v_\epsilon}{dy},\quad
              \hat q = \alpha\,\mathbb{E}\sum_l g_l^2,\quad
              \hat V = -\alpha\,\mathbb{E}\sum_l\frac{dg_l}{d\omega_l}

    where, for one sample, the scores minimise
    :math:`\phi = (y - s\cdot\omega^v)^2/2(1 + V_v|s|^2) + |\chi - \omega^k|^2/2V_k`, :math:`s = \sigma(\chi)`, and
    :math:`g^v = s(y - s\cdot\omega^v)/(1 + V_v|s|^2)`, :math:`g^k = (\chi - \omega^k)/V_k`. Derivatives go through the
    minimiser by the implicit function theorem.

    Source: arXiv:2509.21936, result 5.1 (form); equations derived here.  Status: heuristic (replica-symmetric); checked
    against simulation at ridges of order one. At weak ridges (0.1) only the error is reliable: the k-overlaps come out
    4 to 9 % low.
    """
    one_of("attention", attention, KINDS), one_of("law", law, LAWS)
    positive("alpha", alpha), positive("noise_var", noise_var)
    ridges = positive("ridge_k", ridge_k), positive("ridge_v", ridge_v)
    integer("L", L, low=2), integer("n_draws", n_draws, low=2), integer("max_iter", max_iter, low=1)
    if not (law == "max" and nu == math.inf):
        positive("nu", nu)
    return _iterate(
        attention, float(alpha), float(nu), noise_var, ridges, _draws(law, float(nu), L, n_draws), max_iter, tol
    )


@float64
def _iterate(
    attention: str,
    alpha: float,
    nu: float,
    noise_var: float,
    ridges: tuple[float, float],
    draws: Draws,
    max_iter: int,
    tol: float,
) -> EmpiricalRisk:
    averages, error = _compiled(attention)
    state = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    chi, residual, n_iter = draws.chi * 0.5, math.inf, 0
    while residual > tol and n_iter < max_iter:
        hats, chi = averages(state, chi, draws, noise_var)
        update = _order_parameters(alpha * np.asarray(hats), ridges)
        residual = float(np.max(np.abs(update - state) / np.maximum(1.0, np.abs(state))))
        state, n_iter = 0.5 * (state + update), n_iter + 1
    m_k, q_k, V_k, m_v, q_v, V_v = (float(x) for x in state)
    found = float(error(state, draws))
    return EmpiricalRisk(m_k, q_k, V_k, m_v, q_v, V_v, found, residual <= tol, n_iter, residual)


def _order_parameters(hats: np.ndarray, ridges: tuple[float, float]) -> np.ndarray:
    """(m_k, q_k, V_k, m_v, q_v, V_v) from (hm_k, hq_k, hV_k, hm_v, hq_v, hV_v)."""
    state = []
    for (hm, hq, hV), ridge in zip(hats.reshape(2, 3), ridges, strict=True):
        precision = ridge + hV
        state += [hm / precision, (hm**2 + hq) / precision**2, 1 / precision]
    return np.array(state)


@functools.cache
def _compiled(attention: str) -> tuple[Any, Any]:
    """The two averages over draws, compiled on first use for each kind of attention."""
    import jax
    import jax.numpy as jnp

    def sigma(chi: Any) -> Any:
        return weights(attention, chi)

    def residual(chi: Any, omega_v: Any, y: Any, V_v: Any) -> Any:
        s = sigma(chi)
        return (y - s @ omega_v) / jnp.sqrt(1 + V_v * (s @ s))

    def phi(chi: Any, omega_k: Any, omega_v: Any, y: Any, V_k: Any, V_v: Any) -> Any:
        return 0.5 * residual(chi, omega_v, y, V_v) ** 2 + jnp.sum((chi - omega_k) ** 2) / (2 * V_k)

    def descend(chi: Any, omega_k: Any, omega_v: Any, y: Any, V_k: Any, V_v: Any) -> Any:
        """A Gauss-Newton step, inverted by Sherman-Morrison, at the best of a few lengths."""
        r, J = jax.value_and_grad(residual)(chi, omega_v, y, V_v)
        slope = J * r + (chi - omega_k) / V_k
        move = -V_k * (slope - V_k * J * (J @ slope) / (1 + V_k * (J @ J)))
        trials = chi + jnp.array([0.0, 0.05, 0.25, 0.5, 1.0])[:, None] * move
        values = jax.vmap(lambda c: phi(c, omega_k, omega_v, y, V_k, V_v))(trials)
        return trials[jnp.argmin(values)]

    def minimiser(starts: Any, *sample: Any) -> Any:
        ends = jax.vmap(lambda c: jax.lax.fori_loop(0, 15, lambda _, x: descend(x, *sample), c))(starts)
        values = jax.vmap(lambda c: phi(c, *sample))(ends)
        return ends[jnp.argmin(values)]

    def one(start: Any, omega_k: Any, omega_v: Any, y: Any, V_k: Any, V_v: Any) -> Any:
        """g^k, g^v and the derivatives that the six averages need."""
        chi = minimiser(jnp.stack([start, omega_k]), omega_k, omega_v, y, V_k, V_v)
        inverse = jnp.linalg.inv(jax.hessian(phi)(chi, omega_k, omega_v, y, V_k, V_v))

        def g_v(omega_v: Any, y: Any) -> Any:
            # one Newton step from the minimiser carries its first derivatives
            c = chi - inverse @ jax.grad(phi)(chi, omega_k, omega_v, y, V_k, V_v)
            s = sigma(c)
            return s * (y - s @ omega_v) / (1 + V_v * (s @ s))

        by_omega, by_y = jax.jacfwd(g_v, (0, 1))(omega_v, y)
        shift_k = (chi.size - jnp.trace(inverse) / V_k) / V_k
        return chi, (chi - omega_k) / V_k, g_v(omega_v, y), shift_k, -jnp.trace(by_omega), by_y[0]

    @jax.jit
    def averages(state: Any, chi: Any, draws: Draws, noise_var: Any) -> Any:
        m_k, q_k, V_k, m_v, q_v, V_v = state
        omega_k = m_k * draws.chi + jnp.sqrt(jnp.maximum(q_k - m_k**2, 0)) * draws.noise_k
        omega_v = m_v * draws.z + jnp.sqrt(jnp.maximum(q_v - m_v**2, 0)) * draws.noise_v
        y = draws.z[:, 0] + jnp.sqrt(noise_var) * draws.noise_y
        chi, g_k, g_v, hV_k, hV_v, hm_v = jax.vmap(one, (0, 0, 0, 0, None, None))(chi, omega_k, omega_v, y, V_k, V_v)
        hV_k = hV_k.mean()
        # where the tilt has no density (nu infinite) Stein's identity replaces its derivative
        direct = jnp.sum(g_k * draws.tilt, axis=1).mean()
        by_stein = jnp.sum(g_k * draws.chi, axis=1).mean() + m_k * hV_k
        hm_k = jnp.where(jnp.isfinite(direct), direct, by_stein)
        hats = hm_k, jnp.sum(g_k**2, 1).mean(), hV_k, hm_v.mean(), jnp.sum(g_v**2, 1).mean(), hV_v.mean()
        return jnp.stack(hats), chi

    @jax.jit
    def error(state: Any, draws: Draws) -> Any:
        m_k, q_k, _, m_v, q_v, _ = state
        s = sigma(m_k * draws.chi + jnp.sqrt(jnp.maximum(q_k - m_k**2, 0)) * draws.noise_k)
        return 1 - 2 * m_v * s[:, 0].mean() + q_v * jnp.sum(s**2, axis=1).mean()

    return averages, error


@functools.lru_cache(maxsize=8)
def _draws(law: str, nu: float, L: int, n: int) -> Draws:
    """The quadrature points; the scrambling of the Sobol sequence is fixed."""
    uniform = stats.qmc.Sobol(5 * L + 1, seed=21).random(1 << (n - 1).bit_length())[:n]
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    normal = special.ndtri(uniform[:, : 4 * L + 1])
    chi, z, noise_k, noise_v = (normal[:, i * L : (i + 1) * L].copy() for i in range(4))
    if law == "spiked":
        chi[:, 0] += math.sqrt(nu)
        tilt = np.tile(math.sqrt(nu) * np.eye(1, L), (n, 1))
    else:
        gumbel = -np.log(-np.log(uniform[:, 4 * L + 1 :]))
        place = np.argmax(chi if math.isinf(nu) else nu * chi + gumbel, axis=1)
        rows = np.arange(n)
        chi[rows, place], chi[:, 0] = chi[:, 0].copy(), chi[rows, place].copy()
        tilt = nu * (np.eye(1, L) - special.softmax(nu * chi, axis=1)) if math.isfinite(nu) else np.full((n, L), np.nan)
    return Draws(chi, z, noise_k, noise_v, normal[:, 4 * L], tilt)
