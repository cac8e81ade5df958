r"""Solving the cubic of Marchenko-Pastur + semicircle: the physical root, and the ends of the bulks.

==========  ============================================================================================
symbol      meaning
==========  ============================================================================================
m           1/g, g the Stieltjes transform; x = m + sqrt(rho) m / (m - theta) + Delta / m
theta       1 / sqrt(rho)
s(m)        1/(m - theta)^2 + Delta/m^2, so that dx/dm = 1 - s: the ends of the bulks are where s = 1
==========  ============================================================================================

Multiplied out, m^3 - (x + theta - sqrt(rho)) m^2 + (Delta + theta x) m - theta Delta = 0.
"""

from __future__ import annotations

import numpy as np


def inverse_transform(x: np.ndarray, noise: np.ndarray, rho: float) -> np.ndarray:
    """m at every x: Im m < 0 in the bulk (then Im g > 0), real with dx/dm > 0 outside.

    Closed form (Cardano) in real arithmetic, then one Newton step against the rounding of the closed form.
    """
    theta, mean = rho**-0.5, rho**0.5
    a, b, c = mean - theta - x, noise + theta * x, -theta * noise
    shift = a / 3
    p, q = b - a * shift, (2 * shift * shift - b) * shift + c
    discriminant = q * q / 4 + p * p * p / 27
    # t = m + a/3 solves t^3 + p t + q = 0: one real root u + v and the pair -(u + v)/2 ± i sqrt(3)/2 (u - v).
    u = np.cbrt(-q / 2 - np.copysign(np.sqrt(np.maximum(discriminant, 0.0)), q))
    v = np.divide(-p, 3 * u, out=np.zeros_like(u), where=u != 0)
    m = -(u + v) / 2 - shift - 1j * (np.sqrt(0.75) * np.abs(u - v))
    outside = discriminant <= 0
    if outside.any():
        p, q, shift, noise = (k[outside] for k in np.broadcast_arrays(p, q, shift, noise))
        m[outside] = _real_root(p, q, shift, noise, theta)
    slope, size = (3 * m + 2 * a) * m + b, np.abs(m)
    value = ((m + a) * m + b) * m + c
    # At an edge two roots merge: value and slope are rounding errors, and the closed form is left as it is.
    sharp = np.abs(slope) > 1e-6 * ((3 * size + 2 * np.abs(a)) * size + np.abs(b))
    return np.asarray(m - np.divide(value, slope, out=np.zeros_like(m), where=sharp))


def _real_root(p: np.ndarray, q: np.ndarray, shift: np.ndarray, noise: np.ndarray, theta: float) -> np.ndarray:
    """Three real roots by the cosine form; the physical one has the largest dx/dm, the only positive one."""
    radius = np.sqrt(np.maximum(-p / 3, 0.0))
    cosine = np.divide(-q / 2, radius**3, out=np.ones_like(q), where=radius > 0)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0)) / 3
    roots = 2 * radius * np.cos(angle - 2 * np.pi / 3 * np.arange(3)[:, None]) - shift
    with np.errstate(divide="ignore"):
        s = 1 / (roots - theta) ** 2 + noise / roots**2
    return np.asarray(np.take_along_axis(roots, s.argmin(axis=0)[None], axis=0)[0])


def bulk_ends(noise: float, rho: float) -> list[float]:
    """The 2 or 4 ends of the bulks, sorted.

    The outer ends come from the branches m < 0 and m > theta. Between 0 and theta, s has one minimum; where it is
    below 1 the spectrum has a gap.
    """
    theta, root, third = rho**-0.5, noise**0.5, noise ** (1 / 3)
    starts = [-max(root, 1 - theta), max(root, 1 + theta)]
    if _s(theta * third / (1 + third), noise, theta) < 1:
        starts += [root, theta - 1]
    points = [_turning_point(m, noise, theta) for m in starts]
    return sorted(m + rho**0.5 * m / (m - theta) + noise / m for m in points)


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
