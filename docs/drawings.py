"""The drawings of the four models: ``python docs/drawings.py`` writes docs/images/model_*.svg."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from attnlab.common.drawing import COLORS

IMAGES = Path(__file__).parent / "images"
BLUE, ORANGE, GREEN, GREY = COLORS[0], COLORS[1], COLORS[2], "#cccccc"


def canvas(width):
    """An empty plane whose unit is the side of a matrix cell."""
    figure = Figure(figsize=(width * 0.36, 2.6))
    plane = figure.add_axes((0, 0, 1, 1))
    plane.set(xlim=(0, width), ylim=(0, 7.2), aspect="equal")
    plane.axis("off")
    return figure, plane


def block(plane, x, y, rows, columns, color, seed=0, strong=None):
    """A matrix whose cells have random shades; the row ``strong`` is in full colour."""
    shades = 0.15 + 0.45 * np.random.default_rng(seed).random((rows, columns))
    for i in range(rows):
        for j in range(columns):
            shade = 0.95 if strong == i else shades[i, j]
            plane.add_patch(Rectangle((x + j, y + rows - 1 - i), 1, 1, facecolor=color, alpha=shade, edgecolor="white"))
    plane.add_patch(Rectangle((x, y), columns, rows, fill=False, edgecolor="#444444", linewidth=1))


def arrow(plane, start, end):
    plane.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=13, color="#444444", linewidth=1.2))


def say(plane, x, y, text, **style):
    plane.text(x, y, text, ha="center", va="center", fontsize=12, **style)


def slr():
    """One token carries the mark and the output."""
    figure, plane = canvas(27)
    block(plane, 2.5, 1.3, 5, 6, BLUE, 1, strong=2)
    say(plane, 5.5, 0.6, "$L$ tokens, one informative")
    say(plane, 1.3, 3.8, "$J$", color=ORANGE, weight="bold")
    arrow(plane, (9, 4.6), (12, 4.6))
    say(plane, 10.5, 5.6, r"$X_l\cdot k$")
    for i, height in enumerate((0.15, -0.1, 1.6, 0.1, -0.2)):
        color = ORANGE if i == 2 else GREY
        plane.add_patch(Rectangle((12.6 + 0.9 * i, 4.6), 0.7, height, facecolor=color))
    say(plane, 14.9, 6.8, r"where: $\mathrm{erf}(\lambda X_l\cdot k)$")
    arrow(plane, (9, 2.4), (12, 2.4))
    say(plane, 10.5, 1.5, r"$X_l\cdot v$")
    for i, height in enumerate((0.7, -0.6, 1.0, 0.4, -0.8)):
        plane.add_patch(Rectangle((12.6 + 0.9 * i, 2.4), 0.7, height, facecolor=BLUE, alpha=0.95 if i == 2 else 0.35))
    say(plane, 14.9, 0.6, r"what: $X_l\cdot v$")
    arrow(plane, (18, 3.6), (20.4, 3.6))
    say(plane, 23.5, 3.6, r"$\sum_l$ where $\times$ what $\approx y$")
    return figure


def rfa():
    """Random heads score the keys against the query; values are trained."""
    figure, plane = canvas(31)
    block(plane, 1, 5.4, 1, 5, ORANGE, 2)
    say(plane, 3.5, 6.8, "query $x_0$")
    block(plane, 1, 1.2, 3, 5, BLUE, 3)
    say(plane, 3.5, 0.5, "keys $x_1 \\dots x_N$")
    for k, shift in enumerate((0.8, 0.4, 0.0)):
        plane.add_patch(Rectangle((9.2 + shift, 1.6 + shift), 4, 4, facecolor="white", edgecolor="#444444"))
        if k == 2:
            block(plane, 9.2, 1.6, 4, 4, GREY, 4)
    say(plane, 11.6, 0.7, "$M$ random matrices $W_m$, frozen")
    arrow(plane, (6.3, 4.2), (8.9, 4.2))
    arrow(plane, (14.4, 4.2), (16.6, 4.2))
    say(plane, 20.6, 5.5, r"scores $\sigma(x_0^T W_m x_i)$")
    say(plane, 20.6, 4.2, r"$\frac{1}{N}\sum_i \sigma(\cdot)\,\langle v_m, x_i\rangle$")
    say(plane, 20.6, 2.8, "values $v_m$ trained by ridge", color=GREEN)
    arrow(plane, (24.9, 4.2), (27, 4.2))
    say(plane, 28.7, 4.2, "$f(x)$")
    return figure


def aim():
    """One matrix S of extensive rank, seen through attention scores."""
    figure, plane = canvas(29)
    block(plane, 0.8, 3, 2, 5, BLUE, 5)
    say(plane, 3.3, 2.2, "$T$ tokens")
    say(plane, 6.9, 4, r"$\times$")
    block(plane, 8, 1.6, 5, 5, ORANGE, 6)
    say(plane, 10.5, 0.8, r"unknown $S = WW^T/\sqrt{rd}$")
    say(plane, 14, 4, r"$\times$")
    block(plane, 15, 1.6, 5, 2, BLUE, 5)
    say(plane, 16, 0.8, "$X^T$")
    arrow(plane, (18, 4), (21.4, 4))
    say(plane, 19.7, 5, "softmax")
    block(plane, 22.2, 3, 2, 2, GREEN, 7)
    say(plane, 23.6, 2.2, r"seen: $y$")
    say(plane, 26.7, 4, r"$n = \alpha d^2$")
    return figure


def mha():
    """The sum of m heads; all matrices are unknown."""
    figure, plane = canvas(32)
    block(plane, 0.8, 2.4, 3, 4, BLUE, 8)
    say(plane, 2.8, 1.6, "$k$ tokens, ±1")
    for row, (label, y) in enumerate((("1", 4.5), ("m", 0.7))):
        arrow(plane, (5.2, 4), (7.2, y + 1.1))
        block(plane, 7.6, y, 2, 2, ORANGE, 9 + row)
        say(plane, 12.9, y + 1, rf"softmax$(X\Theta_{label} X^T)\,X$")
        say(plane, 16.4, y + 1, r"$\times$")
        block(plane, 17.2, y, 2, 2, GREEN, 11 + row)
        say(plane, 20.2, y + 1, f"$W_{label}$")
        arrow(plane, (21.1, y + 1.1), (23.3, 4))
    say(plane, 8.6, 3.6, r"$\vdots$")
    say(plane, 24, 4, r"$\Sigma$")
    arrow(plane, (24.7, 4), (26.2, 4))
    block(plane, 26.8, 2.4, 3, 4, BLUE, 13)
    say(plane, 28.8, 1.6, "$F(X)$ seen")
    return figure


if __name__ == "__main__":
    for draw in (slr, rfa, aim, mha):
        draw().savefig(IMAGES / f"model_{draw.__name__}.svg", metadata={"Date": None})
