r"""The Gaussian expectation of two ReLUs and its Hermite expansion, shared by kernels and theory.

========  ==========================================================================================
symbol    meaning
========  ==========================================================================================
k0(rho)   E[relu(g) relu(g')] for standard Gaussians of correlation rho
c_k^2     coefficient of rho^k in k0
mu_k(t)   E[relu(t + g) He_k(g)], Hermite coefficients of a ReLU whose argument has mean t
========  ==========================================================================================
"""

from __future__ import annotations

import numpy as np
from scipy import special

from attnlab.common.arrays import ArrayLike
from attnlab.common.gaussian import normal_cdf, normal_pdf


def relu_covariance(rho: ArrayLike) -> np.ndarray:
    r""":math:`k_0(\rho) = \mathbb{E}[\mathrm{relu}(g)\,\mathrm{relu}(g')]`, the arc-cosine kernel of degree one.

    .. math:: k_0(\rho) = \frac{\sqrt{1-\rho^2} + \rho(\pi - \arccos\rho)}{2\pi} = \sum_k c_k^2 \rho^k

    Source: Cho and Saul, NIPS 2009.  Status: exact.

    >>> float(relu_covariance(1.0))
    0.5
    """
    # Rounding puts cosines slightly outside [-1, 1], where root and arccos are NaN.
    rho = np.clip(np.asarray(rho, dtype=np.float64), -1, 1)
    return np.asarray((np.sqrt(1 - rho**2) + rho * (np.pi - np.arccos(rho))) / (2 * np.pi))


def relu_coefficients(degree: int) -> np.ndarray:
    r""":math:`c_0^2, \dots, c_{degree}^2` of :func:`relu_covariance`.

    .. math:: c_0^2 = \tfrac1{2\pi}, \quad c_1^2 = \tfrac14, \quad
              c_k^2 = \frac{He_{k-2}(0)^2}{2\pi\,k!} \ (k \ge 2 \text{ even}), \quad 0 \ (k \ge 3 \text{ odd})

    Status: exact.

    >>> [round(float(c), 6) for c in relu_coefficients(6)]
    [0.159155, 0.25, 0.079577, 0.0, 0.006631, 0.0, 0.001989]
    """
    c = np.zeros(max(degree, 2) + 1)
    c[:3] = 1 / (2 * np.pi), 0.25, 1 / (4 * np.pi)
    for k in range(2, degree - 1, 2):
        # He_k(0) = -(k - 1) He_{k-2}(0). The ratio of neighbours needs no factorial, which overflows beyond 170.
        c[k + 2] = c[k] * (k - 1) ** 2 / ((k + 2) * (k + 1))
    return c[: degree + 1]


def relu_hermite(degree: int, t: ArrayLike) -> np.ndarray:
    r""":math:`\mu_k(t) = \mathbb{E}[\mathrm{relu}(t+g)\,He_k(g)]` for k = 0..degree, along a new first axis.

    .. math:: \mu_0 = t\Phi(t) + \varphi(t), \quad \mu_1 = \Phi(t), \quad
              \mu_k = (-1)^k He_{k-2}(t)\,\varphi(t) \ (k \ge 2)

    Status: exact.
    """
    t = np.asarray(t, dtype=np.float64)
    pdf, cdf = normal_pdf(t), normal_cdf(t)
    rows = [t * cdf + pdf, cdf]
    rows += [(-1) ** k * special.eval_hermitenorm(k - 2, t) * pdf for k in range(2, degree + 1)]
    return np.stack(rows[: degree + 1])
