"""Many claims at once: how many of those that hold may do so by accident, and which hold together."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attnlab.common.records import CONFIDENCE

# A claim that is just not true is said to hold when its interval lies inside the threshold by accident: one tail.
FALSE_HOLD = (1 - CONFIDENCE) / 2


def expected_false_holds(noisy: int) -> float:
    """The largest expected number of claims that hold by accident, were none of them true.

    >>> round(expected_false_holds(120), 3)
    3.0
    """
    return noisy * FALSE_HOLD


def holm(p_values: Mapping[str, float]) -> set[str]:
    """The claims that hold together, the chance of any false one among them at most that of a single claim.

    ``p_values`` are those of two-sided intervals (:attr:`Verdict.p_value`). NaN, a claim without a value, takes part
    in the count and never holds. Source: S. Holm, Scand. J. Statist. 6 (1979) 65.

    >>> sorted(holm({"a": 0.001, "b": 0.02, "c": 0.03}))
    ['a', 'b', 'c']
    >>> sorted(holm({"a": 0.001, "b": 0.03, "c": 0.03}))
    ['a']
    """
    known = {id: math.inf if math.isnan(p) else p for id, p in p_values.items()}
    kept: set[str] = set()
    for i, id in enumerate(sorted(known, key=lambda id: known[id])):
        # the level of both tails, as the p-values are; each claim errs in one of them
        if known[id] > (1 - CONFIDENCE) / (len(known) - i):
            break
        kept.add(id)
    return kept
