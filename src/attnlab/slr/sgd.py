r"""Stochastic gradient descent of erf attention, simulated exactly in law by the five overlaps.

=======================  =====================================================================================
symbol                   meaning
=======================  =====================================================================================
B, L                     sequences in a batch and tokens in a sequence
frame                    an orthonormal basis of span(k, v, k*, v*), in this order
A_bl, V_bl               X_bl.k and X_bl.v
e_b                      T(X_b) - y_b, the error
c^k_bl, c^v_bl           what token (b, l) contributes to the gradients: g = sum c_bl X_bl
=======================  =====================================================================================

A token of noise enters the coefficients only through its first two components in the frame, an informative one through
all four. Given the coefficients, every other component of the two gradients is a Gaussian pair: drawn for the third and
fourth, and for the d - 4 outside the frame only their lengths and angle matter, a 2 x 2 Wishart matrix. So a step costs
2BL + (2K + 1)B normals and seven more numbers, whatever the dimension.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from attnlab.common.arrays import ArrayLike
from attnlab.common.compute import Compute, placed
from attnlab.common.law import from_law
from attnlab.common.precision import float64
from attnlab.common.seeds import Seed, seed_sequence, stream
from attnlab.common.validation import integer, nonnegative, positive
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
    streams = [stream(root, "data", "slr", "sgd", kind) for kind in ("tokens", "first", "normal", "second")]
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
    # one stream for each kind of number: the trajectory does not depend on the size of the blocks
    tokens, first, rest, second = streams
    runs, L, K = len(start), int(law.L), int(law.K)
    law, options = Setting(*map(np.float64, law)), tuple(map(np.float64, options))
    state: tuple[Any, ...] = tuple(start.T)
    path = [start]
    rows = 2 * L + 2 * K + 1
    # at most 2e7 random numbers (80 MB) at a time
    block = max(1, min(log_every, int(2e7 / (runs * rows * batch_size))))
    done = 0
    while done < n_steps:
        size = min(block, n_steps - done, log_every - done % log_every)
        normals = tokens.standard_normal((size, rows, batch_size, runs), dtype=np.float32)
        plane, others, noise = np.split(normals, [2 * L, 2 * L + 2 * K], axis=1)
        outside = (
            first.chisquare(d - 4, (size, runs)),
            rest.standard_normal((size, 5, runs)),
            second.chisquare(d - 5, (size, runs)),
        )
        state = _scan()(state, np.float64(done), (plane, others, noise[:, 0], outside), law, options)
        done += size
        if done % log_every == 0 or done == n_steps:
            path.append(np.stack(state, axis=1))
    return np.stack(path)


@functools.cache
def _scan() -> Any:
    """The compiled loop over a block of steps; built on first use."""
    import jax

    @jax.jit
    def scan(state: Any, first: Any, drawn: Any, law: Any, options: Any) -> Any:
        def body(carry: Any, drawn: Any) -> Any:
            t, state = carry
            return (t + 1, _step(state, t, drawn, law, options)), None

        (_, state), _ = jax.lax.scan(body, (first, state), drawn)
        return state

    return scan


def _step(state: Any, t: Any, drawn: Any, law: Setting, options: Any) -> Any:
    """The overlaps after one step. JAX is imported here, so that importing the theory does not."""
    import jax
    import jax.numpy as jnp

    lam, alpha, noise_std, decay = options
    rho = state[4]
    # Rounding carries |rho| past 1 where k = ±v; the root would be NaN.
    s = jnp.sqrt(jnp.maximum(1 - rho**2, 0.0))
    k_star, v_star = _planted(state, s)
    k, v = [1 + 0 * rho, 0 * rho, 0 * rho, 0 * rho], [rho, s, 0 * rho, 0 * rho]
    # In single precision, as the normals are: rounding is 1e-7 of a gradient's own fluctuation, and the erf and exp of
    # all tokens are most of the cost. The state stays in double precision.
    given = drawn, (k_star, v_star, v), law, lam / (1 + decay * t), noise_std
    single = jax.tree.map(lambda x: x.astype(jnp.float32), given)
    g_k, g_v, outside = jax.tree.map(lambda x: x.astype(jnp.float64), _gradients(*single))
    along_k, along_v = _dot(k, g_k), _dot(v, g_v)
    k = [x - alpha * (g - along_k * x) for x, g in zip(k, g_k, strict=True)]
    v = [x - alpha * (g - along_v * x) for x, g in zip(v, g_v, strict=True)]
    out_kk, out_kv, out_vv = outside
    norm_k, norm_v = jnp.sqrt(_dot(k, k) + alpha**2 * out_kk), jnp.sqrt(_dot(v, v) + alpha**2 * out_vv)
    return (
        _dot(k, k_star) / norm_k,
        _dot(v, v_star) / norm_v,
        _dot(v, k_star) / norm_v,
        _dot(k, v_star) / norm_k,
        (_dot(k, v) + alpha**2 * out_kv) / (norm_k * norm_v),
    )


def _gradients(drawn: Any, frame: Any, law: Setting, lam: Any, noise_std: Any) -> Any:
    """Both gradients in the frame, and their squared lengths and inner product outside it."""
    import jax.numpy as jnp
    from jax.scipy.special import erf

    plane, others, noise, (first, normals, second) = drawn
    k_star, v_star, (rho, s, *_) = frame
    # tokens (L, B, runs): two components of all, the other two of the K informative ones, which come first
    plane, others = (part.reshape(2, -1, *noise.shape) for part in (plane, others))
    K = others.shape[1]
    informative = (jnp.arange(plane.shape[1]) < K)[:, None, None]
    scale = jnp.where(informative, law.gamma, 1)
    X1, X2 = (scale * x + law.mu * informative * c for x, c in zip(plane, k_star[:2], strict=True))
    X3, X4 = law.gamma * others[0] + law.mu * k_star[2], law.gamma * others[1]
    V = rho * X1 + s * X2
    weight = erf(lam * X1)
    target = _dot([jnp.sum(x[:K], axis=0) for x in (X1, X2, X3, X4)], v_star) / jnp.sqrt(law.K)
    error = 2 / len(noise) * (jnp.sum(weight * V, axis=0) - target - noise_std * noise)
    c_k = error * lam * (2 / math.sqrt(math.pi)) * jnp.exp(-((lam * X1) ** 2)) * V
    c_v = error * weight
    # what the tokens of noise add to the third and fourth components
    root, b, c = _cholesky(c_k[K:], c_v[K:])
    added = root * normals[:2], b * normals[:2] + c * normals[2:4]
    g_k, g_v = (
        [jnp.sum(c * X1, (0, 1)), jnp.sum(c * X2, (0, 1))]
        + [jnp.sum(c[:K] * x, (0, 1)) + more for x, more in zip((X3, X4), pair, strict=True)]
        for c, pair in ((c_k, added[0]), (c_v, added[1]))
    )
    return g_k, g_v, _wishart(*_cholesky(scale * c_k, scale * c_v), first, normals[4], second)


def _planted(state: Any, s: Any) -> tuple[list[Any], list[Any]]:
    """k* and v* in the frame: k, the rest of v, the rest of k*, the rest of v*."""
    import jax.numpy as jnp

    kappa, nu, theta, eta, rho = state
    # where k = ±v the rest of v has no direction, and where k* lies in the plane its own rest has none
    safe = jnp.maximum(s, 1e-12)
    k2, v2 = (theta - rho * kappa) / safe, (nu - rho * eta) / safe
    # Gram-Schmidt of unit vectors: what is left of a length is never negative but by rounding.
    k3 = jnp.sqrt(jnp.maximum(1 - kappa**2 - k2**2, 0.0))
    v3 = jnp.where(k3 > 1e-12, -(kappa * eta + k2 * v2) / jnp.maximum(k3, 1e-12), 0.0)
    v4 = jnp.sqrt(jnp.maximum(1 - eta**2 - v2**2 - v3**2, 0.0))
    return [kappa, k2, k3, jnp.zeros_like(k3)], [eta, v2, v3, v4]


def _dot(x: Any, y: Any) -> Any:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _cholesky(c_k: Any, c_v: Any) -> tuple[Any, Any, Any]:
    """The factor (root, 0; b, c) of the coefficients' 2 x 2 matrix of second moments."""
    import jax.numpy as jnp

    s_kk, s_kv, s_vv = (jnp.sum(a * b, axis=(0, 1)) for a, b in ((c_k, c_k), (c_k, c_v), (c_v, c_v)))
    # No coefficients (the error is exactly 0): s_kv is 0 too, and b is 0 instead of 0/0.
    root = jnp.sqrt(jnp.maximum(s_kk, 1e-30))
    b = s_kv / root
    return root, b, jnp.sqrt(jnp.maximum(s_vv - b**2, 0.0))


def _wishart(root: Any, b: Any, c: Any, chi_1: Any, normal: Any, chi_2: Any) -> Any:
    """Squared lengths and inner product of the gradients outside the frame (Bartlett's decomposition)."""
    import jax.numpy as jnp

    u11, u12, u22 = chi_1, jnp.sqrt(chi_1) * normal, normal**2 + chi_2
    return root**2 * u11, root * (b * u11 + c * u12), b**2 * u11 + 2 * b * c * u12 + c**2 * u22
