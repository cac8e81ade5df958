r"""Stochastic gradient descent of erf attention, simulated exactly in law by the five overlaps.

=======================  =====================================================================================
symbol                   meaning
=======================  =====================================================================================
B, L                     sequences in a batch and tokens in a sequence
frame                    an orthonormal basis of span(k*, v*, k, v), in this order
A_bl, V_bl               X_bl.k and X_bl.v
e_b                      T(X_b) - y_b, the error
c^k_bl, c^v_bl           what token (b, l) contributes to the gradients: g = sum c_bl X_bl
=======================  =====================================================================================

A token enters the coefficients only through its four components in the frame. Given the coefficients, the components of
the two gradients outside the frame are a Gaussian pair in R^(d-4); only their lengths and angle matter, a 2 x 2 Wishart
matrix. So a step costs 4BL + B normals and three more numbers, whatever the dimension.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute
from attnlab.common.law import from_law
from attnlab.common.precision import float64
from attnlab.common.seeds import Seed, seed_sequence, stream
from attnlab.common.validation import integer, nonnegative, positive
from attnlab.slr.device import placed
from attnlab.slr.task import Task
from attnlab.slr.theory.dynamics import check_overlaps
from attnlab.slr.theory.overlaps import Setting, setting


@from_law(Task)
def simulate_sgd(
    task: Task,
    overlaps: ArrayLike,
    *,
    lam: float,
    step: float,
    n_steps: int,
    batch_size: int = 5,
    log_every: int = 1,
    decay: float = 0.0,
    seed: Seed = 0,
    compute: Compute | None = None,
) -> Float[np.ndarray, "logs runs 5"]:
    r"""Projected SGD with a fresh batch at every step, as a Markov chain of the five overlaps.

    The loss is the batch mean of :math:`(T(X) - y)^2`; the update is that of
    :func:`attnlab.slr.theory.gradient_descent`, and so are the arguments and the result. The law of the trajectory is
    exactly that of SGD in d dimensions, at a fraction of its cost.

    Source: arXiv:2410.01537, section 5 (the algorithm); the reduction is derived here.

    >>> path = simulate_sgd([0.1, 0.1, 0, 0, 0], d=80, L=10, lam=0.5, step=1e-3, n_steps=20, log_every=10)
    >>> path.shape
    (3, 1, 5)
    """
    start, law = check_overlaps(overlaps), setting(task)
    # the Wishart matrix of what lies outside the frame needs two degrees of freedom
    d, batch_size = integer("d", task.d, low=6), integer("batch_size", batch_size, low=1)
    n_steps, log_every = integer("n_steps", n_steps, low=0), integer("log_every", log_every, low=1)
    options = positive("lam", lam), positive("step", step), task.noise_std, nonnegative("decay", decay)
    root = seed_sequence(seed)
    streams = [stream(root, "data", "slr", "sgd", kind) for kind in ("tokens", "first", "cross", "second")]
    with placed(compute, simulate_sgd):
        return _simulate(start, law, d, batch_size, options, n_steps, log_every, streams)


@float64
def _simulate(
    start: np.ndarray,
    law: Setting,
    d: int,
    batch_size: int,
    options: tuple[float, ...],
    n_steps: int,
    log_every: int,
    streams: list[np.random.Generator],
) -> np.ndarray:
    """Random numbers are drawn by NumPy in blocks, and consumed by one compiled scan per block."""
    law, options = Setting(*map(np.float64, law)), tuple(map(np.float64, options))
    # one stream for each kind of number: the trajectory does not depend on the size of the blocks
    tokens, first, cross, second = streams
    runs, L = len(start), int(law.L)
    state: tuple[Any, ...] = tuple(start.T)
    path = [start]
    # at most 2e7 random numbers (80 MB) at a time
    block = max(1, min(log_every, int(2e7 / (runs * (4 * L + 1) * batch_size))))
    done = 0
    while done < n_steps:
        size = min(block, n_steps - done, log_every - done % log_every)
        normals = tokens.standard_normal((size, 4 * L + 1, batch_size, runs), dtype=np.float32)
        outside = (
            first.chisquare(d - 4, (size, runs)),
            cross.standard_normal((size, runs)),
            second.chisquare(d - 5, (size, runs)),
        )
        state = _scan()(state, np.float64(done), normals, outside, law, options)
        done += size
        if done % log_every == 0 or done == n_steps:
            path.append(np.stack(state, axis=1))
    return np.stack(path)


@functools.cache
def _scan() -> Any:
    """The compiled loop over a block of steps; built on first use."""
    import jax

    @jax.jit
    def scan(state: Any, first: Any, normals: Any, outside: Any, law: Any, options: Any) -> Any:
        def body(carry: Any, drawn: Any) -> Any:
            t, state = carry
            normals, outside = drawn
            return (t + 1, _step(state, t, normals, outside, law, options)), None

        (_, state), _ = jax.lax.scan(body, (first, state), (normals, outside))
        return state

    return scan


def _step(state: Any, t: Any, normals: Any, outside: Any, law: Setting, options: Any) -> Any:
    """The overlaps after one step. JAX is imported here, so that importing the theory does not."""
    import jax.numpy as jnp
    from jax.scipy.special import erf

    lam, alpha, noise_std, decay = options
    lam = lam / (1 + decay * t)
    kappa, nu, theta, eta, rho = state
    k3 = jnp.sqrt(jnp.maximum(1 - kappa**2 - eta**2, 0.0))
    v3 = jnp.where(k3 > 1e-12, (rho - kappa * theta - eta * nu) / jnp.maximum(k3, 1e-12), 0.0)
    v4 = jnp.sqrt(jnp.maximum(1 - theta**2 - nu**2 - v3**2, 0.0))
    # tokens in the frame, (4, L, B, runs); the informative ones are the first K
    X = normals[:-1].reshape(4, -1, *normals.shape[1:]).astype(jnp.float64)
    informative = (jnp.arange(X.shape[1]) < law.K)[:, None, None]
    scale = jnp.where(informative, law.gamma, 1.0)
    X = (scale * X).at[0].add(law.mu * informative)
    A, V = kappa * X[0] + eta * X[1] + k3 * X[2], theta * X[0] + nu * X[1] + v3 * X[2] + v4 * X[3]
    weight = erf(lam * A)
    target = jnp.sum(informative * X[1], axis=0) / jnp.sqrt(law.K)
    error = jnp.sum(weight * V, axis=0) - target - noise_std * normals[-1]
    c_v = 2 / A.shape[1] * error * weight
    c_k = 2 / A.shape[1] * error * lam * (2 / math.sqrt(math.pi)) * jnp.exp(-((lam * A) ** 2)) * V
    zero = jnp.zeros_like(k3)
    k, v = jnp.stack([kappa, eta, k3, zero]), jnp.stack([theta, nu, v3, v4])
    g_k, g_v = jnp.sum(c_k * X, axis=(1, 2)), jnp.sum(c_v * X, axis=(1, 2))
    k, v = k - alpha * (g_k - jnp.sum(k * g_k, 0) * k), v - alpha * (g_v - jnp.sum(v * g_v, 0) * v)
    out_kk, out_kv, out_vv = _wishart(scale * c_k, scale * c_v, outside)
    norm_k = jnp.sqrt(jnp.sum(k**2, 0) + alpha**2 * out_kk)
    norm_v = jnp.sqrt(jnp.sum(v**2, 0) + alpha**2 * out_vv)
    inner = jnp.sum(k * v, 0) + alpha**2 * out_kv
    return k[0] / norm_k, v[1] / norm_v, v[0] / norm_v, k[1] / norm_k, inner / (norm_k * norm_v)


def _wishart(c_k: Any, c_v: Any, outside: Any) -> Any:
    """Squared lengths and inner product of the gradients outside the frame (Bartlett's decomposition)."""
    import jax.numpy as jnp

    chi_1, normal, chi_2 = outside
    s_kk, s_kv, s_vv = (jnp.sum(a * b, axis=(0, 1)) for a, b in ((c_k, c_k), (c_k, c_v), (c_v, c_v)))
    root = jnp.sqrt(jnp.maximum(s_kk, 1e-300))
    b = s_kv / root
    c = jnp.sqrt(jnp.maximum(s_vv - b**2, 0.0))
    u11, u12, u22 = chi_1, jnp.sqrt(chi_1) * normal, normal**2 + chi_2
    return root**2 * u11, root * (b * u11 + c * u12), b**2 * u11 + 2 * b * c * u12 + c**2 * u22
