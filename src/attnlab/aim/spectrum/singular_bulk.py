r"""The singular values of an untied attention matrix in noise, in closed form with p = |m|^2 as the variable.

==========  ============================================================================================
symbol      meaning
==========  ============================================================================================
mu          symmetrised law of the singular values of R = Theta + sqrt(Delta) Z/sqrt(d): mass 1/2 at each sign
m           1/G, G the Stieltjes transform of mu;  x = m + Delta/m + m/(m^2 - c)
c           1 / rho
p           |m|^2 inside a bulk; x grows with p
p0, p1      p at x = 0, and the other root of p^2 + (c - Delta - 1) p - c Delta
w           m^2 at the ends of the bulks: roots of w^3 - (2c + 1 + Delta) w^2 + (c^2 - c + 2 Delta c) w - Delta c^2
==========  ============================================================================================

    Re(m)^2 = (p + c)(p - p0)(p - p1) / (4c (p - Delta)),    Im(m)^2 = (w3 - p)(p - w1)(p - w2) / (4c (p - Delta)),
    x = 2 Re(m) (p^2 + c Delta) / (p (p + c)),    mu = |Im m| / (pi p),    denoised x: 2 Re(m) (p - Delta)/(p + c)

One bulk is p0 < p < w3. With a gap (rho < 1 and little noise) the central bulk is p0 < p < w1, with mass 1 - rho, and
the outer ones w2 < p < w3. Derived here; status: exact as d -> infinity.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from attnlab.aim.spectrum.eigenvalue_bulk import Quadrature


class Ends(NamedTuple):
    """p0 and the w of one noise level; w1 and w2 are NaN without a gap."""

    p0: float
    width: float  # w1 - p0, without the cancellation of the difference
    w2: float
    w3: float

    @property
    def gap(self) -> bool:
        """Whether the bulk at zero is separate."""
        return not np.isnan(self.w2)

    @property
    def p(self) -> list[float]:
        """p at the ends of the bulks on the positive side, sorted."""
        return [self.p0 + self.width, self.w2, self.w3] if self.gap else [self.w3]


@functools.lru_cache(maxsize=4096)  # the same noise levels are used many times
def ends(noise: float, rho: float) -> Ends:
    """Where the bulks end, in p."""
    c = 1 / rho
    b = c - noise - 1
    root = math.sqrt(b * b + 4 * c * noise)
    # each form where it does not cancel
    p0 = 2 * c * noise / (b + root) if b >= 0 else (root - b) / 2
    w3 = _outer(noise, c)
    if not _has_gap(noise, c):
        return Ends(p0, np.nan, np.nan, w3)
    width = _central_width(noise, c, p0)
    return Ends(p0, width, noise * c**2 / ((p0 + width) * w3), w3)


def _outer(noise: float, c: float) -> float:
    """The largest w: sigma(m) = 1 by Newton's method on sigma^(-1/2), monotone from a start where sigma >= 1."""
    theta = c**0.5
    m = max(noise**0.5, theta + 0.5**0.5)
    for _ in range(80):
        sigma = noise / m**2 + 0.5 / (m - theta) ** 2 + 0.5 / (m + theta) ** 2
        slope = noise / m**3 + 0.5 / (m - theta) ** 3 + 0.5 / (m + theta) ** 3
        step = (sigma - sigma**1.5) / slope
        m -= step
        if abs(step) <= 4e-15 * m:
            break
    return float(m * m)


def _has_gap(noise: float, c: float) -> bool:
    """Whether min over 0 < w < c of Delta/w + (w + c)/(w - c)^2 is below 1; the minimum by bisection of its slope."""
    if c <= 1:
        return False
    low, high = -350.0, 0.0  # log(w/c)
    for _ in range(60):
        middle = (low + high) / 2
        w = math.exp(middle)
        # (c - w)^3 Delta > w^2 (w + 3c) to the left of the minimum, in units of c
        low, high = (middle, high) if (1 - w) ** 3 * noise > w**2 * (w + 3) else (low, middle)
    w = math.exp((low + high) / 2) * c
    return noise / w + (w + c) / (w - c) ** 2 < 1


