r"""What a target is: an average over keys of a function of the query and one key, and what depends on it.

A target of this class is :math:`f_*(x) = \tfrac1N \sum_i F(x_0, x_i)`. On the sphere F splits into parts of degree a in
the query and b in the key; their energies :math:`\|F_{ab}\|^2` decide variance, complexity and learning curve.

==========  =======================================================================================
symbol      meaning
==========  =======================================================================================
x_0, x_i    query and keys; N keys of dimension d
b, u        planted unit vectors;  O a planted rotation (``task.b``, ``task.u``, ``task.rotation``)
F_ab        part of F of harmonic degree a in x_0 and b in x_i;  energies[a, b] = |F_ab|^2 in L2
f_rs        coefficient tensor of the part of F of polynomial degree r in x_0 and s in x_i, symmetrised
==========  =======================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from attnlab.common.validation import integer
from attnlab.rfa.sphere import zonal_energies

if TYPE_CHECKING:
    from attnlab.rfa.task import Task

Energies = dict[tuple[int, int], float]


@dataclass(frozen=True)
class Target:
    """One family of targets; a subclass writes ``value``, and whatever else is known of it."""

    name: ClassVar[str] = ""

    @property
    def label(self) -> str:
        """The pair function in LaTeX, for titles."""
        return self.name

    @property
    def correlation_power(self) -> int | None:
        """The power of <x_0, x_i>, for targets that are one times a factor of norm one that a value vector supplies."""
        return None

    def value(self, task: Task, query: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """f* of queries ``(n, d)`` and keys ``(n, N, d)``: ``(n,)``."""
        raise NotImplementedError

    def energies(self, task: Task) -> Energies:
        """|F_ab|^2 by degrees (a, b), exact for tokens uniform on the sphere."""
        raise ValueError(f"target {self!r} is not an average of a known polynomial of the query and one key")

    def tensors(self, task: Task) -> Energies:
        """|sym f_rs|_F by degrees (r, s)."""
        raise ValueError(f"target {self!r} is not an average of a known polynomial of the query and one key")

    def degrees(self) -> tuple[int, int] | None:
        """Homogeneity in the length of the query and of a key; None if there is none."""
        return None

    def variance(self, task: Task) -> float | None:
        r"""Var f* in closed form; None where there is none.

        .. math:: \mathrm{Var} f_* = \sum_{a \ge 1} \|F_{a0}\|^2 + \tfrac1N \sum_{a,\, b \ge 1} \|F_{ab}\|^2

        on the sphere; a homogeneous F on Gaussian tokens has in addition the moments of their lengths.
        """
        if type(self).energies is Target.energies:
            return None
        if task.token_law == "sphere":
            return _total_variance(self.energies(task), task.n_keys, (1.0, 1.0), (1.0, 1.0))
        degrees = self.degrees()
        if task.token_law != "gaussian" or degrees is None:
            return None
        query, key = (tuple(_radius_moment(k * degree, task.d) for k in (1, 2)) for degree in degrees)
        return _total_variance(self.energies(task), task.n_keys, query, key)


@dataclass(frozen=True)
class Power(Target):
    """A power p of one inner product."""

    p: int = 2
    # The factors of the product in LaTeX, and whether query and key are among them.
    factors: ClassVar[str] = ""
    sides: ClassVar[tuple[int, int]] = (0, 0)

    def __post_init__(self) -> None:
        integer("p", self.p, low=0)

    @property
    def label(self) -> str:
        """The power in LaTeX."""
        return rf"$\langle {self.factors}\rangle{exponent(self.p)}$"

    def energies(self, task: Task) -> Energies:
        """P_l of the product is of degree l in each token that is in it."""
        of_query, of_key = self.sides
        return {(l * of_query, l * of_key): float(e) for l, e in enumerate(zonal_energies(self.p, task.d))}

    def tensors(self, task: Task) -> Energies:
        """b^(x)p has norm one."""
        return {self.degrees(): 1.0}

    def degrees(self) -> tuple[int, int]:
        """Of degree p in each token that is in the product."""
        return self.p * self.sides[0], self.p * self.sides[1]


def exponent(power: int) -> str:
    """A power in LaTeX; nothing for one."""
    return "" if power == 1 else f"^{{{power}}}"


def scores(query: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """<x_0, x_i>, ``(n, N)``."""
    return np.asarray(np.einsum("nd,nid->ni", query, keys))


def _radius_moment(power: int, d: int) -> float:
    """E|x|^power for x ~ N(0, I/d)."""
    # By logarithms: the gamma function overflows beyond 171.
    return float(np.exp(power / 2 * np.log(2 / d) + special.gammaln((d + power) / 2) - special.gammaln(d / 2)))


def _total_variance(energies: Energies, n_keys: int, query: tuple[float, ...], key: tuple[float, ...]) -> float:
    """Variance of the query's part plus 1/N of the conditional variance given the query.

    ``query`` and ``key`` are the first and second moments of |x|^degree.
    """
    constant = energies.get((0, 0), 0.0)
    mean_given_query = sum(e for (_, b), e in energies.items() if b == 0)
    total = sum(energies.values())
    # Length and direction of a Gaussian token are independent: moments of the lengths are factors.
    of_query = query[1] * key[0] ** 2 * mean_given_query
    return float(of_query - (query[0] * key[0]) ** 2 * constant + (query[1] * key[1] * total - of_query) / n_keys)
