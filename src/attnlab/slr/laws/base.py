"""What a law of the tokens has to say: where the informative tokens are, how they look, and what can be computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np


class Moments(NamedTuple):
    r"""Averages over the tokens of one sequence that decide the risk of attention weights.

    ``hit`` is :math:`\mathbb{E}\sum_{j\in J}\sigma_j`, ``square`` is :math:`\mathbb{E}\sum_l\sigma_l^2`.
    """

    hit: float
    square: float


class Marks(NamedTuple):
    """Marks chi = X.k* of quadrature points (n, L), informative tokens first, and the score of their density.

    ``tilt`` is the derivative in chi of the log-density ratio to N(0, I); NaN where the law has no density.
    """

    chi: np.ndarray
    tilt: np.ndarray


class Law(ABC):
    """One law of the tokens. A new law is one file: a frozen dataclass that writes these methods.

    ``nu`` is the strength of the mark, None for d/2; ``gamma`` the standard deviation of an informative token.
    """

    nu: Any
    gamma: Any
    name: ClassVar[str]

    @abstractmethod
    def at(self, d: int) -> Law:
        """The same law with the strength as a number."""

    @abstractmethod
    def choose(self, marks: np.ndarray, present: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """Indices (n, count) of the informative tokens, given X.k* of the noise and which tokens are there."""

    @abstractmethod
    def mark(self, X: np.ndarray, k_star: np.ndarray) -> np.ndarray:
        """Informative tokens (..., d) from standard Gaussian ones."""

    @abstractmethod
    def evidence(self, marks: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Log-weight of each token being informative, from X.k* and |X|^2."""

    @property
    @abstractmethod
    def bayes_scale(self) -> float:
        """The length of k at which softmax attention is the Bayes predictor of one location (gamma = 1)."""

    @abstractmethod
    def bayes_excess(self, L: int) -> float:
        """Bayes risk of one location beyond the noise, for gamma = 1."""

    @abstractmethod
    def mean_marks(self, L: int, count: int) -> tuple[float, float, float]:
        r""":math:`\mathbb{E}\sum_{j\in J}\chi_j,\ \mathbb{E}\sum_l\chi_l,\ \mathbb{E}\sum_l\chi_l^2`, for gamma = 1."""

    @abstractmethod
    def elementwise(self, g: Callable[[np.ndarray], np.ndarray], slope: float, L: int, count: int) -> Moments:
        """Moments of the weights sigma_l = g(chi_l), for gamma = 1; ``slope`` bounds the steepness of g."""

    @abstractmethod
    def normalised(self, log_g: Callable[[np.ndarray], np.ndarray], slope: float, L: int, count: int) -> Moments:
        """Moments of sigma_l = g(chi_l) / sum_j g(chi_j), for gamma = 1; ``slope`` bounds the steepness of log g."""

    @abstractmethod
    def quadrature(self, normal: np.ndarray, uniform: np.ndarray, count: int) -> Marks:
        """Marks made of standard normals and of uniform numbers, both (n, L), for gamma = 1."""

    @abstractmethod
    def token_moments(self, L: int, count: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, and how many of each, of the second moments of the L d entries; the first is that along v*."""