def _central_width(noise: float, c: float, p0: float) -> float:
    """w1 - p0: the smallest positive root of the cubic shifted to p0, by Newton's method from 0."""
    trace = 2 * c + 1 + noise
    f0, f1, f2 = -4 * c * p0**2 / (p0 + c), 3 * p0**2 - 2 * trace * p0 + c**2 - c + 2 * noise * c, 3 * p0 - trace
    y = 0.0
    for _ in range(400):
        step = (((y + f2) * y + f1) * y + f0) / ((3 * y + 2 * f2) * y + f1)
        y -= step
        if abs(step) <= 2e-16 * abs(y):
            break
    return y


def singular_quadrature(noise: np.ndarray, rho: float, nodes: int) -> Quadrature:
    """Nodes on the positive half line for a batch of noise values, with weights 2 dx: even functions over both
    signs.
    """
    rows = [_row(float(delta), rho, nodes) for delta in noise]
    width = max(len(row[0]) for row in rows)
    # Rows with and without a gap differ in length; ones keep every integrand finite where the weight is 0.
    padded = [[np.pad(column, (0, width - len(column)), constant_values=1.0) for column in row] for row in rows]
    x, weights, density, denoised = (np.array(column) for column in zip(*padded, strict=True))
    for row, values in zip(rows, weights, strict=True):
        values[len(row[0]) :] = 0.0
    return Quadrature(x, weights, density, denoised)


def _row(noise: float, rho: float, nodes: int) -> list[np.ndarray]:
    c, e = 1 / rho, ends(noise, rho)
    phi = (np.arange(nodes) + 0.5) * np.pi / nodes
    if not e.gap:
        p, above, below, arc = _log_cosine(e.p0, e.w3, phi)
        others = (p - (2 * c + 1 + noise - e.w3)) * p + noise * c**2 / e.w3  # (p - w1)(p - w2), complex pair included
        return _columns(noise, c, e, p, above, below * others, arc)
    w1 = e.p0 + e.width
    rise = e.width * np.sin(phi / 2) ** 2
    p, arc = e.p0 + rise, e.width * np.sin(phi) / 2 * np.pi / nodes
    central = _columns(noise, c, e, p, rise, (e.w3 - p) * (e.width * np.cos(phi / 2) ** 2) * (e.w2 - p), arc)
    p, above, below, arc = _log_cosine(e.w2, e.w3, phi)
    outer = _columns(noise, c, e, p, p - e.p0, below * (p - w1) * above, arc)
    return [np.concatenate(both) for both in zip(central, outer, strict=True)]


def _log_cosine(low: float, high: float, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """log p = centre - half cos(phi): p, its distances to both ends with all their digits, and dp."""
    half = np.log(high / low) / 2
    p = low * np.exp(2 * half * np.sin(phi / 2) ** 2)
    above, below = low * np.expm1(2 * half * np.sin(phi / 2) ** 2), -high * np.expm1(-2 * half * np.cos(phi / 2) ** 2)
    return p, above, below, p * half * np.sin(phi) * np.pi / len(phi)


def _columns(
    noise: float, c: float, e: Ends, p: np.ndarray, above_p0: np.ndarray, product: np.ndarray, arc: np.ndarray
) -> list[np.ndarray]:
    """x, 2 dx, mu and the denoised x, from p - p0 and (w3 - p)(p - w1)(p - w2)."""
    p1 = -c * noise / e.p0
    beyond = e.p0 / (e.p0 + c) + above_p0  # p - Delta
    u = np.sqrt((p + c) * above_p0 * (p - p1) / (4 * c * beyond))
    v = np.sqrt(np.maximum(product, 0.0) / (4 * c * beyond))
    x = 2 * u * (p**2 + c * noise) / (p * (p + c))
    slope = (1 / (p + c) + 1 / above_p0 + 1 / (p - p1) - 1 / beyond) / 2
    slope += 2 * p / (p**2 + c * noise) - 1 / p - 1 / (p + c)
    return [x, 2 * x * slope * arc, v / (np.pi * p), 2 * u * beyond / (p + c)]
