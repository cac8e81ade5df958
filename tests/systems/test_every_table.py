"""The table behind each figure redraws it: every point, line, band and pixel, with its series and its source."""

import ast
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
from small_figures import small

from attnlab import lab
from attnlab.common.drawing import SOURCES
from attnlab.lab import drawn, registry

FIGURES = registry.figures()
# One of each system and each kind of drawing, those whose cells take less than a second.
FAST = ("aim.hardmax_small_width", "aim.trajectory", "icl.two_errors", "mha.hull", "rfa.complexity", "slr.small")
# Calls of matplotlib whose artists the table reads, and those it does not.
READ = {"plot", "errorbar", "fill_between", "bar", "hist", "stairs", "step", "imshow", "pcolormesh", "scatter"}
READ |= {"axhline", "axvline", "hlines", "vlines"}
UNREAD = {"contour", "contourf", "quiver", "streamplot", "pie", "hexbin", "boxplot", "violinplot", "axhspan", "axvspan"}
UNREAD |= {"fill", "tripcolor", "tricontourf", "tricontour", "matshow", "spy", "barbs", "arrow"}
UNREAD |= {"add_patch", "add_collection"}


def comparable(marks):
    """Rows without the numbers of their curves, which count artists in the order in which they are drawn."""
    rows = []
    for mark in marks:
        # the middle of a bar is its left edge and half its width: right to rounding
        numbers = (f"{number:.9g}" for number in (mark.x, mark.y, mark.low, mark.high, mark.z))
        rows.append((mark.panel, mark.series, mark.kind, mark.source, mark.x_name, mark.y_name, *numbers))
    return sorted(rows)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_draws_with_what_the_table_reads(name):
    tree = ast.parse(Path(inspect.getsourcefile(inspect.unwrap(FIGURES[name].draw))).read_text())
    called = {
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not called & UNREAD


# Curves of published numbers and of theory have no runs.
WITHOUT_RUNS = {"aim.gradient_descent", "smi.skip_thresholds"}


@pytest.mark.parametrize("name", sorted(FIGURES.keys() - WITHOUT_RUNS))
def test_a_figure_that_makes_a_curve_keeps_the_count_of_runs_that_did_not_converge(name):
    tree = ast.parse(Path(inspect.getsourcefile(inspect.unwrap(FIGURES[name].draw))).read_text())
    made = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "Curve"]
    # x, mean and sem may come as the parts of another curve
    parts = [sum(3 if isinstance(arg, ast.Starred) else 1 for arg in (*call.args, *call.keywords)) for call in made]
    assert all(count == 4 for count in parts)


def test_what_the_table_reads_is_read_and_the_rest_is_refused():
    canvas, axes = lab_panels()
    axes.stairs([1.0, 2.0], [0.0, 1.0, 3.0])
    assert [(m.x, m.y, m.kind, m.source) for m in drawn.marks(canvas)] == [
        (0, 1, "line", "theory"),
        (1, 1, "line", "theory"),
        (1, 2, "line", "theory"),
        (3, 2, "line", "theory"),
    ]
    canvas, axes = lab_panels()
    axes.contourf(np.eye(3))
    with pytest.raises(TypeError, match="QuadContourSet has no table"):
        drawn.marks(canvas)


def lab_panels():
    from attnlab.common.drawing import panels

    canvas, axes = panels()
    return canvas, axes[0, 0]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in FAST))
        for name, figure in FIGURES.items()
        if not figure.requires
    ],
)
def test_the_table_of_a_figure_redraws_it(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = lab.run(small(FIGURES[name]))
        assert not result.failed
        marks = drawn.marks(result.draw())
    assert marks
    assert {mark.source for mark in marks} <= {*SOURCES, "unconverged"}
    drawn.write(marks, tmp_path / "table.csv")
    assert comparable(drawn.marks(drawn.redraw(drawn.read(tmp_path / "table.csv")))) == comparable(marks)
