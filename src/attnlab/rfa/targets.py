r"""The target functions: averages over keys of polynomials of the query and one key, and their harmonic content.

A target of this class is :math:`f_*(x) = \tfrac1N \sum_i F(x_0, x_i)`. On the sphere F splits into parts of degree a in
the query and b in the key; their energies :math:`\|F_{ab}\|^2` decide variance, complexity and learning curve.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
x_0, x_i    query and keys; N keys of dimension d
b, u        planted unit vectors;  O a planted rotation
F_ab        part of F of harmonic degree a in x_0 and b in x_i;  energies[a, b] = |F_ab|^2 in L2
f_rs        coefficient tensor of the part of F of polynomial degree r in x_0 and s in x_i, symmetrised
==========  =======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from attnlab.rfa.sphere import gegenbauer, harmonic_dimension, zonal_energies

if TYPE_CHECKING:
    from attnlab.rfa.task import Task

Energies = dict[tuple[int, int], float]


@dataclass(frozen=True)
class Target:
    """One family of targets.

    Attributes
    ----------
    value : ``(task, query (n, d), keys (n, N, d)) -> y (n,)``.
    energies : ``task -> {(a, b): |F_ab|^2}``, exact for tokens uniform on the sphere; None outside the class.
    tensors : ``task -> {(r, s): |sym f_rs|_F}``, the Frobenius norms of the symmetrised coefficient tensors.
    degrees : ``task -> (alpha, beta)``, the homogeneity in the length of the query and of a key; None if there is none.
    """

    value: Callable[[Task, np.ndarray, np.ndarray], np.ndarray]
    energies: Callable[[Task], Energies] | None = None
    tensors: Callable[[Task], Energies] | None = None
    degrees: Callable[[Task], tuple[int, int]] | None = None


def _scores(query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("nd,nid->ni", query, keys))


def _key_power(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.asarray(((keys @ task.b) ** task.p).mean(axis=1))


def _query_power(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.asarray((query @ task.b) ** task.p)


def _correlation(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.asarray((_scores(query, keys) ** task.p).mean(axis=1))


def _corr_power(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.asarray((_scores(query, keys) ** task.q * (keys @ task.b)).mean(axis=1))


def _rotated(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return _corr_power(task, query @ task.rotation, keys)


def _mixed_rotation(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.asarray((_scores(query @ task.mixture, keys) * (keys @ task.b)).mean(axis=1))


def _softmax(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    weights = special.softmax(task.sharpness * _scores(query, keys), axis=1)
    return np.asarray((weights * (keys @ task.b)).sum(axis=1))


def _harmonic(task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    a, b = task.harmonic
    scale = np.sqrt(harmonic_dimension(a, task.d) * harmonic_dimension(b, task.d))
    of_query = gegenbauer(a, task.d, query @ task.u)[a]
    of_keys = gegenbauer(b, task.d, keys @ task.b)[b].mean(axis=1)
    return np.asarray(scale * of_query * of_keys)


def _corr_power_energies(task: Task) -> Energies:
    r"""Energies of :math:`\langle x_0, x_i\rangle^q \langle b, x_i\rangle`, by averaging over the direction of b.

    The part of t^q of degree l in the query has degree l ± 1 in the key: the recursion
    :math:`(2l+d-2)\,v P_l = (l+d-2) P_{l+1} + l P_{l-1}` says in which shares.
    """
    d, q = task.d, task.q
    energies = {}
    for l, energy in enumerate(zonal_energies(q, d)):
        if energy > 0:
            width = max(2 * l + d - 2, 1)
            energies[l, l + 1] = float(energy / d * max(l + d - 2, 1) / width)
            if l:
                energies[l, l - 1] = float(energy / d * l / width)
    return energies


def _mixed_rotation_energies(task: Task) -> Energies:
    d, S = task.d, task.mixture
    along_b = float(np.sum((S @ task.b) ** 2))
    total = (float(np.sum(S**2)) + 2 * along_b) / (d**2 * (d + 2))
    return {(1, 0): along_b / d**3, (1, 2): total - along_b / d**3}


def _corr_power_tensor(task: Task) -> Energies:
    """Bombieri norm of <x_0,x_i>^q <b,x_i>: C(d+q-1, q) (1 + q/d) / (q+1), derived here from the Fischer product."""
    d, q = task.d, task.q
    return {(q, q + 1): float(np.sqrt(special.comb(d + q - 1, q) * (1 + q / d) / (q + 1)))}


def _mixed_rotation_tensor(task: Task) -> Energies:
    S = task.mixture
    return {(1, 2): float(np.sqrt((np.sum(S**2) + np.sum((S @ task.b) ** 2)) / 2))}


def _harmonic_tensors(task: Task) -> Energies:
    """Coefficients of the two Gegenbauer polynomials, each read off at degree + 1 points."""
    (a, b), d = task.harmonic, task.d
    scale = np.sqrt(harmonic_dimension(a, d) * harmonic_dimension(b, d))
    query, key = (_monomials(l, d) for l in (a, b))
    products = {(r, s): abs(scale * x * y) for r, x in enumerate(query) for s, y in enumerate(key)}
    return {degrees: float(norm) for degrees, norm in products.items() if norm > 1e-12}


def _monomials(l: int, d: int) -> np.ndarray:
    nodes = np.cos(np.pi * (np.arange(l + 1) + 0.5) / (l + 1))
    return np.linalg.solve(np.vander(nodes, increasing=True), gegenbauer(l, d, nodes)[l])


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "key_power": Target(
            _key_power,
            lambda task: {(0, l): float(e) for l, e in enumerate(zonal_energies(task.p, task.d))},
            lambda task: {(0, task.p): 1.0},
            lambda task: (0, task.p),
        ),
        "query_power": Target(
            _query_power,
            lambda task: {(l, 0): float(e) for l, e in enumerate(zonal_energies(task.p, task.d))},
            lambda task: {(task.p, 0): 1.0},
            lambda task: (task.p, 0),
        ),
        "correlation": Target(
            _correlation,
            lambda task: {(l, l): float(e) for l, e in enumerate(zonal_energies(task.p, task.d))},
            lambda task: {(task.p, task.p): float(np.sqrt(special.comb(task.d + task.p - 1, task.p)))},
            lambda task: (task.p, task.p),
        ),
        "corr_power": Target(_corr_power, _corr_power_energies, _corr_power_tensor, lambda task: (task.q, task.q + 1)),
        "rotated": Target(_rotated, _corr_power_energies, _corr_power_tensor, lambda task: (task.q, task.q + 1)),
        "mixed_rotation": Target(
            _mixed_rotation, _mixed_rotation_energies, _mixed_rotation_tensor, lambda task: (1, 2)
        ),
        "harmonic": Target(_harmonic, lambda task: {(task.harmonic[0], task.harmonic[1]): 1.0}, _harmonic_tensors),
        "softmax": Target(_softmax),
    }
)
