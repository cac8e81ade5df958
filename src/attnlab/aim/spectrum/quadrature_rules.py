r"""What the spectra of both priors share: checks, the centred Gaussian prior, integrals, the denoising error.

A rule maps a batch of noise levels and a number of nodes to a :class:`Quadrature` on the bulk.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlab.aim.spectrum.eigenvalue_bulk import Quadrature
from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import finite_array, nonnegative, one_of, positive

Integrand = Callable[[Quadrature], np.ndarray]
Rule = Callable[[np.ndarray, int], Quadrature]
Bulk = Callable[[np.ndarray, float, int], Quadrature]  # a rule for every finite rho

# Below it F is its slope times the noise to 1e-8 for every rho, and the bulk of the noise is too narrow for quadrature.
SMALL_NOISE = 1e-12
NO_NOISE = 1e-20  # shrinks no eigenvalue by more than 2e-10
SMALLEST_WIDTH = 1e-8  # F at Delta = 0.1 has still 3 digits; it is wrong by 40 % at 1e-10
NODES = (64, 256, 1024, 4096)
MASS_TOLERANCE = 1e-10


def check_rho(rho: float) -> float:
    """Return the width as a float of at least 1e-8; infinity (the centred Gaussian prior) is allowed."""
    if rho == float("inf"):
        return float("inf")
    rho = positive("rho", rho)
    if rho < SMALLEST_WIDTH:
        raise ValueError(
            f"rho must be at least {SMALLEST_WIDTH:g}, got {rho!r}: below it the spectrum loses its digits; "
            "aim.theory.small_width_mmse is the limit rho -> 0"
        )
    return rho


def positive_noise(noise: ArrayLike) -> np.ndarray:
    """Return noise as an array of finite numbers > 0."""
    noise = np.asarray(noise, dtype=float)
    if not (np.isfinite(noise).all() and (noise > 0).all()):
        raise ValueError(f"noise must be a number in (0, inf), got {noise!r}")
    return noise


def small_noise_slope(rho: float) -> float:
    r""":math:`D_\rho = \lim F(\Delta)/\Delta` = 2 rho - rho^2 for rho < 1, then 1: the share of the parameters of a
    matrix that one of rank r has.

    Source: arXiv:2506.01582.  Status: exact as d -> infinity.
    """
    rho = check_rho(rho)
    return 2 * rho - rho**2 if rho < 1 else 1.0


def semicircle(noise: np.ndarray, nodes: int) -> Quadrature:
    """The centred prior: x = radius cos(phi), midpoint rule in phi."""
    phi, variance = (np.arange(nodes) + 0.5) * np.pi / nodes, 1 + noise[:, None]
    x, height = 2 * np.sqrt(variance) * np.cos(phi), 2 * np.sqrt(variance) * np.sin(phi)
    return Quadrature(x, height * (np.pi / nodes), height / (2 * np.pi * variance), x / variance)


def semicircle_transform(x: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """g(x - i0) of the centred prior."""
    variance = 1 + noise
    root = np.sqrt((x**2 - 4 * variance).astype(complex))
    # On the cut z = x - i0: the root continues sqrt(z^2 - 4 v) ~ z.
    root = np.where(x**2 < 4 * variance, -1j * np.abs(root), np.sign(x) * root)
    return np.asarray((x - root) / (2 * variance))


def rule_of(bulk: Bulk, rho: float) -> Rule:
    """The rule of one prior: its bulk, or the semicircle of the centred one."""
    return semicircle if np.isinf(rho) else lambda noise, nodes: bulk(noise, rho, nodes)


def checked_quadrature(bulk: Bulk, noise: ArrayLike, rho: float, nodes: int) -> Quadrature:
    """The rule at given noise levels."""
    return rule_of(bulk, check_rho(rho))(np.atleast_1d(positive_noise(noise)), nodes)


def integral(noise: np.ndarray, rule: Rule, integrand: Integrand) -> np.ndarray:
    """The integral dx for a batch of noise values; nodes are added where the mass of the density is not 1."""
    values = np.empty_like(noise)
    todo = np.arange(len(noise))
    for nodes in NODES:
        bulk = rule(noise[todo], nodes)
        values[todo] = bulk.integrate(integrand(bulk))
        todo = todo[np.abs(bulk.integrate(bulk.density) - 1) > MASS_TOLERANCE]
        if not len(todo):
            break
    return values


def denoising_error(noise: ArrayLike, rho: float, bulk: Bulk, mean: float, large: float) -> np.ndarray | float:
    """F at noise in [0, inf]: Delta - (4 pi^2/3) Delta^2 int mu^3 below 1, 1 - int (s - mean)^2 mu up to ``large`` (in
    units of max(1, 1/rho)), Delta/(1 + Delta) beyond and for the centred prior.
    """
    rule, values = rule_of(bulk, rho), np.asarray(noise, dtype=float)
    if np.isnan(values).any() or (values < 0).any():
        raise ValueError(f"noise must be a number in [0, inf], got {noise!r}")
    delta = values.ravel()
    # inf / (1 + inf) would be NaN.
    finite = np.where(np.isinf(delta), 1.0, delta)
    error = np.where(np.isinf(delta), 1.0, finite / (1 + finite))
    if not np.isinf(rho):
        small, low = delta < SMALL_NOISE, (delta >= SMALL_NOISE) & (delta < 1)
        high = (delta >= 1) & (delta < large * max(1.0, 1 / rho))
        error[small] = small_noise_slope(rho) * delta[small]
        if low.any():
            cubed = integral(delta[low], rule, lambda at: at.density**3)
            error[low] = delta[low] * (1 - 4 * np.pi**2 / 3 * delta[low] * cubed)
        if high.any():
            error[high] = 1 - integral(delta[high], rule, lambda at: (at.denoised - mean) ** 2 * at.density)
    error = error.reshape(values.shape)
    return float(error) if error.ndim == 0 else error


def rotation_invariant(
    R: ArrayLike, noise: float, rho: float, clip: str, shrink: Callable[..., np.ndarray], symmetric: bool
) -> np.ndarray:
    """R with its eigenvalues (symmetric) or singular values shrunk; a scalar or a vector is taken as these."""
    nonnegative("noise", noise)
    one_of("clip", clip, ("none", "edges"))
    if np.iscomplexobj(R):
        raise ValueError("R must be a matrix of real numbers, got complex ones")
    rho, R = check_rho(rho), finite_array("R", R)
    if R.ndim > 2 or (R.ndim == 2 and R.shape[0] != R.shape[1]):
        kind = "eigenvalues" if symmetric else "singular values"
        raise ValueError(f"R must be a square matrix or a vector of {kind}, got shape {R.shape}")
    # Without noise R is S, whatever its spectrum.
    if noise == 0:
        return R
    if R.ndim < 2:
        return shrink(R, noise, rho, clip=clip == "edges")
    if symmetric:
        x, U = np.linalg.eigh(R)
        Vt = U.T
    else:
        U, x, Vt = np.linalg.svd(R)
    return np.asarray((U * shrink(x, noise, rho, clip=clip == "edges")) @ Vt)
