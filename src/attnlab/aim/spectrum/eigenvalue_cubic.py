r"""Solving the cubic of Marchenko-Pastur + semicircle for given eigenvalues.

==========  ============================================================================================
symbol      meaning
==========  ============================================================================================
m           1/g, g the Stieltjes transform; x = m + sqrt(rho) m / (m - theta) + Delta / m
theta       1 / sqrt(rho)
t           the real root beside a complex pair m, conj m: t |m|^2 = theta Delta
==========  ============================================================================================

Multiplied out, m^3 + a m^2 + b m + c = 0 with a = sqrt(rho) - theta - x, b = Delta + theta x, c = -theta Delta.
Closed form (Cardano), then one Newton step against the rounding of the closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cubic:
    """m^3 + a m^2 + b m + c and, for w = m + a/3, its depressed form w^3 + p w + q."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    p: np.ndarray
    q: np.ndarray
    discriminant: np.ndarray

    @classmethod
    def at(cls, x: np.ndarray, noise: np.ndarray | float, rho: float) -> Cubic:
        """The cubic at every eigenvalue x."""
        theta, mean = rho**-0.5, rho**0.5
        a, b, c = mean - theta - x, noise + theta * x, -theta * noise
        shift = a / 3
        p, q = b - a * shift, (2 * shift * shift - b) * shift + c
        return cls(a, b, np.asarray(c), p, q, q * q / 4 + p * p * p / 27)

    def cardano(self) -> tuple[np.ndarray, np.ndarray]:
        """u, v: one root is u + v - a/3, the pair -(u + v)/2 - a/3 ± i sqrt(3)/2 (u - v) where it is complex."""
        # The sign for which the two terms add: the other cancels digits. Then v from u v = -p / 3.
        u = np.cbrt(-self.q / 2 - np.copysign(np.sqrt(np.maximum(self.discriminant, 0.0)), self.q))
        return u, np.divide(-self.p, 3 * u, out=np.zeros_like(u), where=u != 0)

    def polish(self, m: np.ndarray) -> np.ndarray:
        """One Newton step, unless value and slope are rounding errors because two roots merge."""
        slope, size = (3 * m + 2 * self.a) * m + self.b, np.abs(m)
        value = ((m + self.a) * m + self.b) * m + self.c
        sharp = np.abs(slope) > 1e-6 * ((3 * size + 2 * np.abs(self.a)) * size + np.abs(self.b))
        return np.asarray(m - np.divide(value, slope, out=np.zeros_like(m), where=sharp))


def inverse_transform(x: np.ndarray, noise: np.ndarray, rho: float) -> np.ndarray:
    """m at every x: Im m < 0 in the bulk (then Im g > 0), real with dx/dm > 0 outside; x and noise of one shape."""
    cubic = Cubic.at(x, noise, rho)
    u, v = cubic.cardano()
    m = cubic.polish(-(u + v) / 2 - cubic.a / 3 - 1j * (np.sqrt(0.75) * np.abs(u - v)))
    outside = cubic.discriminant <= 0
    if outside.any():
        m[outside] = _outside(x[outside], noise[outside], rho)
    return m


def denoised(x: np.ndarray, noise: float, rho: float) -> np.ndarray:
    """x - 2 Delta Re g: Delta (1/t - sqrt(rho)) in the bulk, where all is real, and x - 2 Delta / m outside."""
    cubic = Cubic.at(x, noise, rho)
    u, v = cubic.cardano()
    values = noise / cubic.polish(u + v - cubic.a / 3) - noise * rho**0.5
    # at an end of the bulk the sign of the discriminant is a rounding error, but both forms agree there
    outside = cubic.discriminant < 0
    if outside.any():
        values[outside] = x[outside] - 2 * noise / _outside(x[outside], noise, rho)
    return np.asarray(values)


def _outside(x: np.ndarray, noise: np.ndarray | float, rho: float) -> np.ndarray:
    """Three real roots by the cosine form; the physical one has the largest dx/dm, the only positive one."""
    cubic = Cubic.at(x, noise, rho)
    radius = np.sqrt(np.maximum(-cubic.p / 3, 0.0))
    cosine = np.divide(-cubic.q / 2, radius**3, out=np.ones_like(x), where=radius > 0)
    # At an edge two roots merge and the cosine is 1, past it by rounding.
    angle = np.arccos(np.clip(cosine, -1.0, 1.0)) / 3
    roots = 2 * radius * np.cos(angle - 2 * np.pi / 3 * np.arange(3)[:, None]) - cubic.a / 3
    with np.errstate(divide="ignore"):
        # dx/dm = 1 - s
        s = 1 / (roots - rho**-0.5) ** 2 + noise / roots**2
    return cubic.polish(np.take_along_axis(roots, s.argmin(axis=0)[None], axis=0)[0])
