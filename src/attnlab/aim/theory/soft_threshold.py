r"""Spectral functions of the soft threshold f(x) = (x - eps)_+ on the noisy spectrum: what trained weights look like.

==========  =========================================================================================
symbol      meaning
==========  =========================================================================================
delta, eps  noise sqrt(Delta) of the effective observation S_0 + delta GOE, and threshold
mu, xi      its spectral law, and the Bayes-optimal shrinkage (:mod:`attnlab.aim.spectrum`)
J, O        int f^2 mu, int f xi mu: self-overlap and overlap with the truth
df          delta^-2 int f (x - xi) mu = dJ / d(delta^2): degrees of freedom
MSE_1       J - 2 O + Q_0 = F(delta^2) + int (f - xi)^2 mu
==========  =========================================================================================

Source: arXiv:2509.24914 (form); single-integral forms derived here.  Status: exact as d -> infinity.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from attnlab.aim.spectrum import tied
from attnlab.common.gaussian import gauss_legendre

NODES = 400  # next to the merging of two bulks 160 leave 2e-7 in df and 1.5e-5 in the slope of J


class Thresholded(NamedTuple):
    """Integrals of the thresholded spectrum, per dimension."""

    J: float
    O: float
    df: float
    rank: float
    trace: float
    error: float


def thresholded(delta: float, eps: float, rho: float, prior: ModuleType) -> Thresholded:
    """All of them, for eps >= 0."""
    x, weights, xi = _above(delta, eps, rho, prior)
    f, bayes = x - eps, float(prior.denoising_mmse(delta**2, rho))
    J, O, moved = (float(weights @ values) for values in (f**2, f * xi, f * (x - xi)))
    # int xi^2 mu over the part of the spectrum that is set to zero: the whole less what is above
    below = max(prior.second_moment(rho) - bayes - float(weights @ xi**2), 0.0)
    error = bayes + float(weights @ (f - xi) ** 2) + below
    return Thresholded(J, O, moved / delta**2, float(weights.sum()), float(weights @ f), error)


def degrees_of_freedom(delta: float, eps: float, rho: float, prior: ModuleType) -> float:
    """df alone, which a search for eps needs many times."""
    x, weights, xi = _above(delta, eps, rho, prior)
    return float(weights @ ((x - eps) * (x - xi))) / delta**2


def _above(delta: float, eps: float, rho: float, prior: ModuleType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes x > eps with weights mu dx and xi there: Gauss-Legendre in s on each bulk, with the square root of the
    upper end (and of a lower end above eps) taken out, x = high - (high - low) s^2.
    """
    parts = []
    for low, high in _bulks(delta, rho, prior):
        if high <= eps:
            continue
        cut = max(low, eps)
        s, w = gauss_legendre(NODES)
        if cut == low:  # both ends are square roots
            x, dx = low + (high - low) * np.sin(np.pi * s / 2) ** 2, (high - low) * np.pi / 2 * np.sin(np.pi * s) * w
        else:
            x, dx = high - (high - cut) * s**2, 2 * (high - cut) * s * w
        parts.append((x, dx))
    if not parts:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    x, dx = (np.concatenate(column) for column in zip(*parts, strict=True))
    G = prior.stieltjes(x, delta**2, rho)
    sides = 1 if prior is tied else 2
    return x, sides * dx * np.maximum(G.imag, 0.0) / np.pi, x - 2 * delta**2 * G.real


def _bulks(delta: float, rho: float, prior: ModuleType) -> list[tuple[float, float]]:
    """Intervals of the spectrum; of the untied one the positive half."""
    ends = prior.edges(delta**2, rho).tolist()
    if prior is not tied:
        ends = [0.0, *ends]
    return list(zip(ends[::2], ends[1::2], strict=True))
