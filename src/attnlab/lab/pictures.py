"""The files of one figure: its picture, the table behind it, and the settings that made it."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.common.drawing import style
from attnlab.lab import drawn, latex
from attnlab.lab.runner import Result
from attnlab.lab.toml import to_toml

KINDS = ("png", "pdf", "svg", "csv", "tex", "pgf.tex", "toml")
# Dots an inch of the picture inside the page; the PNG beside it has twice as many.
SCREEN_DPI = 100
# Points of one axes beyond which its lines are stored as pixels in PDF and SVG.
DENSE = 20_000
LARGEST_SVG = 1_000_000  # bytes
DRAWN = ".drawn.json"
# How each source is named below a picture, and each kind of series.
SOURCES = {"theory": "Theory", "simulation": "Simulation", "unconverged": "Not converged", "published": "Published"}
NOUNS = {"line": "lines", "points": "points", "band": "bands", "bars": "bars", "image": "colours"}


class Pictures(NamedTuple):
    """What the page shows of a figure: its picture, the same with all panels in one column, what is drawn in words.

    The second is for a narrow screen, and empty where the first has one column.
    """

    wide: bytes = b""
    narrow: bytes = b""
    content: str = ""


def publish(result: Result, folder: Path) -> Pictures:
    """Write the files of a figure whose results or drawing have changed; return its pictures for the page."""
    name, key = result.figure.name, _fingerprint(result)
    known = _known(folder)
    screen = [folder / ".screen" / f"{name}.{kind}" for kind in ("png", "narrow.png", "txt")]
    files = [*screen, *(folder / f"{name}.{kind}" for kind in KINDS)]
    if known.get(name) != key or not all(file.exists() for file in files):
        _write(result, folder, *screen)
        # Written last, so that an interrupted drawing is drawn again.
        (folder / DRAWN).write_text(json.dumps(known | {name: key}, indent=0, sort_keys=True))
    wide, narrow, content = screen
    return Pictures(wide.read_bytes(), narrow.read_bytes(), content.read_text(encoding="utf-8"))


def contents(rows: Iterable[drawn.Mark]) -> str:
    """How theory and simulation are drawn, in words.

    >>> head = ("", "", 0), ("", "")
    >>> line = drawn.Mark(*head[0], "line", "theory", *head[1], 1.0, 2.0)
    >>> contents([line, line._replace(kind="points", source="simulation", low=1.5, high=2.5)])
    'Theory: lines. Simulation: points with error bars.'
    """
    found: dict[str, dict[str, bool]] = {}
    for row in rows:
        kinds = found.setdefault(row.source, {})
        kinds[row.kind] = kinds.get(row.kind, False) or (row.kind == "points" and row.high > row.low)
    sentences = []
    for source in [source for source in SOURCES if source in found]:
        *others, last = (NOUNS[kind] + " with error bars" * bars for kind, bars in found[source].items())
        words = f"{', '.join(others)} and {last}" if others else last
        sentences.append(f"{SOURCES[source]}: {'hollow ' * (source == 'unconverged')}{words}.")
    return " ".join(sentences)


def _write(result: Result, folder: Path, small: Path, narrow: Path, content: Path) -> None:
    name, caption = result.figure.name, f"{result.figure.title}. {result.figure.shows}"
    caption += f" {result.unconverged}." if result.unconverged else ""
    small.parent.mkdir(exist_ok=True)
    from matplotlib import rcParams

    with style():
        canvas = result.draw()
        rasterize_dense(canvas)
        full = rcParams["savefig.dpi"]
        canvas.set_dpi(full)
        canvas.draw_without_rendering()
        # The places of the panels and the frame are found once: a file that is saved with a layout engine, or with a
        # tight frame, measures every text once more, which takes as long as to draw. The resolution stays that of the
        # PNG, so that its texts are not measured again.
        engine = canvas.get_layout_engine()
        rcParams["figure.constrained_layout.use"] = False  # the style's, which a canvas without engine falls back to
        canvas.set_layout_engine(None)
        frame = canvas.get_tightbbox().padded(rcParams["savefig.pad_inches"])
        canvas.savefig(folder / f"{name}.png", bbox_inches=frame)
        canvas.savefig(folder / f"{name}.pdf", bbox_inches=frame)
        for dpi in (SCREEN_DPI, 70, 50):  # of the layers stored as pixels
            canvas.savefig(folder / f"{name}.svg", dpi=dpi, bbox_inches=frame)
            if (folder / f"{name}.svg").stat().st_size < LARGEST_SVG:
                break
        small.write_bytes(_palette(folder / f"{name}.png", shrink=round(full / SCREEN_DPI)))
        marks, logarithmic = drawn.marks(canvas), drawn.logarithmic(canvas)
        canvas.set_layout_engine(engine)
        narrow.write_bytes(screen_picture(canvas, colors=64) if stack(canvas) else b"")
    content.write_text(contents(marks), encoding="utf-8")
    drawn.write(marks, folder / f"{name}.csv")
    (folder / f"{name}.tex").write_text(latex.booktabs(marks, caption), encoding="utf-8")
    (folder / f"{name}.pgf.tex").write_text(latex.pgfplots(marks, caption, logarithmic), encoding="utf-8")
    (folder / f"{name}.toml").write_text(to_toml(result.figure, result.scale), encoding="utf-8")


def screen_picture(canvas: Any, colors: int = 256) -> bytes:
    """The PNG of a canvas for a screen."""
    full = io.BytesIO()
    canvas.savefig(full, format="png", dpi=SCREEN_DPI)
    return _palette(full, colors=colors)


def _palette(file: Any, *, shrink: int = 1, colors: int = 256) -> bytes:
    """A PNG with a palette of few colours: a third of the size, and lines stay sharp."""
    from PIL import Image

    small = io.BytesIO()
    Image.open(file).convert("RGB").reduce(shrink).quantize(colors).save(small, format="png", optimize=True)
    return small.getvalue()


def stack(canvas: Any) -> bool:
    """Move the panels of a canvas into one column, each with the axis labels of its row and column; False if they are.

    Colour bars and insets follow their panels; a legend of the canvas gets one column too.
    """
    groups: dict[tuple[int, int], list[Any]] = {}
    for axes in canvas.axes:
        if (place := axes.get_subplotspec()) is not None:
            groups.setdefault((place.rowspan.start, place.colspan.start), []).append(axes)
    if len({column for _, column in groups}) < 2:
        return False
    rows, columns = (1 + max(place) for place in zip(*groups, strict=True))
    labels = {place: (axes[0].get_xlabel(), axes[0].get_ylabel()) for place, axes in groups.items()}
    grid = canvas.add_gridspec(len(groups), 1)
    for number, (row, column) in enumerate(sorted(groups)):
        below = [labels[place][0] for place in sorted(groups) if place[1] == column and place[0] >= row]
        left = [labels[place][1] for place in sorted(groups, reverse=True) if place[0] == row and place[1] <= column]
        for axes in groups[row, column]:
            axes.set_subplotspec(grid[number, 0])
        first = groups[row, column][0]
        first.tick_params(labelbottom=True, labelleft=True)
        first.set(xlabel=next(filter(None, below), ""), ylabel=next(filter(None, left), ""))
    width, height = canvas.get_size_inches()
    entries = _legends_in_one_column(canvas)
    canvas.set_size_inches(width / columns, height / rows * len(groups) + 0.2 * entries)
    return True


def _legends_in_one_column(canvas: Any) -> int:
    """Draw the legends of the canvas itself again below the panels; the number of their entries."""
    # A legend keeps only the line of points with error bars; the panels have the whole.
    whole = {
        name: handle for axes in canvas.axes for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    entries = 0
    for legend in list(canvas.legends):
        names = [text.get_text() for text in legend.get_texts()]
        handles = [whole.get(name, kept) for name, kept in zip(names, legend.legend_handles, strict=True)]
        legend.remove()
        canvas.legend(handles, names, loc="outside lower center", ncols=1)
        entries += len(names)
    return entries


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG in pixels, from its header."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def rasterize_dense(canvas: Any) -> None:
    """Store panels with very many points as pixels: a vector file of them is large and slow to open."""
    for axes in canvas.axes:
        sizes = [len(line.get_xdata()) for line in axes.lines]
        if sum(sizes) > DENSE:
            for line in axes.lines:
                line.set_rasterized(True)
        for group in axes.collections:
            group.set_rasterized(True)


def _known(folder: Path) -> dict[str, str]:
    """Which results each figure of the folder was drawn from; a damaged list means that all are drawn again."""
    try:
        known = json.loads((folder / DRAWN).read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _fingerprint(result: Result) -> str:
    """Changes when the results change, or the code that draws them and writes the files."""
    source = inspect.getsourcefile(inspect.unwrap(result.figure.draw))
    parts = [Path(source).read_text() if source else "", result.scale, result.made.digest.hexdigest(), _writers()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def _writers() -> str:
    """The source of what writes the files of a figure."""
    return "\n".join(Path(file).read_text() for file in (__file__, drawn.__file__, latex.__file__))
