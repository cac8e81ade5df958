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
    # The normal quantile of 0 or 1 is infinite.
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    normal = special.ndtri(uniform[:, : 4 * L + 1])
    chi, z, noise_k, noise_v = (normal[:, i * L : (i + 1) * L].copy() for i in range(4))
    marks = law.quadrature(chi, uniform[:, 4 * L + 1 :], count)
    return Draws(marks.chi, z, noise_k, noise_v, normal[:, 4 * L], marks.tilt)


class Samples(NamedTuple):
    """What the potential of one sample depends on."""

    omega_k: Any
    omega_v: Any
    y: Any
    V_k: Any
    V_v: Any


def _residual(chi: Any, at: Samples, activation: Activation) -> Any:
    """The error of the label over its deviation."""
    import jax.numpy as jnp

    s = activation.weights(chi)
    return (at.y - s @ at.omega_v) / jnp.sqrt(1 + at.V_v * (s @ s))


def _phi(chi: Any, at: Samples, activation: Activation) -> Any:
    return 0.5 * _residual(chi, at, activation) ** 2 + ((chi - at.omega_k) ** 2).sum() / (2 * at.V_k)


def _descend(chi: Any, at: Samples, activation: Activation) -> Any:
    """A Gauss-Newton step, inverted by Sherman-Morrison, at the best of a few lengths."""
    import jax
    import jax.numpy as jnp

    r, J = jax.value_and_grad(_residual)(chi, at, activation)
    slope = J * r + (chi - at.omega_k) / at.V_k
    move = -at.V_k * (slope - at.V_k * J * (J @ slope) / (1 + at.V_k * (J @ J)))
    best, lowest = chi, 0.5 * r**2 + jnp.sum((chi - at.omega_k) ** 2) / (2 * at.V_k)
    # Fixed lengths in the place of a line search: all samples run one program.
    for length in (1.0, 0.3, 0.05):
        trial = chi + length * move
        value = _phi(trial, at, activation)
        best, lowest = jnp.where(value < lowest, trial, best), jnp.minimum(value, lowest)
    return best, lowest


def _minimiser(start: Any, steps: Any, at: Samples, activation: Activation) -> Any:
    """The lower of the two valleys that the start and omega^k lead to."""
    import jax
    import jax.numpy as jnp

    def follow(_: Any, ends: Any) -> Any:
        return tuple(_descend(end, at, activation) for end, _ in ends)

    unknown = jnp.full((), jnp.inf, start.dtype)
    # Two starts, since the objective can have two valleys: the last minimiser, and the field alone.
    ends = jax.lax.fori_loop(0, steps, follow, ((start, unknown), (at.omega_k, unknown)))
    return jnp.where(ends[0][1] <= ends[1][1], ends[0][0], ends[1][0])


def _one(start: Any, at: Samples, steps: Any, activation: Activation, count: int) -> Any:
    """g^k, g^v and the derivatives that the six averages need."""
    import jax
    import jax.numpy as jnp

    chi = _minimiser(start, steps, at, activation)
    inverse = jnp.linalg.inv(jax.hessian(_phi)(chi, at, activation))

    def g_v(omega_v: Any, y: Any) -> Any:
        # one Newton step from the minimiser carries its first derivatives
        c = chi - inverse @ jax.grad(_phi)(chi, at._replace(omega_v=omega_v, y=y), activation)
        s = activation.weights(c)
        return s * (y - s @ omega_v) / (1 + at.V_v * (s @ s))

    by_omega, by_y = jax.jacfwd(g_v, (0, 1))(at.omega_v, at.y)
    # By the implicit function theorem d chi / d omega^k = H^{-1} / V_k.
    shift_k = (chi.size - jnp.trace(inverse) / at.V_k) / at.V_k
    hit = by_y[:count].sum() / math.sqrt(count)
    return chi, (chi - at.omega_k) / at.V_k, g_v(at.omega_v, at.y), shift_k, -jnp.trace(by_omega), hit


@functools.cache
def compiled(activation: Activation, count: int) -> tuple[Any, Any]:
    """The averages over draws for one iteration, and the excess risk; compiled on first use."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def averages(state: Any, chi: Any, draws: Draws, noise_var: Any, steps: Any) -> Any:
        m_k, q_k, V_k, m_v, q_v, V_v = state
        # The same draws in every iteration: the map is then smooth in the state and has a fixed point to converge to.
        omega_k = m_k * draws.chi + jnp.sqrt(jnp.maximum(q_k - m_k**2, 0)) * draws.noise_k
        omega_v = m_v * draws.z + jnp.sqrt(jnp.maximum(q_v - m_v**2, 0)) * draws.noise_v
        y = draws.z[:, :count].sum(axis=1) / math.sqrt(count) + jnp.sqrt(noise_var) * draws.noise_y
        axes = 0, Samples(0, 0, 0, None, None)
        each: Any = jax.vmap(lambda start, at: _one(start, at, steps, activation, count), axes)
        chi, g_k, g_v, hV_k, hV_v, hm_v = each(chi, Samples(omega_k, omega_v, y, V_k, V_v))
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
