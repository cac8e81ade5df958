"""What a design can find: the smallest effect seen with 80 % probability, and the replicates that decide a claim.

Both take the noise as it was estimated, so they are orders of magnitude when replicates are few.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from scipy import special

from attnlab.common.composed import Exponential
from attnlab.common.intervals import Bounds, Fixed, LogRatio, Measured, Share, exp, student

POWER = 0.8
MOST_REPLICATES = 1e9


def smallest_effect(measured: Measured, holds: Bounds, level: float) -> float:
    r"""How far inside its threshold the truth must be for the claim to hold with probability 80 %.

    For Student's intervals :math:`\delta\,\mathrm{se}` with :math:`P(T_{n-1,\delta} > t_{n-1}) = 0.8`, the noncentral
    t distribution; on the logarithm for ratios; for shares exactly, from the binomial distribution. Zero for a
    computation without noise. Of two bounds, the larger effect; infinite where no truth is as far inside both, or where
    no outcome of the design would decide.
    """
    if isinstance(measured, Fixed):
        return 0.0
    effects = [_effect(measured, bound, side, level) for bound, side in zip(holds, (1, -1), strict=True)]
    return max(effects) if sum(effects) <= holds[1] - holds[0] else math.inf


def _effect(measured: Measured, bound: float, side: int, level: float) -> float:
    if not math.isfinite(bound):
        return 0.0
    if isinstance(measured, Share):
        # a share of at most b is a share of failures of at least 1 - b
        return _share_effect(round(measured.effective), bound if side > 0 else 1 - bound, level)
    if measured.units < 2:
        return math.inf
    low, high = measured.interval(level)
    # from the half-width of the interval, student * se, to the effect, noncentrality * se
    scale = _noncentrality(measured.units, level) / student(level, measured.units - 1)
    if isinstance(measured, LogRatio | Exponential) and low > 0:
        # the half-width is one of the logarithm: the effect is a factor, here as a distance from the bound
        return abs(bound) * abs(exp(side * scale * math.log(high / low) / 2) - 1)
    return scale * (high - low) / 2


@functools.cache
def _noncentrality(n: int, level: float) -> float:
    """The shift, in standard errors, at which Student's test of n replicates rejects with probability 80 %."""
    from scipy import optimize, stats  # here: they take a third of a second, which every command would pay

    edge = student(level, n - 1)

    def excess(shift: float) -> float:
        return float(stats.nct.sf(edge, n - 1, shift)) - POWER

    # without a shift the power is one tail; at the upper end it is near one even for two replicates
    return float(optimize.brentq(excess, 0.0, 4 * edge + 10))


def _share_effect(n: int, least: float, level: float) -> float:
    """How far above ``least`` a share must be for n independent units to show it with probability 80 %."""
    needed = next((x for x in range(n + 1) if _lower_end(x, n, level) >= least), None)
    if needed is None:
        return math.inf
    # P(Binomial(n, p) >= needed) = 0.8 is a beta quantile in p
    return float(special.betaincinv(needed, n - needed + 1, POWER)) - least


def _lower_end(x: int, n: int, level: float) -> float:
    return float(special.betaincinv(x, n - x + 1, (1 - level) / 2)) if x else 0.0


def replicates_needed(measured: Measured, holds: Bounds, level: float) -> float:
    r"""The replicates whose interval would be on one side of the threshold, at the present value and noise.

    Half-widths are :math:`t_{n-1}\,s/\sqrt n` with s from the present interval; for shares they are those of
    Clopper-Pearson. Infinite beyond a billion, NaN where the noise is unknown.
    """
    n = measured.units
    if isinstance(measured, Share):
        trials = max(round(measured.effective), 1)
        needed = _search(trials, lambda k: _decided(_share_bounds(k, measured.value, level), holds))
        return needed * n / trials  # dependent trials count for less, or more, than a unit
    distance = min(abs(measured.value - bound) for bound in holds)
    if n < 2 or not math.isfinite(distance):
        return math.nan
    low, high = measured.interval(level)
    # the standard deviation behind the present interval, by inverting its half-width
    spread = (high - low) / 2 / student(level, n - 1) * math.sqrt(n)
    if not math.isfinite(spread):
        return math.nan
    return _search(n, lambda k: student(level, k - 1) * spread / math.sqrt(k) <= distance)


def _share_bounds(n: int, value: float, level: float) -> Bounds:
    x = round(n * value)
    return _lower_end(x, n, level), 1 - _lower_end(n - x, n, level)


def _decided(bounds: Bounds, holds: Bounds) -> bool:
    low, high = bounds
    return (holds[0] <= low and high <= holds[1]) or high < holds[0] or holds[1] < low


def _search(start: int, enough: Callable[[int], bool]) -> float:
    """The smallest number beyond ``start`` that is enough, by doubling and bisection."""
    # the present number is known not to be enough: the claim is undecided
    few, many = start, 2 * start
    while not enough(many):
        few, many = many, 2 * many
        if many > MOST_REPLICATES:
            return math.inf
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return float(many)
