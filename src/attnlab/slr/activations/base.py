r"""What an activation has to say; the weights in JAX and the population risk follow from one function.

=========  ============================================================================
symbol     meaning
=========  ============================================================================
chi_l      X_l.k*, the mark of token l
sigma_l    the weight of token l, from the scores m chi_l
m          the length of k
K          number of informative tokens
E          excess risk for gamma = 1, 1 for the predictor zero
=========  ============================================================================

For the best read-out v, :math:`E = 1 - (\mathbb{E}\sum_{j\in J}\sigma_j)^2/(K\,\mathbb{E}\sum_l\sigma_l^2)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import optimize

from attnlab.slr.laws.base import Law, Moments
from attnlab.slr.namespace import NUMPY, Namespace, jax_namespace

LOG_SCALES = (-4.0, math.log(40.0))


class Best(NamedTuple):
    """The best attention of a kind: its excess risk, the scores ``scale * chi + offset``, and how sure that is."""

    risk: float
    scale: float
    offset: float = 0.0
    converged: bool = True
    residual: float = 0.0
    error: float = 1e-9


class Activation(ABC):
    """Scores (..., L) to weights (..., L). A new activation is one file: a frozen dataclass that writes ``g``."""

    name: ClassVar[str]

    @abstractmethod
    def weights(self, chi: Any, present: Any = True) -> Any:
        """The weights in JAX; tokens that are not there get 0."""

    @abstractmethod
    def moments(self, law: Law, scale: float, L: int, count: int) -> Moments:
        """The averages that decide the risk at scores ``scale * chi``."""

    def excess(self, law: Law, scale: float, sizes: Sequence[int], count: int) -> float:
        """Risk of scores ``scale * chi`` with the best read-out, for equally likely lengths."""
        hit, square = np.mean([self.moments(law, scale, L, count) for L in sizes], axis=0)
        return float(1 - hit**2 / (count * square))

    def best(self, law: Law, sizes: Sequence[int], count: int) -> Best:
        """The best scale, by a search in one dimension."""
        return best_scale(lambda m: self.excess(law, m, sizes, count))


class Elementwise(Activation):
    """Weights sigma_l = g(chi_l)."""

    @abstractmethod
    def g(self, chi: Any, xp: Namespace) -> Any:
        """The weight of a token, with the functions of ``xp``: NumPy's or JAX's."""

    def weights(self, chi: Any, present: Any = True) -> Any:
        """g of each score."""
        # A token of zeros has a score, and g(0) need not be zero.
        return self.g(chi, jax_namespace()) * present

    def moments(self, law: Law, scale: float, L: int, count: int) -> Moments:
        """By quadrature over one mark."""
        return law.elementwise(lambda chi: np.asarray(self.g(scale * chi, NUMPY)), abs(scale), L, count)


class Normalised(Activation):
    """Weights sigma_l = g(chi_l) / sum_j g(chi_j), g > 0."""

    @abstractmethod
    def log_g(self, chi: Any, xp: Namespace) -> Any:
        """The logarithm of g, with the functions of ``xp``: NumPy's or JAX's."""

    def weights(self, chi: Any, present: Any = True) -> Any:
        """Softmax of log g."""
        import jax
        import jax.numpy as jnp

        # -inf in the logarithm: an absent token has weight exactly zero, and the others sum to one.
        return jax.nn.softmax(jnp.where(present, self.log_g(chi, jax_namespace()), -jnp.inf), axis=-1)

    def moments(self, law: Law, scale: float, L: int, count: int) -> Moments:
        """By quadrature over one mark and the Laplace transform of the sum."""
        return law.normalised(lambda chi: np.asarray(self.log_g(scale * chi, NUMPY)), abs(scale), L, count)


def best_scale(excess: Callable[[float], float]) -> Best:
    """The minimum over scales from exp(-4) to 40; at an end of the search it is not converged.

    There the error is what the last factor of two brought. The residual is the relative slope at the minimum.
    """
    low, high = LOG_SCALES

    def objective(log_m: float) -> float:
        return excess(math.exp(log_m))

    # A coarse look first: the risk may have two valleys, and the bounded search follows one.
    grid = np.linspace(low, high, 24)
    values = [objective(x) for x in grid]
    i = int(np.argmin(values))
    bracket = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = optimize.minimize_scalar(objective, bounds=bracket, method="bounded", options={"xatol": 1e-7})
    # The search stops at 1e-7, below which the risk is flat to rounding: a slope needs a wider step.
    x, h = float(found.x), 1e-4
    slope = abs(objective(min(x + h, high)) - objective(max(x - h, low))) / (2 * h)
    inside = bool(found.success) and low + 1e-3 < x < high - 1e-3
    error = 1e-9 if inside else abs(objective(x) - objective(x - math.log(2)))
    return Best(float(found.fun), math.exp(x), 0.0, inside, slope, error)
