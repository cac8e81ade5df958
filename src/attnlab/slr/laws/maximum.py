"""The max law: all tokens look alike, and the informative one tends to be that with the largest mark."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import special

from attnlab.common.gaussian import normal_cdf
from attnlab.common.validation import real
from attnlab.slr.laws.base import Law, Marks, Moments
from attnlab.slr.laws.integrals import STEP, Exponential, laplace, marks


@dataclass(frozen=True)
class Max(Law):
    r"""All tokens N(0, I_d), :math:`\Pr(J = l \mid X) \propto \exp(\nu\, X_l\cdot k^*)`; the largest for nu = inf.

    Source: arXiv:2509.21936.
    """

    nu: float | None = None
    gamma: float = 1.0
    name: ClassVar[str] = "max"

    def __post_init__(self) -> None:
        if self.gamma != 1:
            raise ValueError(f"gamma must be 1 for the max law (all tokens are standard Gaussian), got {self.gamma!r}")
        if self.nu is not None and self.nu != math.inf:
            real("nu", self.nu, low=0.0)

    def at(self, d: int) -> Max:
        """The strength d/2 where none is given."""
        return replace(self, nu=d / 2 if self.nu is None else float(self.nu))

    @property
    def bayes_scale(self) -> float:
        """The strength itself."""
        assert self.nu is not None
        return self.nu

    def choose(self, marks: np.ndarray, present: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """From softmax(nu X.k*) by the Gumbel trick, whose limit is the argmax."""
        nu = self.bayes_scale
        score = marks if math.isinf(nu) else nu * marks + rng.gumbel(size=marks.shape)
        return np.asarray(np.where(present, score, -np.inf).argmax(axis=1)[:, None])

    def mark(self, X: np.ndarray, k_star: np.ndarray) -> np.ndarray:
        """The informative token looks like the others."""
        return X

    def evidence(self, marks: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """nu X.k*; for nu = inf all weight is on the largest."""
        if math.isinf(self.bayes_scale):
            return np.where(marks == marks.max(axis=1, keepdims=True), 0.0, -np.inf)
        return np.asarray(self.bayes_scale * marks)

    def bayes_excess(self, L: int) -> float:
        r"""Bayes risk :math:`\mathbb{E}\sum_{l\ne m}p_lp_m`, a sum of positive terms; about 1/nu for large nu."""
        nu = self.bayes_scale
        if L == 1 or nu == 0 or math.isinf(nu):
            return 1 - 1 / L if nu == 0 else 0.0
        rule = Exponential(nu)
        # p_l p_m = g_l g_m / S^2 and u du = u^2 d(log u): each of the two factors g has its u, the other tokens decay.
        terms = rule.first() ** 2 * rule.decay() ** (L - 2)
        return float(L * (L - 1) * rule.log_u_step * terms.sum())

    def mean_marks(self, L: int, count: int) -> tuple[float, float, float]:
        """The expected mark of the informative token, 0, and L."""
        return self._tilted(lambda chi: chi, 1.0, L), 0.0, float(L)

    def elementwise(self, g: Callable[[np.ndarray], np.ndarray], slope: float, L: int, count: int) -> Moments:
        """All tokens have the same law; the informative one is tilted."""
        chi, weight = marks(slope)
        return Moments(self._tilted(g, slope, L), L * float(weight @ g(chi) ** 2))

    def normalised(self, log_g: Callable[[np.ndarray], np.ndarray], slope: float, L: int, count: int) -> Moments:
        """For nu = inf; for a finite nu and log g = nu chi; otherwise the average does not factorise."""
        chi, weight = marks(slope)
        log = log_g(chi)
        # From where u g is below 1e-15 for all marks to where exp(-u g) vanishes for all; log g grows with the mark.
        log_u = np.arange(-log[-1] - 36.0, -log[0] + 5.0, STEP)
        decay, first, second = laplace(log_u, log)
        square = STEP * L * float(np.sum((second @ weight) * (decay @ weight) ** (L - 1)))
        if not math.isinf(self.bayes_scale):
            raise ValueError(f"nu must be inf for normalised weights under the max law, got {self.bayes_scale!r}")
        # The informative token is the largest: all others lie below it.
        # The node itself counts half, as the end of a trapezoidal rule.
        below = np.cumsum(decay * weight, axis=1) - 0.5 * decay * weight
        return Moments(STEP * L * float(np.sum((first * below ** (L - 1)) @ weight)), square)

    def quadrature(self, normal: np.ndarray, uniform: np.ndarray, count: int) -> Marks:
        """The chosen token is exchanged with the first one."""
        nu, rows = self.bayes_scale, np.arange(len(normal))
        chi = normal.copy()
        score = chi if math.isinf(nu) else nu * chi - np.log(-np.log(uniform))
        place = np.argmax(score, axis=1)
        # chi[:, 0] is a view, which the first of the two assignments may change.
        chi[rows, place], chi[:, 0] = chi[:, 0].copy(), chi[rows, place].copy()
        if math.isinf(nu):
            return Marks(chi, np.full(chi.shape, np.nan))
        # The slope of nu chi_J less the logarithm of the sum over tokens; J is the first one now.
        return Marks(chi, nu * (np.eye(1, chi.shape[1]) - special.softmax(nu * chi, axis=1)))

    def token_moments(self, L: int, count: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        """All entries are standard."""
        return np.array([1.0]), np.array([L * d])

    def _tilted(self, f: Callable[[np.ndarray], np.ndarray], slope: float, L: int) -> float:
        """E f(chi) of the informative token."""
        nu = self.bayes_scale
        if math.isinf(nu):
            chi, weight = marks(slope)
            return float(L * weight @ (f(chi) * normal_cdf(chi) ** (L - 1)))
        if nu == 0:
            chi, weight = marks(slope)
            return float(weight @ f(chi))
        # 1/S = int exp(-uS) du and du = u d(log u): the informative token's factor has the u.
        rule = Exponential(max(nu, 1e-9))
        return float(L * rule.log_u_step * np.sum(rule.first(f=f(rule.at)) * rule.decay() ** (L - 1)))
