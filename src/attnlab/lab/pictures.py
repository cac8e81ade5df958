"""The files of one figure: its picture, the table behind it, and the settings that made it."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
from pathlib import Path
from typing import Any

from attnlab.common.drawing import style
from attnlab.lab import drawn, latex
from attnlab.lab.runner import Result
from attnlab.lab.sweep import to_toml

KINDS = ("png", "pdf", "svg", "csv", "tex", "pgf.tex", "toml")
# Dots an inch of the picture inside the page; the PNG beside it has twice as many.
SCREEN_DPI = 100
# Points of one axes beyond which its lines are stored as pixels in PDF and SVG.
DENSE = 20_000
DRAWN = ".drawn.json"


def publish(result: Result, folder: Path) -> bytes:
    """Write the files of a figure whose results or drawing have changed; return the picture for the page."""
    name, key = result.figure.name, _fingerprint(result)
    known = _known(folder)
    small = folder / ".screen" / f"{name}.png"
    if known.get(name) != key or not all((folder / f"{name}.{kind}").exists() for kind in KINDS) or not small.exists():
        _write(result, folder, small)
        # Written last, so that an interrupted drawing is drawn again.
        (folder / DRAWN).write_text(json.dumps(known | {name: key}, indent=0, sort_keys=True))
    return small.read_bytes()


def _write(result: Result, folder: Path, small: Path) -> None:
    name, caption = result.figure.name, f"{result.figure.title}. {result.figure.shows}"
    small.parent.mkdir(exist_ok=True)
    with style():
        canvas = result.draw()
        rasterize_dense(canvas)
        for kind in ("png", "pdf", "svg"):
            canvas.savefig(folder / f"{name}.{kind}")
        small.write_bytes(screen_picture(canvas))
        marks = drawn.marks(canvas)
    drawn.write(marks, folder / f"{name}.csv")
    (folder / f"{name}.tex").write_text(latex.booktabs(marks, caption), encoding="utf-8")
    (folder / f"{name}.pgf.tex").write_text(latex.pgfplots(marks, caption), encoding="utf-8")
    (folder / f"{name}.toml").write_text(to_toml(result.figure, result.scale), encoding="utf-8")


def screen_picture(canvas: Any, dpi: int = SCREEN_DPI) -> bytes:
    """A PNG with a palette of 256 colours: a third of the size, and lines stay sharp."""
    from PIL import Image

    full, small = io.BytesIO(), io.BytesIO()
    canvas.savefig(full, format="png", dpi=dpi)
    Image.open(full).convert("RGB").quantize(256).save(small, format="png", optimize=True)
    return small.getvalue()


def aspect(png: bytes) -> float:
    """Width over height of a PNG, from its header."""
    width, height = (int.from_bytes(png[first : first + 4], "big") for first in (16, 20))
    return width / height


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
    """Changes when the results or the code that draws them change."""
    source = inspect.getsourcefile(inspect.unwrap(result.figure.draw))
    parts = [Path(source).read_text() if source else "", result.scale, result.made.digest.hexdigest()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
