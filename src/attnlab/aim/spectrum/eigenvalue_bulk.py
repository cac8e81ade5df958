r"""The bulk(s) of Marchenko-Pastur + semicircle in closed form, with the denoised eigenvalue as the variable.

==========  ============================================================================================
symbol      meaning
==========  ============================================================================================
m           1/g, g the Stieltjes transform; x = m + sqrt(rho) m / (m - theta) + Delta / m
theta       1 / sqrt(rho)
s(m)        1/(m - theta)^2 + Delta/m^2, so that dx/dm = 1 - s: the ends of the bulks are where s = 1
v           |m|^2 - Delta: the denoised eigenvalue x - 2 Delta Re g in units of the prior mean sqrt(rho)
==========  ============================================================================================

Inside a bulk m is complex, and x is real where 1/|m - theta|^2 + Delta/|m|^2 = 1, or v = |m/(m - theta)|^2. Hence
Re m = (v + Delta + theta^2 - 1 - Delta/v) / (2 theta), and

    x(v) = sqrt(rho) (v + Delta - Delta/v) + Delta / (sqrt(rho) (v + Delta)),     x - 2 Delta Re g = sqrt(rho) v,
    mu   = sqrt((v - v1) (v2 - v) (v^2 - b v + c)) / (2 pi theta v (v + Delta))

on the bulk v1 < v < v2: under the root stands 4 theta^2 v^2 (Im m)^2, whose other two zeros have the sum
b = 2 (theta^2 + 1 - Delta) - v1 - v2 and the product c = Delta^2 / (v1 v2).  Derived here; status: exact as d ->
infinity.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

TINY = 1e-60  # noise that moves no end by more than 1e-29, and whose powers do not underflow


@dataclass(frozen=True)
class Quadrature:
    """Nodes and weights dx of the bulk(s) (zero-padded where a row has one bulk), with what is known on them."""

    x: np.ndarray
    weights: np.ndarray
    density: np.ndarray
    denoised: np.ndarray

    def integrate(self, values: np.ndarray) -> np.ndarray:
        """Integral dx of ``values`` over the bulk(s)."""
        return np.asarray((self.weights * values).sum(axis=-1))


def bulk_quadrature(noise: np.ndarray, rho: float, nodes: int) -> Quadrature:
    """log v = centre + half-width cos(phi) on each bulk, midpoint rule in phi, for a batch of noise values.

    In log v the poles at v = 0 and v = -Delta are far away: 64 nodes are exact to rounding unless two bulks almost
    touch.
    """
    theta, mean = rho**-0.5, rho**0.5
    v1, v2, delta = *_ends(noise, rho), noise[:, None, None]
    above, below, arc = _angles(nodes)
    half = np.log(v2 / v1) / 2
    up, down = np.expm1(half * above), np.expm1(half * below)  # the distances to the ends keep their digits
    v = v1 + v1 * up
    norm = v + delta  # |m|^2
    others = (v - (2 * (theta**2 + 1 - delta) - v1 - v2)) * v + delta**2 / (v1 * v2)
    square = np.maximum(-v1 * v2 * up * down * others, 0.0)
    x = mean * (norm - delta / v) + theta * delta / norm
    weights = (mean * (v + delta / v) - theta * delta * v / norm**2) * (half * arc)
    density = np.sqrt(square) / (2 * np.pi * theta * v * norm)
    return Quadrature(*(column.reshape(len(noise), -1) for column in (x, weights, density, mean * v)))


@functools.lru_cache(maxsize=8)
def _angles(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """1 + cos, cos - 1 and sin d(phi) at the midpoints."""
    phi = (np.arange(nodes) + 0.5) * np.pi / nodes
    return 2 * np.cos(phi / 2) ** 2, -2 * np.sin(phi / 2) ** 2, np.sin(phi) * np.pi / nodes


def _ends(noise: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """v at the lower and the upper end of each bulk, (batch, 1 or 2, 1); a bulk that is absent has length zero."""
    points = [turning_points(delta, rho) for delta in noise.tolist()]
    width = max(map(len, points))
    m = np.array([found + found[:1] * (width - len(found)) for found in points])
    v = ((m / (m - rho**-0.5)) ** 2)[..., None]
    return v[:, ::2], v[:, 1::2]


def bulk_ends(noise: float, rho: float) -> list[float]:
    """The 2 or 4 ends of the bulks, sorted."""
    noise = max(noise, TINY)
    return [m + rho**0.5 * m / (m - rho**-0.5) + noise / m for m in turning_points(noise, rho)]


@functools.lru_cache(maxsize=64)  # shrinking and its error use the same ends
def turning_points(noise: float, rho: float) -> tuple[float, ...]:
    """m at the ends of the bulks, sorted.

    The outer ends come from the branches m < 0 and m > theta. Between 0 and theta, s has one minimum; where it is
    below 1 the spectrum has a gap.
    """
    noise = max(noise, TINY)
    theta, root, third = rho**-0.5, noise**0.5, noise ** (1 / 3)
    # At each start one of the two terms of s is 1, so that s >= 1.
    starts = [-max(root, 1 - theta), max(root, 1 + theta)]
    # The minimum of s: m/(theta - m) = Delta^(1/3).
    if _s(theta * third / (1 + third), noise, theta) < 1:
        starts[1:1] = [root, theta - 1]
    return tuple(_turning_point(m, noise, theta) for m in starts)


def _s(m: float, noise: float, theta: float) -> float:
    return 1 / (m - theta) ** 2 + noise / m**2


def _turning_point(m: float, noise: float, theta: float) -> float:
    """s(m) = 1 by Newton's method on s^(-1/2), concave and nearly straight: monotone from a start where s >= 1."""
    for _ in range(60):
        s = _s(m, noise, theta)
        step = (s - s**1.5) / (1 / (m - theta) ** 3 + noise / m**3)
        m -= step
        if abs(step) <= 4e-15 * abs(m):
            break
    return m
