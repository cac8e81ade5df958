r"""Tied query and key: the spectrum of S + sqrt(noise) GOE, and what it says about denoising S.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
S           W W^T / sqrt(r d), W of shape (d, r) iid N(0, 1): Marchenko-Pastur, mean sqrt(rho), variance 1
rho         width r / d; infinity stands for the centred Gaussian prior (S itself a GOE matrix)
noise       Delta: variance of the Gaussian noise (off-diagonal entries Delta / d, diagonal 2 Delta / d)
g           Stieltjes transform of the noisy spectrum, g(x) = int mu(dt) / (x - i0 - t)
mu          spectral density = Im g / pi;  Re g is pi times its Hilbert transform
F           Bayes error of denoising, per dimension
theta       1 / sqrt(rho)
==========  =======================================================================================

With m = 1/g the transform solves x = m + sqrt(rho) m / (m - theta) + Delta / m, a cubic in m
(:mod:`attnlab.aim.spectrum.eigenvalue_cubic`): free convolution of Marchenko-Pastur and the semicircle. Integrals over
the bulk need no cubic (:mod:`attnlab.aim.spectrum.eigenvalue_bulk`).
"""

from __future__ import annotations

import numpy as np

from attnlab.aim.spectrum.eigenvalue_bulk import Quadrature, bulk_ends, bulk_quadrature
from attnlab.aim.spectrum.eigenvalue_cubic import denoised, inverse_transform
from attnlab.aim.spectrum.quadrature_rules import (
    NO_NOISE,
    NODES,
    check_rho,
    checked_quadrature,
    denoising_error,
    integral,
    positive_noise,
    rotation_invariant,
    rule_of,
    semicircle_transform,
)
from attnlab.aim.spectrum.quadrature_rules import (
    small_noise_slope as small_noise_slope,  # a prior has it
)
from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import Seed, stream
from attnlab.common.validation import nonnegative, positive

LARGE_NOISE = 1e8  # beyond it (in units of max(1, 1/rho)) F = 1 - 1/Delta to rounding


def prior_mean(rho: float) -> float:
    r"""The known part of S: :math:`\mathbb{E}S = \sqrt\rho\, I`; zero for the centred prior. Status: exact."""
    return 0.0 if np.isinf(rho) else float(np.sqrt(rho))


def second_moment(rho: float) -> float:
    r""":math:`Q_0 = \tfrac1d\mathbb{E}\,\mathrm{Tr}\,S^2 = 1 + \rho`; 1 for the centred prior. Status: exact as d ->
    infinity.
    """
    return 1.0 + prior_mean(rho) ** 2


def finite_size(d: int) -> float:
    """1 + 1/d = E|S - E S|^2 / d exactly, at any d, for both priors; the limit's errors are in units of it."""
    return 1 + 1 / d


def planted(d: int, rho: float, seed: Seed) -> np.ndarray:
    """A draw from the prior: Wishart of width round(rho d), or GOE for rho = infinity."""
    rng = stream(seed, "plant", "aim")
    if np.isinf(rho):
        gaussian = rng.standard_normal((d, d))
        # Variance 1/d off the diagonal and 2/d on it, as of the noise.
        return np.asarray((gaussian + gaussian.T) / np.sqrt(2 * d))
    width = round(rho * d)
    W = rng.standard_normal((d, width))
    return np.asarray(W @ W.T / np.sqrt(width * d))


def stieltjes(x: ArrayLike, noise: ArrayLike, rho: float) -> np.ndarray:
    r"""g(x - i0): density times pi in the imaginary part, Hilbert transform in the real part; broadcasts over x and
    noise.

    Inside the bulk it is the root of the cubic with Im g > 0, outside the real root with g' < 0.

    Source: arXiv:2506.01582; free probability.  Status: exact as d -> infinity.
    """
    rho = check_rho(rho)
    x, noise = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(noise, dtype=float))
    if np.isinf(rho):
        return semicircle_transform(x, noise)
    return np.asarray(1 / inverse_transform(np.atleast_1d(x), np.atleast_1d(noise), rho)).reshape(x.shape)


def density(x: ArrayLike, noise: ArrayLike, rho: float) -> np.ndarray:
    r"""Spectral density :math:`\mu(x)` of S + sqrt(noise) GOE; broadcasts over x and noise > 0.

    Source: arXiv:2506.01582; free probability.  Status: exact as d -> infinity.

    >>> round(float(density(1.0, noise=0.6, rho=0.5)), 6)
    0.244309
    """
    return np.asarray(np.maximum(stieltjes(x, positive_noise(noise), rho).imag, 0.0) / np.pi)


