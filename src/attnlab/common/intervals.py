"""Confidence intervals by kind, from the numbers of independent replicates.

Every class holds what was measured and gives ``value``, ``units`` (the independent replicates behind it) and
``interval(level)``. None depends on the order of the replicates.

===============  ==============================================  =========================
class            interval                                        coverage
===============  ==============================================  =========================
Replicates       Student's t                                     exact for Gaussian noise
LogRatio         Student's t on the logarithm, paired            asymptotic
Jackknife        Student's t on the jackknife's standard error   asymptotic, smooth values
Share            Clopper-Pearson, with a design effect           at least the level
Middle           order statistics                                at least the level
Extreme          bounds of the parts                             at least the level
Shifted          that of the part
Exponential      that of the part, as factors
Magnitude        folded interval of the part                     at least the level
Fixed            none: a computation without noise
===============  ==============================================  =========================
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy import special

Bounds = tuple[float, float]
EVERYTHING: Bounds = (-math.inf, math.inf)
# Equal numbers differ by this much after a mean over settings: a spread of rounding alone is no noise.
ROUNDING = 1e-14


@runtime_checkable
class Measured(Protocol):
    """A number, its independent replicates and its interval at any level."""

    @property
    def value(self) -> float:
        """The number."""

    @property
    def units(self) -> int:
        """Independent replicates."""

    def interval(self, level: float) -> Bounds:
        """Its interval."""


@functools.cache
def student(level: float, freedom: int) -> float:
    """The factor from a standard error to the half-width of an interval."""
    # scipy.special, for the import of scipy.stats takes a quarter of a second
    return float(special.stdtrit(freedom, 0.5 + level / 2))


def half_width(level: float, n: int, deviation: float) -> float:
    """Half of Student's interval of the mean of n numbers with this standard deviation."""
    # an infinite deviation first: for n = 1 there is no Student factor to multiply it with
    return student(level, n - 1) * deviation / math.sqrt(n) if math.isfinite(deviation) else math.inf


def spread(values: np.ndarray, scale: float) -> float:
    """Standard deviation; infinite for one number and for equal ones, from which the noise cannot be estimated."""
    if len(values) < 2 or np.ptp(values) <= ROUNDING * scale:
        return math.inf
    # Sorted, so that the rounding of the sum does not depend on the order either.
    return float(np.std(np.sort(values), ddof=1))


# What does not depend on the level is kept: an extreme asks hundreds of parts for their intervals at many levels.
@dataclass(frozen=True)
class _Sample:
    """One number for each independent replicate."""

    values: np.ndarray

    @property
    def units(self) -> int:
        """Replicates."""
        return len(self.values)


class Replicates(_Sample):
    """The mean of one number for each independent replicate."""

    @functools.cached_property
    def value(self) -> float:
        """The mean."""
        return float(np.mean(self.values))

    @functools.cached_property
    def _deviation(self) -> float:
        return spread(self.values, float(np.abs(self.values).max()))

    def interval(self, level: float) -> Bounds:
        """Student's interval."""
        half = half_width(level, self.units, self._deviation)
        return self.value - half, self.value + half


@dataclass(frozen=True)
class LogRatio:
    r"""A product of means to the powers +1 or -1, each row of ``numbers`` one mean, each column one replicate.

    .. math:: \log\hat\theta = \sum_i s_i \log \bar x_i, \qquad
              \mathrm{se}^2 = \mathrm{Var}_k\Big[\sum_i s_i x_{ik} / \bar x_i\Big] / K

    Numbers of one replicate may be dependent. Status: asymptotic (delta method), with Student's quantile.
    """

    numbers: np.ndarray
    powers: np.ndarray

    def __post_init__(self) -> None:
        if np.any(self.numbers.mean(axis=1) <= 0):
            raise ValueError("a ratio of means needs positive means")

    @functools.cached_property
    def value(self) -> float:
        """The ratio of the means."""
        return float(np.prod(self.numbers.mean(axis=1) ** self.powers))

    @property
    def units(self) -> int:
        """Replicates."""
        return int(self.numbers.shape[1])

    @functools.cached_property
    def _deviation(self) -> float:
        # numbers over their means are of order one, the scale of their rounding
        return spread(self.powers @ (self.numbers / self.numbers.mean(axis=1, keepdims=True)), 1.0)

    def interval(self, level: float) -> Bounds:
        """Student's interval of the logarithm, as factors."""
        half = half_width(level, self.units, self._deviation)
        # exp(-half) can only fall to zero, exp(half) can overflow
        return self.value * math.exp(-half), self.value * exp(half)


