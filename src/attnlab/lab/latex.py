r"""A figure's numbers for a paper: a ``booktabs`` table of its points, and the whole picture for ``pgfplots``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from attnlab.lab.drawn import Mark

_SPECIAL = {"%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "^": r"\^{}", "~": r"\~{}"}
# Beyond this a line of a picture is thinned: TeX runs out of memory on long lists of coordinates.
MOST_COORDINATES = 200


def booktabs(rows: Iterable[Mark], caption: str) -> str:
    """The points of a figure, one table a panel: x, then mean ± half the error bar of each series."""
    tables = []
    for panel, points in _groups([row for row in rows if row.kind in ("points", "bars")], "panel").items():
        series = _groups(points, "series")
        xs = sorted({row.x for row in points})
        values = {name: {row.x: _value(row) for row in group} for name, group in series.items()}
        head = " & ".join(
            [_text(points[0].x_name) or "$x$", *(_text(name) or _text(points[0].y_name) for name in series)]
        )
        # a series may lack some of the x of the others
        body = [" & ".join([f"{x:.6g}", *(column.get(x, "") for column in values.values())]) + r" \\" for x in xs]
        tables.append(
            "\n".join(
                [
                    rf"\begin{{tabular}}{{r{'l' * len(series)}}}  % {panel}",
                    rf"\toprule {head} \\ \midrule",
                    *body,
                    r"\bottomrule",
                    r"\end{tabular}",
                ]
            )
        )
    return f"% {caption}\n% needs \\usepackage{{booktabs}}\n" + "\n\n".join(tables) + "\n"


def pgfplots(rows: Iterable[Mark], caption: str, logarithmic: Mapping[str, str] = MappingProxyType({})) -> str:
    """Every point, line and band of a figure, one axis a panel; images are left to the PDF.

    ``logarithmic`` names the axes of each panel that are: ``"x"``, ``"y"`` or ``"xy"``.
    """
    parts = [f"% {caption}", r"% needs \usepackage{pgfplots}"]
    for panel, marks in _groups([row for row in rows if row.kind != "image"], "panel").items():
        first = marks[0]
        options = [
            f"title={{{_text(panel)}}}",
            f"xlabel={{{_text(first.x_name)}}}",
            f"ylabel={{{_text(first.y_name)}}}",
            *(f"{axis}mode=log" for axis in logarithmic.get(panel, "")),
        ]
        parts.append("\\begin{tikzpicture}\n\\begin{axis}[" + ", ".join(options) + "]")
        for series in _groups(marks, "series").values():
            for number, curve in enumerate(_groups(series, "curve").values()):
                parts += _plot(curve, legend=not number)
        parts.append("\\end{axis}\n\\end{tikzpicture}")
    return "\n".join(parts) + "\n"


def _plot(curve: list[Mark], *, legend: bool) -> list[str]:
    """One curve; of those that share a name the first stands in the legend, whose entries go to the plots in order."""
    first = curve[0]
    legend = legend and bool(first.series)
    kept = [row for row in curve if math.isfinite(row.x) and math.isfinite(row.y)]
    kept = kept[:: max(1, len(kept) // MOST_COORDINATES)]
    bars = all(math.isfinite(row.high) for row in kept) and first.kind == "points"
    style = {"line": "no marks", "points": "only marks", "band": "no marks, dashed", "bars": "ybar"}[first.kind]
    if not legend:
        style = f"forget plot, {style}"  # else it would take the next entry of the legend
    if bars:
        style += ", error bars/.cd, y dir=both, y explicit"
    places = [f"({row.x:.6g},{row.y:.6g})" + (f" +- (0,{row.high - row.y:.3g})" if bars else "") for row in kept]
    named = [rf"\addlegendentry{{{_text(first.series)}}}"] if legend else []
    return [rf"\addplot+[{style}] coordinates {{{' '.join(places)}}};", *named]


def _value(row: Mark) -> str:
    half = (row.high - row.low) / 2
    return rf"${row.y:.4g} \pm {half:.2g}$" if row.kind == "points" and half > 0 else f"${row.y:.4g}$"


def _groups(rows: Iterable[Mark], name: str) -> dict[Any, list[Mark]]:
    found: dict[Any, list[Mark]] = {}
    for row in rows:
        found.setdefault(getattr(row, name), []).append(row)
    return found


def _text(words: str) -> str:
    """Words for TeX; what stands between dollars is mathematics already."""
    parts = words.split("$")
    # the pieces at even places are outside of the dollars
    parts[::2] = ["".join(_SPECIAL.get(letter, letter) for letter in part) for part in parts[::2]]
    return "$".join(parts)
