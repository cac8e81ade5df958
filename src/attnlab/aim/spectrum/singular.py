r"""Untied query and key: the singular values of Theta + sqrt(noise) Z/sqrt(d), and what they say about denoising Theta.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
Theta       Q K^T / sqrt(r d), Q and K of shape (d, r) iid N(0, 1): mean 0, |Theta|^2/d = 1
rho         width r / d; infinity stands for Theta iid N(0, 1/d)
noise       Delta: variance of the Gaussian noise, Delta/d on every entry
mu          symmetrised law of the singular values;  G its Stieltjes transform
F           Bayes error of denoising, per dimension
==========  =======================================================================================

The functions are those of :mod:`attnlab.aim.spectrum.tied`, for the other prior. Source: derived here; rectangular
estimators: Troiani et al. (MSML 2022), Pourkamali and Macris (2025).
"""

from __future__ import annotations

import numpy as np

from attnlab.aim.spectrum.eigenvalue_bulk import TINY, Quadrature
from attnlab.aim.spectrum.quadrature_rules import (
    NO_NOISE,
    NODES,
    check_rho,
    checked_quadrature,
    denoising_error,
    positive_noise,
    rotation_invariant,
    semicircle_transform,
    small_noise_slope,
)
from attnlab.aim.spectrum.singular_bulk import ends, singular_quadrature
from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import nonnegative, positive

__all__ = [
    "check_rho",
    "denoising_mmse",
    "density",
    "edges",
    "finite_size",
    "planted",
    "prior_mean",
    "quadrature",
    "rie",
    "second_moment",
    "shrink",
    "small_noise_slope",
    "stieltjes",
]

LARGE_NOISE = 1e3  # beyond it (in units of max(1, 1/rho)) F = Delta/(1 + Delta): the next term is -1/(rho^2 Delta^3)


def prior_mean(rho: float) -> float:
    """Zero: the planted matrix is centred. Status: exact."""
    check_rho(rho)
    return 0.0


def second_moment(rho: float) -> float:
    """|Theta|^2 / d = 1. Status: exact."""
    check_rho(rho)
    return 1.0


def finite_size(d: int) -> float:
    """E|Theta|^2 / d = 1 exactly at any d."""
    return 1.0


def planted(d: int, rho: float, seed: Seed) -> np.ndarray:
    """A draw from the prior."""
    rng = stream(seed, "plant", "aim")
    if np.isinf(rho):
        return np.asarray(rng.standard_normal((d, d)) / np.sqrt(d))
    width = round(rho * d)
    Q, K = rng.standard_normal((2, d, width))
    return np.asarray(Q @ K.T / np.sqrt(width * d))


def edges(noise: float, rho: float) -> np.ndarray:
    r"""The 1 or 3 sorted ends x > 0 of the bulks of singular values (one bulk around 0, or a gap beside it).

    Source: derived here.  Status: exact as d -> infinity.

    >>> edges(0.6, rho=0.5).round(6)
    array([3.247199])
    """
    return np.array(_edges(positive("noise", noise), check_rho(rho)))


def _edges(noise: float, rho: float) -> list[float]:
    if np.isinf(rho):
        return [2 * (1 + noise) ** 0.5]
    noise = max(noise, TINY)
    c = 1 / rho
    return [float(2 * w**0.5 * (w**2 + c * noise) / (w * (w + c))) for w in ends(noise, rho).p]


def stieltjes(x: ArrayLike, noise: ArrayLike, rho: float) -> np.ndarray:
    r"""G(x - i0) of the symmetrised law: the root with Im G > 0 of
    :math:`m^4 - xm^3 + (\Delta + 1 - c)m^2 + cxm - c\Delta`, m = 1/G; broadcasts.

    For real x there is at most one complex pair. Without one, the physical root is the real one with
    :math:`\Delta/m^2 + (m^2 + c)/(m^2 - c)^2 < 1`.

    Source: derived here.  Status: exact as d -> infinity.
    """
    rho = check_rho(rho)
    x, noise = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(noise, dtype=float))
    if np.isinf(rho):
        return semicircle_transform(x, noise)
    return np.asarray(1 / _roots(x.ravel(), noise.ravel(), 1 / rho)).reshape(x.shape)


