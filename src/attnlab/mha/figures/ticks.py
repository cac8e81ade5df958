"""What several figures draw alike: logarithmic axes with the values of the grid, shares with exact intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.common.records import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Share of the axis that one character of a label takes in a panel of four inches.
_CHARACTER = 0.045


def log_values(ax: Axes, values: Sequence[float]) -> None:
    """A logarithmic x axis with a tick at each value, labelled where there is room."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    ax.set_xticks(list(values), _labels(list(values)))
    ax.xaxis.set_minor_locator(NullLocator())


def shares(ax: Axes, x: Any, estimates: Sequence[Estimate], **look: Any) -> None:
    """Shares of successes with their exact intervals."""
    value, low, high = np.array([(share.value, share.low, share.high) for share in estimates]).T
    ax.errorbar(x, value, yerr=[value - low, high - value], capsize=2, **look)


def _labels(values: list[float]) -> list[str]:
    """The values with k for thousands; empty where a label would run into the one before.

    >>> _labels([300, 4000, 100000]), _labels([30, 31, 300])
    (['300', '4k', '100k'], ['30', '', '300'])
    """
    labels: list[str] = []
    shown, span = 0.0, log(values[-1] / values[0])
    for value in values:
        text = f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
        free = not shown or log(value / shown) >= _CHARACTER * len(text) * span
        labels.append(text if free else "")
        shown = value if free else shown
    return labels
