"""Logarithmic axes that show the values of the grid and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def log_values(ax: Axes, values: Sequence[float]) -> None:
    """A logarithmic x axis with a tick at each value."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    ax.set_xticks(list(values), [_short(value) for value in values])
    ax.xaxis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    """A number with k for thousands.

    >>> _short(300), _short(4000), _short(100000)
    ('300', '4k', '100k')
    """
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
