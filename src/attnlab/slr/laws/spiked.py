"""The spiked law: informative tokens carry a mark sqrt(nu) k* and have standard deviation gamma."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from attnlab.common.validation import positive, real
from attnlab.slr.laws.base import Law, Marks, Moments
from attnlab.slr.laws.integrals import STEP, Exponential, laplace, marks


@dataclass(frozen=True)
class Spiked(Law):
    r""":math:`X_j \sim N(\sqrt\nu\,k^*, \gamma^2 I_d)` for the informative tokens, drawn uniformly; else N(0, I_d).

    The law of arXiv:2410.01537 with the defaults (nu = d/2 and gamma^2 = 1/2: all tokens have mean square norm d), the
    spiked law of arXiv:2509.21936 with gamma = 1.
    """

    nu: float | None = None
    gamma: float = 2**-0.5
    name: ClassVar[str] = "spiked"

    def __post_init__(self) -> None:
        positive("gamma", self.gamma)
        if self.nu is not None:
            real("nu", self.nu, low=0.0)

    def at(self, d: int) -> Spiked:
        """The strength d/2 where none is given."""
        return replace(self, nu=d / 2 if self.nu is None else float(self.nu))

    @property
    def shift(self) -> float:
        """The mean mark of an informative token."""
        assert self.nu is not None
        return math.sqrt(self.nu)

    def choose(self, marks: np.ndarray, present: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """Uniformly among the tokens that are there."""
        # The places of the largest of independent uniform numbers are a uniform subset.
        score = np.where(present, rng.random(present.shape), -np.inf)
        return np.argsort(-score, axis=1)[:, :count]

    def mark(self, X: np.ndarray, k_star: np.ndarray) -> np.ndarray:
        """Shift and scale."""
        return self.shift * k_star + self.gamma * X

    def evidence(self, marks: np.ndarray, norms: np.ndarray) -> np.ndarray:
        r""":math:`\sqrt\nu\,X\cdot k^*/\gamma^2 + (1 - \gamma^{-2})|X|^2/2`, up to a constant."""
        return np.asarray(self.shift * marks / self.gamma**2 + (1 - self.gamma**-2) * norms / 2)

    @property
    def bayes_scale(self) -> float:
        """sqrt(nu)."""
        return self.shift

    def bayes_excess(self, L: int) -> float:
        r"""Bayes risk of one location for gamma = 1, :math:`(L-1)\,\mathbb{E}\,p_l` of a token that is not informative.

        A sum of positive terms, so that the relative error stays near 1e-10 where the risk is exponentially small.
        """
        if L == 1 or self.nu == 0:
            return 1 - 1 / L
        if self.shift**2 > 3000:  # e^(-nu/4) is below the smallest float
            return 0.0
        rule = Exponential(self.shift, reach=self.shift)
        # Of a token of noise p_l = g_l / S: its own factor, the L - 2 other tokens of noise, and the informative one.
        terms = rule.first() * rule.decay() ** (L - 2) * rule.decay(self.shift)
        return float((L - 1) * rule.log_u_step * terms.sum())

    def mean_marks(self, L: int, count: int) -> tuple[float, float, float]:
        """K sqrt(nu), the same, and L + K nu."""
        hit = count * self.shift
        return hit, hit, L + count * self.shift**2

    def elementwise(self, g: Callable[[np.ndarray], np.ndarray], slope: float, L: int, count: int) -> Moments:
        """K tokens with a mark and L - K without."""
        chi, weight = marks(slope)
        marked, noise = g(chi + self.shift), g(chi)
        square = count * float(weight @ marked**2) + (L - count) * float(weight @ noise**2)
        return Moments(count * float(weight @ marked), square)

    def normalised(self, log_g: Callable[[np.ndarray], np.ndarray], slope: float, L: int, count: int) -> Moments:
        """Products of the factors of K tokens with a mark and of L - K without."""
        chi, weight = marks(slope)
        noise, marked = log_g(chi), log_g(chi + self.shift)
        # From where u g is below 1e-15 for all marks to where exp(-u g) vanishes for all; log g grows with the mark.
        log_u = np.arange(-max(noise[-1], marked[-1]) - 36.0, -noise[0] + 5.0, STEP)
        factors = [np.stack([part @ weight for part in laplace(log_u, log)]) for log in (marked, noise)]
        (decay_m, first_m, second_m), (decay_n, _, second_n) = factors
        rest = L - count
        hit = count * first_m * decay_m ** (count - 1) * decay_n**rest
        own = count * second_m * decay_m ** (count - 1) * decay_n**rest
        # Without noise the term is zero; the power -1 of a factor that vanishes would make it NaN.
        others = rest * second_n * decay_n ** max(rest - 1, 0) * decay_m**count
        return Moments(STEP * float(hit.sum()), STEP * float(np.sum(own + others)))

    def quadrature(self, normal: np.ndarray, uniform: np.ndarray, count: int) -> Marks:
        """The first K tokens are shifted; the log-density ratio is linear in chi."""
        tilt = np.where(np.arange(normal.shape[1]) < count, self.shift, 0.0)
        return Marks(normal + tilt, np.tile(tilt, (len(normal), 1)))

    def token_moments(self, L: int, count: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        """The mark adds a matrix of rank L along k*: its mean over tokens, and the differences."""
        s, nu = (count * self.gamma**2 + L - count) / L, self.shift**2
        # Over the tokens E 1_J 1_J^T has K/L on the diagonal and K (K - 1) / (L (L - 1)) off it.
        apart = nu * count * (L - count) / (L * (L - 1)) if L > 1 else 0.0
        return np.array([s, s + nu * count**2 / L, s + apart]), np.array([L * (d - 1), 1, L - 1])
