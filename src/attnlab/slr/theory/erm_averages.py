r"""The averages behind the state evolution of empirical risk minimisation, compiled once for each activation.

For one sample the scores minimise
:math:`\phi = (y - s\cdot\omega^v)^2/2(1 + V_v|s|^2) + |\chi - \omega^k|^2/2V_k`, :math:`s = \sigma(\chi)`; the
symbols are those of :mod:`attnlab.slr.theory.erm`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from attnlab.common.seeds import stream
from attnlab.slr.activations import Activation
from attnlab.slr.laws import Law


class Draws(NamedTuple):
    """Fixed quasi-random points: marks and values of the tokens (informative ones first), and independent noise."""

    chi: Any
    z: Any
    noise_k: Any
    noise_v: Any
    noise_y: Any
    tilt: Any


@functools.lru_cache(maxsize=8)
def quadrature(law: Law, L: int, count: int, n: int) -> Draws:
    """The quadrature points; the scrambling of the Sobol sequence is fixed."""
    rng = stream(0, "theory", "slr", "erm")
    uniform = stats.qmc.Sobol(5 * L + 1, rng=rng).random(1 << (n - 1).bit_length())[:n]
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    normal = special.ndtri(uniform[:, : 4 * L + 1])
    chi, z, noise_k, noise_v = (normal[:, i * L : (i + 1) * L].copy() for i in range(4))
    marks = law.quadrature(chi, uniform[:, 4 * L + 1 :], count)
    return Draws(marks.chi, z, noise_k, noise_v, normal[:, 4 * L], marks.tilt)


@functools.cache
def compiled(activation: Activation, count: int) -> tuple[Any, Any]:
    """The averages over draws for one iteration, and the excess risk; compiled on first use."""
    import jax
    import jax.numpy as jnp

    def residual(chi: Any, omega_v: Any, y: Any, V_v: Any) -> Any:
        s = activation.weights(chi)
        return (y - s @ omega_v) / jnp.sqrt(1 + V_v * (s @ s))

    def phi(chi: Any, omega_k: Any, omega_v: Any, y: Any, V_k: Any, V_v: Any) -> Any:
        return 0.5 * residual(chi, omega_v, y, V_v) ** 2 + jnp.sum((chi - omega_k) ** 2) / (2 * V_k)

    def descend(chi: Any, omega_k: Any, omega_v: Any, y: Any, V_k: Any, V_v: Any) -> Any:
        """A Gauss-Newton step, inverted by Sherman-Morrison, at the best of a few lengths."""
        r, J = jax.value_and_grad(residual)(chi, omega_v, y, V_v)
        slope = J * r + (chi - omega_k) / V_k
        move = -V_k * (slope - V_k * J * (J @ slope) / (1 + V_k * (J @ J)))
        best, lowest = chi, 0.5 * r**2 + jnp.sum((chi - omega_k) ** 2) / (2 * V_k)
        for length in (1.0, 0.3, 0.05):
            trial = chi + length * move
            value = phi(trial, omega_k, omega_v, y, V_k, V_v)
            best, lowest = jnp.where(value < lowest, trial, best), jnp.minimum(value, lowest)
        return best, lowest

    def minimiser(first: Any, second: Any, steps: Any, *sample: Any) -> Any:
        """The lower of the two valleys that the starts lead to."""

        def follow(_: Any, ends: Any) -> Any:
            return tuple(descend(end, *sample) for end, _ in ends)

        unknown = jnp.full((), jnp.inf, first.dtype)
        ends = jax.lax.fori_loop(0, steps, follow, ((first, unknown), (second, unknown)))
        return jnp.where(ends[0][1] <= ends[1][1], ends[0][0], ends[1][0])

    def one(start: Any, omega_k: Any, omega_v: Any, y: Any, V_k: Any, V_v: Any, steps: Any) -> Any:
        """g^k, g^v and the derivatives that the six averages need."""
        chi = minimiser(start, omega_k, steps, omega_k, omega_v, y, V_k, V_v)
        inverse = jnp.linalg.inv(jax.hessian(phi)(chi, omega_k, omega_v, y, V_k, V_v))

        def g_v(omega_v: Any, y: Any) -> Any:
            # one Newton step from the minimiser carries its first derivatives
            c = chi - inverse @ jax.grad(phi)(chi, omega_k, omega_v, y, V_k, V_v)
            s = activation.weights(c)
            return s * (y - s @ omega_v) / (1 + V_v * (s @ s))

        by_omega, by_y = jax.jacfwd(g_v, (0, 1))(omega_v, y)
        shift_k = (chi.size - jnp.trace(inverse) / V_k) / V_k
        hit = by_y[:count].sum() / math.sqrt(count)
        return chi, (chi - omega_k) / V_k, g_v(omega_v, y), shift_k, -jnp.trace(by_omega), hit

    @jax.jit
    def averages(state: Any, chi: Any, draws: Draws, noise_var: Any, steps: Any) -> Any:
        m_k, q_k, V_k, m_v, q_v, V_v = state
        omega_k = m_k * draws.chi + jnp.sqrt(jnp.maximum(q_k - m_k**2, 0)) * draws.noise_k
        omega_v = m_v * draws.z + jnp.sqrt(jnp.maximum(q_v - m_v**2, 0)) * draws.noise_v
        y = draws.z[:, :count].sum(axis=1) / math.sqrt(count) + jnp.sqrt(noise_var) * draws.noise_y
        each = jax.vmap(one, (0, 0, 0, 0, None, None, None))(chi, omega_k, omega_v, y, V_k, V_v, steps)
        chi, g_k, g_v, hV_k, hV_v, hm_v = each
        hV_k = hV_k.mean()
        # where the tilt has no density (nu infinite) Stein's identity replaces its derivative
        direct = jnp.sum(g_k * draws.tilt, axis=1).mean()
        by_stein = jnp.sum(g_k * draws.chi, axis=1).mean() + m_k * hV_k
        hm_k = jnp.where(jnp.isfinite(direct), direct, by_stein)
        hats = hm_k, jnp.sum(g_k**2, 1).mean(), hV_k, hm_v.mean(), jnp.sum(g_v**2, 1).mean(), hV_v.mean()
        return jnp.stack(hats), chi

    @jax.jit
    def excess(state: Any, draws: Draws) -> Any:
        """One value for each draw."""
        m_k, q_k, _, m_v, q_v, _ = state
        s = activation.weights(m_k * draws.chi + jnp.sqrt(jnp.maximum(q_k - m_k**2, 0)) * draws.noise_k)
        return 1 - 2 * m_v * s[:, :count].sum(axis=1) / math.sqrt(count) + q_v * jnp.sum(s**2, axis=1)

    return averages, excess
