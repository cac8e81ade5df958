r"""The spectrum of S + sqrt(noise) GOE, and what it says about denoising S.

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
(:mod:`attnlab.aim.cubic`): free convolution of Marchenko-Pastur and the semicircle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from attnlab.aim.cubic import bulk_ends, inverse_transform
from attnlab.common.arrays import ArrayLike
from attnlab.common.validation import finite_array, nonnegative, one_of, positive

# Beyond this noise (in units of max(1, 1/rho)) the expansion F = 1 - 1/Delta is closer than the cancelling quadrature.
LARGE_NOISE = 1e5
NODES = (200, 800, 3200)
MASS_TOLERANCE = 1e-12


def check_rho(rho: float) -> float:
    """Return the width as a positive float; infinity (the centred Gaussian prior) is allowed."""
    return float("inf") if rho == float("inf") else positive("rho", rho)


def prior_mean(rho: float) -> float:
    r"""The known part of S: :math:`\mathbb{E}S = \sqrt\rho\, I`; zero for the centred prior. Status: exact."""
    return 0.0 if np.isinf(rho) else float(np.sqrt(rho))


def second_moment(rho: float) -> float:
    r""":math:`Q_0 = \tfrac1d\mathbb{E}\,\mathrm{Tr}\,S^2 = 1 + \rho`; 1 for the centred prior. Status: exact as d ->
    infinity.
    """
    return 1.0 + prior_mean(rho) ** 2


def stieltjes(x: ArrayLike, noise: ArrayLike, rho: float) -> np.ndarray:
    r"""g(x - i0): density times pi in the imaginary part, Hilbert transform in the real part; broadcasts over x and
    noise.

    Inside the bulk it is the root of the cubic with Im g > 0, outside the real root with g' < 0.

    Source: arXiv:2506.01582; free probability.  Status: exact as d -> infinity.
    """
    rho = check_rho(rho)
    x, noise = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(noise, dtype=float))
    if np.isinf(rho):
        variance = 1 + noise
        root = np.sqrt((x**2 - 4 * variance).astype(complex))
        # On the cut z = x - i0: the root continues sqrt(z^2 - 4 v) ~ z.
        root = np.where(x**2 < 4 * variance, -1j * np.abs(root), np.sign(x) * root)
        return np.asarray((x - root) / (2 * variance))
    return np.asarray(1 / inverse_transform(np.atleast_1d(x), np.atleast_1d(noise), rho)).reshape(x.shape)


def density(x: ArrayLike, noise: ArrayLike, rho: float) -> np.ndarray:
    r"""Spectral density :math:`\mu(x)` of S + sqrt(noise) GOE; broadcasts over x and noise > 0.

    Source: arXiv:2506.01582; free probability.  Status: exact as d -> infinity.

    >>> round(float(density(1.0, noise=0.6, rho=0.5)), 6)
    0.244309
    """
    return np.asarray(np.maximum(stieltjes(x, _positive_noise(noise), rho).imag, 0.0) / np.pi)


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


@dataclass(frozen=True)
class Quadrature:
    """Nodes ``x``, weights (zero-padded where a row has one bulk) and g on them, for a batch of noise values."""

    x: np.ndarray
    weights: np.ndarray
    g: np.ndarray

    @property
    def density(self) -> np.ndarray:
        """mu at the nodes."""
        return np.asarray(np.maximum(self.g.imag, 0.0) / np.pi)

    def integrate(self, values: np.ndarray) -> np.ndarray:
        """Integral dx of ``values`` over the bulk(s)."""
        return np.asarray((self.weights * values).sum(axis=-1))


def quadrature(noise: ArrayLike, rho: float, nodes: int = NODES[0]) -> Quadrature:
    r"""x = centre + half-width cos(phi) on each bulk, midpoint rule in phi: spectral accuracy, square-root edges
    included.

    ``noise`` is a batch (one-dimensional); the mass of the density should be 1.  Status: exact as d -> infinity.
    """
    noise = np.atleast_1d(np.asarray(noise, dtype=float))
    ends = np.zeros((len(noise), 2, 2))  # a bulk that is absent has length zero
    for row, delta in zip(ends, noise.tolist(), strict=True):
        found = _ends(delta, rho)
        row.flat[: len(found)] = found
        row[len(found) // 2 :] = found[0]
    if (ends[:, 1, 0] == ends[:, 1, 1]).all():
        ends = ends[:, :1]
    half, centre = (np.diff(ends, axis=2) / 2, ends.mean(axis=2, keepdims=True))
    phi = (np.arange(nodes) + 0.5) * np.pi / nodes
    x, weights = centre + half * np.cos(phi), half * (np.sin(phi) * np.pi / nodes)
    x, weights = x.reshape(len(noise), -1), weights.reshape(len(noise), -1)
    return Quadrature(x, weights, stieltjes(x, noise[:, None], rho))


def cubed_density(noise: np.ndarray, rho: float) -> np.ndarray:
    r""":math:`\int\mu_\Delta^3` for a batch of noise values; nodes are added until the mass is 1 to 1e-12.

    Source: arXiv:2506.01582.  Status: exact as d -> infinity.
    """
    cubed = np.empty_like(noise)
    todo = np.arange(len(noise))
    for nodes in NODES:
        bulk = quadrature(noise[todo], rho, nodes)
        cubed[todo] = bulk.integrate(bulk.density**3)
        todo = todo[np.abs(bulk.integrate(bulk.density) - 1) > MASS_TOLERANCE]
        if not len(todo):
            break
    return cubed


def denoising_mmse(noise: ArrayLike, rho: float) -> np.ndarray | float:
    r"""Bayes error of denoising S from S + sqrt(noise) GOE, per dimension; broadcasts over noise in [0, inf].

    .. math:: F(\Delta) = \Delta - \tfrac{4\pi^2}{3}\,\Delta^2 \int \mu_\Delta(x)^3\,dx

    Limits: 0 at Delta = 0 (slope 2 rho - rho^2 for rho < 1, then 1), 1 at Delta = infinity, Delta / (1 + Delta) at
    rho = infinity.

    Source: arXiv:2506.01582; free probability.  Status: exact as d -> infinity.

    >>> round(denoising_mmse(0.6, rho=0.5), 8)
    0.28390214
    """
    rho = check_rho(rho)
    values = np.asarray(noise, dtype=float)
    if np.isnan(values).any() or (values < 0).any():
        raise ValueError(f"noise must be a number in [0, inf], got {noise!r}")
    error = _denoising_mmse(values.ravel(), rho).reshape(values.shape)
    return float(error) if error.ndim == 0 else error


def _denoising_mmse(noise: np.ndarray, rho: float) -> np.ndarray:
    if np.isinf(rho):
        return np.where(np.isinf(noise), 1.0, noise / np.where(np.isinf(noise), 1.0, 1 + noise))
    error = np.zeros_like(noise)
    large = noise > LARGE_NOISE * max(1.0, 1 / rho)
    error[large] = 1 - 1 / noise[large]
    ordinary = ~large & (noise > 0)
    if ordinary.any():
        delta = noise[ordinary]
        error[ordinary] = delta * (1 - 4 * np.pi**2 / 3 * delta * cubed_density(delta, rho))
    return error


def small_width_mmse(t: ArrayLike) -> np.ndarray:
    r"""F as rho -> 0 with t = rho Delta fixed: t (2 - t) below the transition t = 1, then 1 (BBP).

    Source: arXiv:2506.01582; J. Baik, G. Ben Arous, S. Peche (2005).  Status: exact in the limit rho -> 0.

    >>> small_width_mmse([0.5, 2.0])
    array([0.75, 1.  ])
    """
    t = np.asarray(t, dtype=float)
    return np.asarray(np.where(t < 1, t * (2 - t), 1.0))


def small_noise_slope(rho: float) -> float:
    r""":math:`D_\rho = \lim F(\Delta)/\Delta` = 2 rho - rho^2 for rho < 1, then 1: the dimension of rank-r matrices /
    (d^2/2).

    Source: arXiv:2506.01582.  Status: exact as d -> infinity.
    """
    rho = check_rho(rho)
    return 2 * rho - rho**2 if rho < 1 else 1.0


def shrink(x: ArrayLike, noise: float, rho: float, *, clip: bool = False) -> np.ndarray:
    r"""The eigenvalue map of the denoiser, :math:`x - 2\Delta\,\mathrm{Re}\,g(x)`.

    With ``clip``, eigenvalues are first moved into [smallest edge, largest edge]: beyond the outer edges the map has
    slope one, so that an outlier would never be shrunk.

    Source: O. Ledoit and S. Peche (2011); J. Bun et al. (2016).  Status: exact as d -> infinity.
    """
    x = np.asarray(x, dtype=float)
    if clip:
        ends = _ends(noise, rho)
        x = np.clip(x, ends[0], ends[-1])
    return np.asarray(x - 2 * noise * stieltjes(x, noise, rho).real)


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
    rho, noise = check_rho(rho), nonnegative("noise", noise)
    one_of("clip", clip, ("none", "edges"))
    R = finite_array("R", R)
    if noise == 0:
        return R
    if R.ndim < 2:
        return shrink(R, noise, rho, clip=clip == "edges")
    if R.ndim != 2 or R.shape[0] != R.shape[1]:
        raise ValueError(f"R must be a square matrix or a vector of eigenvalues, got shape {R.shape}")
    x, U = linalg.eigh(np.asarray(R, dtype=float))
    return np.asarray((U * shrink(x, noise, rho, clip=clip == "edges")) @ U.T)


def _positive_noise(noise: ArrayLike) -> np.ndarray:
    noise = np.asarray(noise, dtype=float)
    if not (np.isfinite(noise).all() and (noise > 0).all()):
        raise ValueError(f"noise must be a number in (0, inf), got {noise!r}")
    return noise