def _roots(x: np.ndarray, noise: np.ndarray, c: float) -> np.ndarray:
    """m with Im m < 0 in a bulk, the physical real root elsewhere."""
    companion = np.zeros((len(x), 4, 4))
    companion[:, 1:, :3] = np.eye(3)
    # Minus the coefficients of the quartic, the constant first.
    companion[:, :, 3] = np.stack([c * noise, -c * x, c - 1 - noise, x], axis=-1)
    m = np.linalg.eigvals(companion).astype(complex)
    lowest = np.take_along_axis(m, m.imag.argmin(axis=1)[:, None], axis=1)[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        square = m.real**2
        # NaN or infinite where a root is 0 or a pole: never the physical one.
        sigma = noise[:, None] / square + (square + c) / (square - c) ** 2
    outside = np.take_along_axis(m.real, np.nan_to_num(sigma, nan=np.inf).argmin(axis=1)[:, None], axis=1)[:, 0]
    # rounding gives merged real roots an imaginary part of 1e-8
    return np.where(lowest.imag < -1e-7 * np.abs(lowest), lowest, outside)


def density(x: ArrayLike, noise: ArrayLike, rho: float) -> np.ndarray:
    r"""Symmetrised density :math:`\mu(x)` of the singular values; broadcasts over x and noise > 0.

    Source: derived here.  Status: exact as d -> infinity.

    >>> round(float(density(1.0, noise=0.6, rho=0.5)), 6)
    0.214379
    """
    return np.asarray(np.maximum(stieltjes(x, positive_noise(noise), rho).imag, 0.0) / np.pi)


def quadrature(noise: ArrayLike, rho: float, nodes: int = NODES[0]) -> Quadrature:
    """Nodes x > 0, weights 2 dx (so that even functions are integrated over both signs), density and denoised values.

    Status: exact as d -> infinity.
    """
    return checked_quadrature(singular_quadrature, noise, rho, nodes)


def denoising_mmse(noise: ArrayLike, rho: float) -> np.ndarray | float:
    r"""Bayes error of denoising Theta, per dimension; broadcasts over noise in [0, inf].

    .. math:: F(\Delta) = \Delta - \tfrac{4\pi^2}{3}\,\Delta^2 \int \mu^3 = 1 - \int \xi^2\mu, \qquad
              \xi(x) = x - 2\Delta\,\mathrm{Re}\,G(x)

    Source: derived here.  Status: exact as d -> infinity.

    >>> round(denoising_mmse(0.6, rho=0.5), 8)
    0.315367
    """
    rho = check_rho(rho)
    return denoising_error(noise, rho, singular_quadrature, 0.0, LARGE_NOISE)


def shrink(x: ArrayLike, noise: float, rho: float, *, clip: bool = False) -> np.ndarray:
    r"""The map of singular values, :math:`\xi(x) = x - 2\Delta\,\mathrm{Re}\,G(x)`; with ``clip`` they are first moved
    below the largest edge.

    Source: derived here.  Status: exact as d -> infinity.
    """
    x, noise = np.asarray(x, dtype=float), max(nonnegative("noise", noise), NO_NOISE)
    if clip:
        x = np.clip(x, 0.0, _edges(noise, rho)[-1])
    return np.asarray(x - 2 * noise * stieltjes(x, noise, rho).real)


def rie(R: ArrayLike, noise: float, rho: float, *, clip: str = "none") -> np.ndarray:
    r"""Rotationally invariant estimator: the posterior mean of Theta given R.

    R = U diag(s) V^T is mapped to U diag(xi(s)) V^T; a scalar or a vector is taken as singular values.

    Parameters
    ----------
    R : matrix (d, d), or singular values.
    noise, rho : Delta and the width of the prior.
    clip : ``"edges"`` moves singular values below the largest edge first, ``"none"`` does not.

    Source: derived here.  Status: exact as d -> infinity.

    >>> round(float(rie(1.0, noise=0.6, rho=0.5)), 6)
    0.294841
    """
    return rotation_invariant(R, noise, rho, clip, shrink, symmetric=False)
