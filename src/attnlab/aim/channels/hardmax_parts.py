r"""Hardmax with two untied tokens that attend to each other: what the symmetric and antisymmetric parts learn.

D_1 = h_11 - h_12 and D_2 = h_21 - h_22 have the residual covariance [[v, w], [w, v]], v = (3 V_s + V_a)/2, w = (V_a -
V_s)/2. With G = grad_D log Z, Z = Phi_2, and G_± = (G_1 ± G_2)/sqrt 2:  |g_s|^2 = G_+^2 + 2 G_-^2,  |g_a|^2 = G_+^2.

Source: derived here.  Status: quadrature.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from attnlab.common.gaussian import bivariate_normal_cdf, normal_pdf

REACH = 7.5  # standard deviations of the estimate that are integrated over
STEP = 0.12  # of t in D = c sinh(t): half of it changes values by 1e-12


def strength_parts(Vs: float, Va: float, known_s: float, known_a: float) -> tuple[float, float]:
    """E|g_s|^2 and E|g_a|^2; the estimate of D_+ has variance known_s + known_a, that of D_- 2 known_s."""
    # h_11 and h_22 are symmetric, of variance V_s; h_12 and h_21 have a common part of variance V_s/2 and opposite
    # parts of V_a/2.
    v, w = (3 * Vs + Va) / 2, (Va - Vs) / 2
    plus, minus = max(known_s + known_a, 1e-24), max(2 * known_s, 1e-24)  # variances of (D_1 ± D_2)/sqrt 2
    D, cells = _line(np.sqrt((plus + minus) / 2), np.sqrt(min(Vs + Va, 2 * Vs)))
    D1, D2 = D[:, None], D[None, :]
    law = np.exp(-((D1 + D2) ** 2) / (4 * plus) - (D1 - D2) ** 2 / (4 * minus)) * cells[:, None] * cells
    # Also supplies the constants of the density and of the cells.
    law /= law.sum()
    symmetric = antisymmetric = 0.0
    for sign in (1, -1):  # of s_2, with s_1 = 1; the other two patterns are mirror images
        k1, k2, r = D1 / np.sqrt(v), sign * D2 / np.sqrt(v), sign * w / v
        root = np.sqrt(1 - r**2)
        Z = np.maximum(bivariate_normal_cdf(k1, k2, r), 1e-300)
        a1 = normal_pdf(k1) * ndtr((k2 - r * k1) / root)
        a2 = sign * normal_pdf(k2) * ndtr((k1 - r * k2) / root)
        # Below, Z has lost its digits: it is a difference of numbers of order one.
        safe = Z > 1e-13
        # Z G_±^2: with G = a/(Z sqrt v), the probability Z of the outcome cancels one of the two in the square.
        even, odd = (np.where(safe, (a1 + s * a2) ** 2 / (2 * v * Z), 0.0) for s in (1, -1))
        symmetric += 2 * float((law * (even + 2 * odd)).sum())
        antisymmetric += 2 * float((law * even).sum())
    return symmetric, antisymmetric


def _line(sigma: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes D = c sinh(t) and their cells: as fine as the residual at D = 0, where the winner changes, and as wide as
    the estimate.
    """
    c = min(sigma, width)
    half = int(np.ceil(np.arcsinh(REACH * sigma / c) / STEP))
    t = STEP * np.arange(-half, half + 1)
    return c * np.sinh(t), np.cosh(t)
