"""One style for all pictures: theory is a line, simulation is points with error bars, colours are colour-blind safe.

The group id of an artist is what it shows (:data:`SOURCES`); the table behind a picture carries it as ``source``.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas

from attnlab.common.arrays import ArrayLike
from attnlab.common.records import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of M. Okabe and K. Ito, distinguishable with any colour vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
SOURCES = ("theory", "simulation", "published", "guide")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def style() -> Any:
    """The context in which every figure is drawn and saved."""
    path = resources.files("attnlab.common") / "attnlab.mplstyle"
    return matplotlib.rc_context(fname=str(path))


def panels(
    rows: int = 1, columns: int = 1, *, width: float = 4.2, height: float = 3.3, **options: Any
) -> tuple[Canvas, np.ndarray]:
    """A canvas with an array of axes, ``(rows, columns)``; no global pyplot state."""
    with style():
        canvas = Canvas(figsize=(width * columns, height * rows), layout="constrained")
        return canvas, canvas.subplots(rows, columns, squeeze=False, **options)


def points(axes: Axes, curve: Curve, **options: Any) -> None:
    """Simulation: means as markers, one standard error as bars; hollow where a run did not converge."""
    options = {"fmt": "o", "capsize": 2, "elinewidth": 1, "gid": "simulation", **options}
    # the standard error of a single run is NaN: its marker stands without a bar
    drawn = axes.errorbar(curve.x, curve.mean, yerr=np.nan_to_num(curve.sem), **options)
    if curve.unconverged is not None and (missed := curve.unconverged > 0).any():
        full = drawn.lines[0]
        shape: dict[str, Any] = {"marker": full.get_marker(), "ms": full.get_markersize(), "color": full.get_color()}
        # one step up: white faces that cover the filled markers at the same places
        above: dict[str, Any] = {"mfc": "white", "zorder": full.get_zorder() + 1, "gid": "unconverged"}
        axes.plot(curve.x[missed], curve.mean[missed], linestyle="", **shape, **above)


def line(axes: Axes, x: ArrayLike, y: ArrayLike, **options: Any) -> None:
    """Theory: a line without markers."""
    axes.plot(x, y, **{"linestyle": "-", "marker": "", "gid": "theory", **options})


def band(axes: Axes, x: ArrayLike, samples: np.ndarray, **options: Any) -> None:
    """Mean over runs (axis 0) with the central 95 % of the runs shaded."""
    low, high = np.percentile(samples, [2.5, 97.5], axis=0)
    (drawn,) = axes.plot(x, samples.mean(axis=0), **{"gid": "simulation", **options})
    axes.fill_between(np.asarray(x), low, high, color=drawn.get_color(), alpha=0.2, linewidth=0, gid=drawn.get_gid())


def plain_log(axes: Axes, which: str = "x") -> None:
    """Decimal numbers along a logarithmic axis; 1, 2, 5 where it spans little, every digit where less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    subs = range(1, 10) if high < 6 * low else (1, 2, 5) if high < 200 * low else (1,)
    # with fewer ticks than decades on the axis the locator would leave decades out
    axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    if high < 200 * low:
        axis.set_minor_locator(NullLocator())