def exp(x: float) -> float:
    """The exponential, infinite where a float would overflow."""
    return math.exp(x) if x < 700 else math.inf  # math.exp raises OverflowError from 709.8 on


@dataclass(frozen=True)
class Jackknife:
    r"""A smooth function of several means: its value, and its values without one replicate each.

    .. math:: \mathrm{se}^2 = \tfrac{K-1}{K} \sum_k (v_{(k)} - \bar v)^2

    Not valid for extremes or quantiles. Source: B. Efron and C. Stein, Ann. Statist. 9 (1981) 586.
    """

    full: float
    left_out: np.ndarray

    @property
    def value(self) -> float:
        """The value on all replicates."""
        return self.full

    @property
    def units(self) -> int:
        """Replicates."""
        return len(self.left_out)

    @functools.cached_property
    def _deviation(self) -> float:
        return (self.units - 1) * spread(self.left_out, abs(self.full))

    def interval(self, level: float) -> Bounds:
        """Student's interval around the value."""
        # (k - 1)^2 / k of the variance of the k values
        half = half_width(level, self.units, self._deviation)
        return self.full - half, self.full + half


@dataclass(frozen=True)
class Share:
    """Successes and trials of each independent unit.

    With one trial in each unit: Clopper-Pearson. With several, the trials of a unit may depend on each other: the
    number of trials is divided by the design effect between units, and where all trials agree only units count.
    Source: E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998) 193.
    """

    successes: np.ndarray
    trials: np.ndarray

    @property
    def value(self) -> float:
        """The share of successes."""
        return float(self.successes.sum() / self.trials.sum())

    @property
    def units(self) -> int:
        """Independent units."""
        return len(self.trials)

    @property
    def effective(self) -> float:
        """Independent trials with the same information."""
        p, n, k = self.value, float(self.trials.sum()), self.units
        # with one trial each, or where all trials agree, the variance between units says nothing of dependence
        if n == k or p in (0.0, 1.0) or k < 2:
            return float(k)
        # of a ratio of sums, linearised around p
        variance = k / (k - 1) * float(np.sum((self.successes - p * self.trials) ** 2)) / n**2
        # the number of independent trials that would have this variance, at most all there are
        size = min(n, p * (1 - p) / variance) if variance > 0 else n
        # Korn and Graubard's factor: k units estimate the variance with k - 1 degrees of freedom only
        return float(size * (student(0.95, round(n) - 1) / student(0.95, k - 1)) ** 2)

    def interval(self, level: float) -> Bounds:
        """Beta quantiles of the effective counts."""
        n, tail = self.effective, (1 - level) / 2
        x = n * self.value
        # Clopper and Pearson's interval, exact for independent trials; effective counts need not be whole.
        low = float(special.betaincinv(x, n - x + 1, tail)) if x > 0 else 0.0
        high = float(special.betainccinv(x + 1, n - x, tail)) if x < n else 1.0
        return low, high


class Middle(_Sample):
    """The median over replicates, between two order statistics; too few replicates give the whole line."""

    @property
    def value(self) -> float:
        """The median."""
        return float(np.median(self.values))

    def interval(self, level: float) -> Bounds:
        """From the (r+1)-th smallest to the (r+1)-th largest, r the largest with Binomial(n, 1/2) <= r in the tail."""
        r = _rank(level, self.units)
        ordered = np.sort(self.values)
        return EVERYTHING if r < 0 else (float(ordered[r]), float(ordered[-1 - r]))


@functools.cache
def _rank(level: float, n: int) -> int:
    from scipy import stats  # takes a quarter of a second, which every command would pay

    # ppf is the first r whose probability reaches the tail; one less stays below it
    return int(stats.binom.ppf((1 - level) / 2, n, 0.5)) - 1


@dataclass(frozen=True)
class Fixed:
    """A computation without noise: there is nothing to repeat."""

    value: float
    units: int = 1

    def interval(self, level: float) -> Bounds:
        """The value itself."""
        return self.value, self.value
