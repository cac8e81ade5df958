r"""How much hardmax outputs tell: s(tau) = V E|g|^2, a function of tau = V/total alone.

s / sqrt(tau), s / tau for the legacy channel, is smooth in sqrt(tau) and is sampled at Chebyshev nodes once: by
quadrature for two tokens, in a table that ships with the package for more
(``python -m attnlab.aim.channels.hardmax_table`` makes it).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
from scipy.interpolate import BarycentricInterpolator
from scipy.special import log_ndtr, ndtr, xlogy

from attnlab.aim.channels.channel import NotSolved
from attnlab.common.gaussian import (
    bivariate_normal_cdf,
    bivariate_normal_pdf,
    gauss_hermite,
    gauss_legendre,
    normal_pdf,
)

REACH = 9.0  # Gaussian tails beyond this many standard deviations are below 1e-18
CORRELATIONS = (1 / 3, -1 / 3)
PAIR_NODES = 48
TABLE = "hardmax_table.json"


class ScaleFunction:
    """s(tau), a polynomial in sqrt(tau) through the nodes, times tau^(order/2), its behaviour at 0."""

    def __init__(self, nodes: np.ndarray, values: Any, errors: Any = 0.0, order: int = 1) -> None:
        # SciPy draws an order of the nodes; a fixed one gives the same digits in every process.
        self.smooth = BarycentricInterpolator(nodes, values, rng=0)
        self.nodes, self.errors, self.order = nodes, np.broadcast_to(errors, nodes.shape), order

    def __call__(self, tau: Any) -> np.ndarray:
        """s at every tau in [0, 1]."""
        root = np.sqrt(np.asarray(tau, dtype=float))
        return np.asarray(root**self.order * self.smooth(root))

    def error(self, tau: Any) -> np.ndarray:
        """Standard error of s, from those of the nodes next to sqrt(tau)."""
        root = np.sqrt(np.asarray(tau, dtype=float))
        return np.asarray(root**self.order * np.interp(root, self.nodes, self.errors))


def chebyshev(nodes: int) -> np.ndarray:
    """Chebyshev nodes of (0, 1), for sqrt(tau)."""
    return np.asarray((1 - np.cos((np.arange(nodes) + 0.5) * np.pi / nodes)) / 2)


@functools.lru_cache(maxsize=32)
def scale_function(keys: int, tied: bool = True, legacy: bool = False) -> ScaleFunction:
    """s of a whole tied sequence, or of one untied row.  Status: exact to 1e-9 (2 keys), tabulated (more)."""
    if keys == 2:
        roots = chebyshev(PAIR_NODES)
        exact = pair_scale_function(legacy) if tied else row_of_two
        order = 2 if legacy else 1
        return ScaleFunction(roots, [exact(float(t) ** 2) / t**order for t in roots], order=order)
    entry = _table()["tied" if tied else "row"].get(str(keys))
    if entry is None:
        name = f"{'tied' if tied else 'row'}-{keys}"
        raise NotSolved(
            f"hardmax is tabulated for {', '.join(_table()['tied'])} tokens, got tokens={keys}; "
            f"'python -m attnlab.aim.channels.hardmax_table --only {name}' makes the missing entry"
        )
    return ScaleFunction(chebyshev(len(entry["values"])), entry["values"], entry["errors"])


@functools.lru_cache(maxsize=1)
def _table() -> Any:
    return json.loads(resources.files(__package__).joinpath(TABLE).read_text())


def row_of_two(tau: float) -> float:
    r"""One untied row with two keys: E[phi^2/(Phi(kappa) Phi(-kappa))], kappa ~ N(0, 1/tau - 1)."""
    x, w = gauss_legendre(128)
    x, w = 1.5 * REACH * (2 * x - 1), 3 * REACH * w
    spread = np.sqrt(max(1 / tau - 1, 1e-12))
    if spread < 1:  # the law is narrower than the function
        x, w = gauss_hermite(64)
        x = spread * x
    else:
        w = w * normal_pdf(x / spread) / spread
    # In logarithms: far out both phi^2 and Phi(-kappa) underflow, and their ratio is of order kappa phi.
    return float(w @ np.exp(-(x**2) - np.log(2 * np.pi) - log_ndtr(x) - log_ndtr(-x)))


def pair_scale_function(legacy: bool) -> Callable[[float], float]:
    r"""Two tied tokens: s = 4 sum_{r = ±1/3} E[(a_1^2 + r a_1 a_2)/P], k ~ N(0, c [[1, r], [r, 1]]), c = 1/tau - 1.

    a_1 is the derivative of P = Phi_2(k_1, k_2; r), or the bivariate density (legacy). For large c the integrand
    lives where one of the k is of order one; beyond k_2 = 9 it depends on k_1 only and the rest is a Gaussian tail.
    """
    x, w = gauss_legendre(96)
    x, w = REACH * (2 * x - 1), 2 * REACH * w
    k1, k2 = x[:, None], x[None, :]
    grids = {r: pair_information(k1, k2, r, legacy) for r in CORRELATIONS}
    # k_2 -> infinity: P = Phi(k_1), a_1 = phi(k_1) and a_2 = 0. The bivariate density of the legacy channel vanishes
    # there.
    tail = {r: 0.0 if legacy else normal_pdf(x) ** 2 / ndtr(x) for r in CORRELATIONS}
    nodes, weights = gauss_hermite(64)

    def wide(c: float) -> float:
        total = 0.0
        for r in CORRELATIONS:
            law, above = _law_and_tail(x, c, r)
            total += float(w @ (law * grids[r]) @ w + w @ (above * tail[r]))
        # (2/3) [3 a_1^2 + 3 a_2^2 + 6 r a_1 a_2] / P, in which both tokens count alike.
        return 4 * total

    def narrow(c: float) -> float:
        total = 0.0
        for r in CORRELATIONS:
            first, second = nodes[:, None], r * nodes[:, None] + np.sqrt(1 - r**2) * nodes[None, :]
            values = pair_information(np.sqrt(c) * first, np.sqrt(c) * second, r, legacy)
            total += float(weights @ values @ weights)
        return 4 * total

    # Below c = 1.5 the law of k is narrow, and the nodes follow it; above, the fixed grid follows the integrand.
    return lambda tau: wide(1 / tau - 1) if tau < 0.4 else narrow(1 / tau - 1)


def pair_information(k1: np.ndarray, k2: np.ndarray, r: float, legacy: bool) -> np.ndarray:
    """(a_1^2 + r a_1 a_2) / P, zero where P is below rounding.  Status: exact."""
    P = bivariate_normal_cdf(k1, k2, r)
    if legacy:
        a1 = a2 = bivariate_normal_pdf(k1, k2, r)
    else:
        root = np.sqrt(1 - r**2)
        a1, a2 = normal_pdf(k1) * ndtr((k2 - r * k1) / root), normal_pdf(k2) * ndtr((k1 - r * k2) / root)
    # Below, P has lost its digits: it is a difference of numbers of order one.
    safe = P > 1e-13
    return np.asarray(np.where(safe, (a1**2 + r * a1 * a2) / np.where(safe, P, 1.0), 0.0))


def pair_entropy(c: float) -> float:
    """2 sum_r E[P log P] of two tied tokens, c = q/V."""
    return 2 * sum(_mean_entropy(c, r) for r in CORRELATIONS)


def _mean_entropy(c: float, r: float) -> float:
    """E[P log P], P = Phi_2(k; r), k ~ N(0, c [[1, r], [r, 1]]); split as in the strength."""
    if c < 1.5:
        x, w = gauss_hermite(64)
        P = bivariate_normal_cdf(np.sqrt(c) * x[:, None], np.sqrt(c) * (r * x[:, None] + np.sqrt(1 - r**2) * x), r)
        return float(w @ xlogy(P, P) @ w)
    x, w = gauss_legendre(96)
    x, w = REACH * (2 * x - 1), 2 * REACH * w
    P = bivariate_normal_cdf(x[:, None], x[None, :], r)
    law, above = _law_and_tail(x, c, r)
    # Twice, k_1 or k_2 beyond the grid; where both are, P = 1 and P log P = 0.
    return float(w @ (law * xlogy(P, P)) @ w + 2 * (w @ (above * xlogy(ndtr(x), ndtr(x)))))


def _law_and_tail(x: np.ndarray, c: float, r: float) -> tuple[np.ndarray, np.ndarray]:
    """Density of k on the grid, and of k_1 with k_2 beyond the grid."""
    law = bivariate_normal_pdf(x[:, None] / np.sqrt(c), x[None, :] / np.sqrt(c), r) / c
    above = ndtr(-(REACH - r * x) / np.sqrt(c * (1 - r**2))) * normal_pdf(x / np.sqrt(c)) / np.sqrt(c)
    return law, above