def edges(noise: float, rho: float) -> np.ndarray:
    r"""The 2 or 4 sorted ends of the bulk(s): where dx/dm = 0,

    .. math:: (m - \theta)^{-2} + \Delta\,m^{-2} = 1.

    Source: derived here from the cubic.  Status: exact as d -> infinity.

    >>> edges(0.6, rho=0.5).round(6)
    array([-1.290275,  4.367177])
    """
    return np.array(_ends(positive("noise", noise), check_rho(rho)))


def _ends(noise: float, rho: float) -> list[float]:
    if np.isinf(rho):
        half = 2 * (1 + noise) ** 0.5
        return [-half, half]
    return bulk_ends(noise, rho)


def quadrature(noise: ArrayLike, rho: float, nodes: int = NODES[0]) -> Quadrature:
    """Nodes, weights, density and denoised eigenvalues on the bulk(s), for a batch of noise values (one-dimensional).

    Spectral accuracy, square-root edges included; the mass of the density should be 1.  Status: exact as d -> infinity.
    """
    return checked_quadrature(bulk_quadrature, noise, rho, nodes)


def cubed_density(noise: np.ndarray, rho: float) -> np.ndarray:
    r""":math:`\int\mu_\Delta^3` for a batch of noise values.

    Source: arXiv:2506.01582.  Status: exact as d -> infinity.
    """
    return integral(noise, rule_of(bulk_quadrature, rho), lambda bulk: bulk.density**3)


def denoising_mmse(noise: ArrayLike, rho: float) -> np.ndarray | float:
    r"""Bayes error of denoising S from S + sqrt(noise) GOE, per dimension; broadcasts over noise in [0, inf].

    .. math::

        F(\Delta) = \Delta - \tfrac{4\pi^2}{3}\,\Delta^2 \int \mu_\Delta(x)^3\,dx
                  = 1 - \int (\hat s(x) - \sqrt\rho)^2\,\mu_\Delta(x)\,dx, \qquad
        \hat s(x) = x - 2\Delta\,\mathrm{Re}\,g(x)

    The first form keeps its digits where Delta < 1, the second (the variance that the estimate explains) beyond.
    Limits: 0 at Delta = 0 (slope 2 rho - rho^2 for rho < 1, then 1), 1 at Delta = infinity, Delta / (1 + Delta) at
    rho = infinity.

    Source: arXiv:2506.01582; free probability.  Status: exact as d -> infinity.

    >>> round(denoising_mmse(0.6, rho=0.5), 8)
    0.28390214
    """
    rho = check_rho(rho)
    return denoising_error(noise, rho, bulk_quadrature, prior_mean(rho), LARGE_NOISE)


def small_width_mmse(t: ArrayLike) -> np.ndarray:
    r"""F as rho -> 0 with t = rho Delta fixed: t (2 - t) below the transition t = 1, then 1 (BBP).

    Source: arXiv:2506.01582; J. Baik, G. Ben Arous, S. Peche (2005).  Status: exact in the limit rho -> 0.

    >>> small_width_mmse([0.5, 2.0])
    array([0.75, 1.  ])
    """
    t = np.asarray(t, dtype=float)
    return np.asarray(np.where(t < 1, t * (2 - t), 1.0))


def shrink(x: ArrayLike, noise: float, rho: float, *, clip: bool = False) -> np.ndarray:
    r"""The eigenvalue map of the denoiser, :math:`x - 2\Delta\,\mathrm{Re}\,g(x)`.

    With ``clip``, eigenvalues are first moved into [smallest edge, largest edge]: beyond the outer edges the map has
    slope one, so that an outlier would never be shrunk.

    Source: O. Ledoit and S. Peche (2011); J. Bun et al. (2016).  Status: exact as d -> infinity.
    """
    x, noise = np.asarray(x, dtype=float), max(nonnegative("noise", noise), NO_NOISE)
    if clip:
        ends = _ends(noise, rho)
        x = np.clip(x, ends[0], ends[-1])
    if np.isinf(rho):
        return np.asarray(x - 2 * noise * stieltjes(x, noise, rho).real)
    return denoised(np.atleast_1d(x), noise, rho).reshape(x.shape)


def rie(R: ArrayLike, noise: float, rho: float, *, clip: str = "none") -> np.ndarray:
    r"""Rotationally invariant estimator: the posterior mean of S given R = S + sqrt(noise) GOE.

    R = U diag(x) U^T is mapped to U diag(x - 2 Delta Re g(x)) U^T; a scalar or a vector is taken as eigenvalues.

    Parameters
    ----------
    R : symmetric matrix (d, d), or eigenvalues.
    noise, rho : Delta and the width of the prior.
    clip : ``"edges"`` moves eigenvalues into [smallest edge, largest edge] first, ``"none"`` does not.

    Source: O. Ledoit and S. Peche (2011); J. Bun et al. (2016).  Status: exact as d -> infinity.

    >>> round(float(rie(1.0, noise=0.6, rho=0.5)), 6)
    0.518085
    """
    return rotation_invariant(R, noise, rho, clip, shrink, symmetric=True)
