r"""Averages over Gaussian marks by the trapezoidal rule.

Weights that are normalised, :math:`\sigma_l = g_l/\sum_j g_j`, are averaged through
:math:`1/S = \int_0^\infty e^{-uS}du` and :math:`1/S^2 = \int_0^\infty u e^{-uS}du`, which factorise over tokens.

For :math:`g = e^{\beta\chi}` and :math:`u = e^{-\beta s}` the factors are averages over
:math:`w(x) = e^{x - e^x}` (minus the logarithm of an exponential variable), x = beta (chi - s):

.. math:: \mathbb{E}\,e^{-ug} = \int w(x)\,\Phi(s + x/\beta)\,dx, \qquad
          \beta\,\mathbb{E}\,ug\,e^{-ug} = \int w(x)\,\varphi(s + x/\beta)\,dx

They vary on the scale max(1, 1/beta) in s, so that for beta >= 1 a fixed step serves every strength.
"""

from __future__ import annotations

import math

import numpy as np

from attnlab.common.gaussian import normal_cdf, normal_pdf

STEP = 0.4  # of log u: the trapezoidal rule's error on exp(log u - u) is exp(-pi^2 / 0.4) < 1e-10
STEEPEST = 20.0
# Nodes x of the sharp rule: w is analytic in the strip |Im x| < pi/2, so the step 1/4 costs exp(-4 pi^2) < 1e-17.
NODES = np.arange(-90.0, 5.0, 0.25)
WEIGHTS = 0.25 * np.exp(NODES - np.exp(NODES))
WEIGHTS.flags.writeable = NODES.flags.writeable = False
SHARP = 1.0  # from this slope on


def marks(slope: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a Gaussian average of a function of exp(slope chi): error below 1e-10 for slopes <= 20."""
    # The trapezoidal rule converges exponentially for analytic functions; a steeper one has nearer poles and needs a
    # finer step.
    chi = np.linspace(-9.0, 9.0, 2 * math.ceil(9 / min(0.1, 0.25 / min(max(slope, 1e-9), STEEPEST))) + 1)
    return chi, normal_pdf(chi) * (chi[1] - chi[0])


def laplace(log_u: np.ndarray, log_g: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp(-ug), ug exp(-ug) and (ug)^2 exp(-ug) on the grid of u and g."""
    ug = np.exp(np.minimum(log_u[:, None] + log_g[None, :], 30.0))
    decay = np.exp(-ug)
    return decay, ug * decay, ug**2 * decay


class Exponential:
    """The factors for g = exp(slope chi), as functions of s on a grid; slope > 0.

    ``log_u_step`` times the sum over the grid integrates d(log u).
    """

    def __init__(self, slope: float, reach: float = 0.0) -> None:
        """``reach``: how far beyond the range of standard marks the grid of s extends."""
        self.slope, self.sharp = slope, slope >= SHARP
        if self.sharp:
            self.s = np.arange(-10.0, reach + 10.0 + 60.0 / slope, 0.05)
            self.log_u_step = 0.05 * slope
            self.nodes = self.s[:, None] + NODES / slope
        else:
            self.chi, self.weight = marks(slope)
            self.s = -np.arange(-slope * (9 + reach) - 36.0, slope * 9 + 5.0, STEP) / slope
            self.log_u_step = STEP

    def decay(self, shift: float = 0.0) -> np.ndarray:
        """E exp(-u g) for marks of mean ``shift``."""
        if self.sharp:
            return np.asarray(normal_cdf(self.nodes - shift) @ WEIGHTS)
        return np.asarray(self._terms(shift)[0] @ self.weight)

    def first(self, shift: float = 0.0, f: np.ndarray | None = None) -> np.ndarray:
        """E u g exp(-u g) f, with ``f`` the values at :attr:`at`."""
        values = 1.0 if f is None else f
        if self.sharp:
            return np.asarray((normal_pdf(self.nodes - shift) * values) @ WEIGHTS / self.slope)
        return np.asarray((self._terms(shift)[1] * values) @ self.weight)

    @property
    def at(self) -> np.ndarray:
        """The marks at which ``f`` is wanted by :meth:`first`."""
        return self.nodes if self.sharp else self.chi[None, :]

    def _terms(self, shift: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return laplace(-self.slope * self.s, self.slope * (self.chi + shift))
