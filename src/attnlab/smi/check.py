"""What a link says of itself, tested once before it is used: shapes, finite values, agreement of its parts."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.advice import advise
from attnlab.common.precision import float64
from attnlab.smi.draws import sobol_normals
from attnlab.smi.link import Link
from attnlab.smi.links import as_link
from attnlab.smi.symmetry import generators

PROBES = 64


def checked(link: Any) -> Link:
    """A link, the name of one, or the link of a task; errors name the part that is wrong."""
    found = as_link(link)
    if not found.shipped:  # those are checked by the tests
        _check(found)
    return found


@functools.lru_cache(maxsize=256)
@float64
def _check(link: Link) -> None:
    x = sobol_normals(link.dimension + max(link.noise, 1), PROBES, ("check",))
    z = jnp.asarray(x[:, : link.dimension].reshape(PROBES, link.tokens, link.rank))
    e = jnp.asarray(x[:, link.dimension :][:, : link.noise])
    if link.indices is not None:
        z = _mapped(link, "indices", z, e)
        if z.shape != (PROBES, link.tokens, link.rank):
            raise ValueError(f"indices must return z of shape ({link.tokens}, {link.rank}), got {z.shape[1:]}")
    y = _outputs(link, z, e)
    if link.mean is not None and (shape := _mapped(link, "mean", z).shape) != y.shape:
        raise ValueError(f"mean must return the shape {y.shape[1:]} of the output of sample, got {shape[1:]}")
    if link.log_density is not None:
        _check_density(link, y, z)
    if link.solve is not None and link.log_partition is None:
        _check_level_set(link, y, z)
    if link.log_partition is not None:
        _scalar_and_finite("log_partition", _described(link, y, 0 * z, np.eye(link.rank)))
    _check_consistent(link)
    _check_symmetry(link, y, z)


def _mapped(link: Link, name: str, *arguments: jax.Array) -> Any:
    """A function of the link on the drawn sequences; what JAX cannot follow is said in words."""
    try:
        return jax.vmap(getattr(link, name))(*arguments)
    except (TypeError, IndexError, ValueError) as problem:
        shapes = " and ".join(str(x.shape[1:]) for x in arguments)
        raise ValueError(
            f"{name} fails on one sequence, arguments of shape {shapes}; it must be written with jax.numpy, and noise="
            f"{link.noise} is how many numbers e it may use: {str(problem).splitlines()[0]}"
        ) from problem


def _outputs(link: Link, z: jax.Array, e: jax.Array) -> jax.Array:
    y = _mapped(link, "sample", z, e)
    if not isinstance(y, jax.Array):
        raise TypeError(f"sample must return one array for a sequence, got {type(y).__name__}")
    if not bool(jnp.isfinite(y).all()):
        raise ValueError("sample returns NaN or infinity")
    return y


def _scalar_and_finite(name: str, value: jax.Array) -> None:
    if value.shape != (PROBES,):
        raise ValueError(f"{name} must return a scalar for one sequence, got shape {value.shape[1:]}")
    if not bool(jnp.isfinite(value).all()):
        raise ValueError(f"{name} is not finite at {int((~jnp.isfinite(value)).sum())} of {PROBES} drawn sequences")


def _check_density(link: Link, y: jax.Array, z: jax.Array) -> None:
    assert link.log_density is not None
    density = jax.vmap(link.log_density)
    value = _mapped(link, "log_density", y, z)
    _scalar_and_finite("log_density", value)
    elsewhere = [density(y, other) for other in (jnp.roll(z, 1, axis=0), 0.3 * z)]
    # Minus infinity is allowed: y may be impossible at other indices.
    if any(bool(jnp.isnan(other).any()) for other in elsewhere):
        raise ValueError("log_density is NaN at indices other than the drawn ones; it must be defined for every z")
    if all(bool(jnp.allclose(other, value, rtol=0, atol=1e-12)) for other in elsewhere):
        advise("the link shows nothing of z: log_density does not depend on it", stacklevel=4)


def _check_level_set(link: Link, y: jax.Array, z: jax.Array) -> None:
    """Every branch must reproduce y, at the free coordinates of other sequences."""
    assert link.solve is not None
    free = np.array(link.free, dtype=float)
    if link.has_ranges:
        # The middle of the ranges: at their ends the branches leave the region that matters.
        unit = np.linspace(0.35, 0.65, PROBES)[:, None]
        s = jnp.asarray(free[:, 0] + unit * (free[:, 1] - free[:, 0]))
    else:
        s = jnp.roll(z, 1, axis=0)[:, tuple(int(t) for t in free[:, 0]), tuple(int(a) for a in free[:, 1])]
    found = _mapped(link, "solve", y, s)
    if not (isinstance(found, tuple) and len(found) == 2):
        raise TypeError(f"solve must return the two arrays z and logw, got {type(found).__name__}")
    branches, log_weight = found
    if branches.ndim != 4 or branches.shape[2:] != z.shape[1:] or log_weight.shape != branches.shape[:2]:
        raise ValueError(
            f"solve must return z of shape (B, {link.tokens}, {link.rank}) and logw of shape (B,), got "
            f"{branches.shape[1:]} and {log_weight.shape[1:]}"
        )
    again = jax.vmap(jax.vmap(lambda one: link.sample(one, jnp.zeros(link.noise))))(branches)
    gap = jnp.abs(again - y[:, None])
    # Negated, so that NaN counts as wrong.
    wrong = ~(gap <= 1e-6 * (1 + jnp.abs(y[:, None])))
    if bool(wrong.any()):
        raise ValueError(f"solve misses y: sample(solve(y, s)) differs from y by up to {float(jnp.nanmax(gap)):.3g}")


def _check_consistent(link: Link) -> None:
    """sample and the description of p(y|z) must be the same law: the Nishimori identity at Q = I/2."""
    # The theory imports this file.
    from attnlab.smi.theory.gains import gain, points_of

    V = np.repeat(0.5 * np.eye(link.rank)[None], 8, axis=0)
    found = gain(link, V, points_of(link, 512, 8, "check"))
    gap, error = found.gap
    size = found.size
    part = next(name for name in ("log_partition", "solve", "log_density") if getattr(link, name) is not None)
    # An integral that is not resolved breaks the identity by itself; 2e-3 is what the rules integrate to.
    if found.resolved and abs(gap) > max(5 * error, 2e-3 * size, 1e-9):
        raise ValueError(
            f"sample and {part} contradict each other: E m m^T and E m s^T differ by {gap:.3g} of {size:.3g} at "
            f"Q = I/2 (standard error {error:.2g}); they are equal if y is drawn from the p(y|z) of {part}"
        )


def _check_symmetry(link: Link, y: jax.Array, z: jax.Array) -> None:
    """Transformed directions must explain the outputs as well: alignment and bounds rely on it."""
    # Not a multiple of I, which every orthogonal G would leave as it is.
    V = 0.5 * np.eye(link.rank) + 0.1
    for G in generators(link.symmetry, link.rank):
        if not bool(jnp.allclose(_described(link, y, z @ G.T, G @ V @ G.T), _described(link, y, z, V), atol=1e-6)):
            raise ValueError(
                f"symmetry={link.symmetry!r} does not hold: W -> G W with G = {G.round(3).tolist()} changes p(y|z); "
                "name a smaller group or list the matrices"
            )


def _described(link: Link, y: jax.Array, z: jax.Array, V: np.ndarray) -> jax.Array:
    """What the link says of the outputs y at indices z, or of indices with the mean z and the covariance V."""
    if link.log_partition is not None:
        return _mapped(link, "log_partition", y, z, jnp.broadcast_to(V, (PROBES, *V.shape)))
    if link.log_density is not None:
        return _mapped(link, "log_density", y, z)
    # Only a level set describes the link, which has no noise then: equal outputs are equal laws.
    return _mapped(link, "sample", z, jnp.zeros((PROBES, link.noise)))
