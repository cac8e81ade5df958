"""max(z, 0), averaged over the keys or divided by its sum."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attnlab.rfa.activations.base import Activation
from attnlab.rfa.activations.plackett import plackett


@dataclass(frozen=True)
class Relu(Activation):
    """max(z, 0), averaged over the keys: the model of arXiv:2307.11353."""

    name: ClassVar[str] = "relu"
    quadrature: ClassVar[bool] = True

    def weights(self, xp: Any, S: Any) -> Any:
        """relu(S)."""
        return xp.maximum(S, 0)

    def weights_in_place(self, S: np.ndarray, zeros: np.ndarray) -> np.ndarray:
        """NumPy's maximum of two arrays is vectorised, that of an array and a number is not."""
        return np.asarray(np.maximum(S, zeros, out=S))

    def pairs(self, m: Any, s: Any, m2: Any, s2: Any, rho: Any, nodes: int) -> Any:
        """s s' times the expectation for unit deviations."""
        return s * s2 * biased_relu_pairs(m / s, m2 / s2, rho, nodes)

    def centred_pairs(self, rho: Any) -> Any:
        """k0(rho)."""
        return relu_pairs(rho)


@dataclass(frozen=True)
class ReluSum(Activation):
    """ReLU scores divided by their sum over the keys; all zero where no score is positive."""

    name: ClassVar[str] = "relu_sum"
    averaged: ClassVar[bool] = False

    def weights(self, xp: Any, S: Any) -> Any:
        """relu(S) / sum relu(S)."""
        A = xp.maximum(S, 0)
        return A / xp.maximum(A.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)


@functools.cache
def _remainder_coefficients(degree: int) -> tuple[float, ...]:
    """Polynomial q with k0(rho) = relu(rho)/2 + (1-|rho|)^{3/2} q(|rho|): the singularity at one is factored out."""
    # Chebyshev points of [0, 1]: a fit there has no large errors between them.
    r = (1 + np.cos(np.pi * (np.arange(64) + 0.5) / 64)) / 2
    # sqrt(1-r^2) - r arccos(r) in terms of the angle, free of cancellation near r = 1.
    angle = 2 * np.arcsin(np.sqrt((1 - r) / 2))
    # sin(angle) - angle cos(angle) is of order angle^3; its series where the difference would lose digits.
    small = angle < 0.02
    value = np.where(small, angle**3 / 3 - angle**5 / 30 + angle**7 / 840, np.sin(angle) - r * angle)
    fit = np.polynomial.Chebyshev.fit(r, value / (2 * np.pi * (1 - r) ** 1.5), degree, domain=[0, 1])
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


def relu_pairs(rho: Any) -> Any:
    """k0(rho): one square root and a polynomial, accurate to the working precision; JAX arrays."""
    import jax.numpy as jnp

    size = jnp.abs(rho)
    gap = jnp.maximum(1 - size, 0)
    polynomial = jnp.zeros_like(rho)
    for c in reversed(_remainder_coefficients(5 if rho.dtype == jnp.float32 else 15)):
        polynomial = polynomial * size + c
    # k0(rho) - k0(-rho) = rho / 2: one polynomial in |rho| serves both signs.
    return 0.5 * jnp.maximum(rho, 0) + gap * jnp.sqrt(gap) * polynomial


def biased_relu_pairs(a: Any, b: Any, rho: Any, nodes: int) -> Any:
    r"""E[relu(a + g) relu(b + g')], stable up to rho = 1; JAX arrays.

    .. math:: \mu_0(a)\mu_0(b) + \rho\,\Phi(a)\Phi(b)
              + \tfrac1{2\pi}\int_0^{\rho} (\rho - u)\, e^{-(a^2 - 2abu + b^2)/(2(1-u^2))}\,\frac{du}{\sqrt{1-u^2}}
    """
    from jax.scipy.stats import norm

    cdf_a, cdf_b = norm.cdf(a), norm.cdf(b)
    mean_a, mean_b = a * cdf_a + norm.pdf(a), b * cdf_b + norm.pdf(b)
    return mean_a * mean_b + rho * cdf_a * cdf_b + plackett(a, b, rho, nodes, 1)
