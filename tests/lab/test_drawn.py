"""The table behind a picture holds what is drawn: redrawing it gives the same numbers."""

import csv

import numpy as np
import pytest
from toy_figures import FIGURE

from attnlab import lab
from attnlab.common.drawing import COLORS, band, line, panels, points
from attnlab.common.records import Curve
from attnlab.lab import drawn, latex


@pytest.fixture
def canvas():
    figure, axes = panels(1, 2)
    left, right = axes[0]
    line(left, [1, 2, 3], [1.5, 4.5, 9.5], color=COLORS[0], label="$d = 4$")
    points(left, Curve(np.array([1.0, 2, 3]), np.array([1.0, 4, 9]), np.array([0.1, 0.2, np.nan])), color=COLORS[0])
    left.axhline(2.0, gid="guide")
    left.set(xlabel="x", ylabel="error", title="first")
    band(right, [1.0, 2, 3], np.random.default_rng(0).normal(size=(20, 3)))
    right.pcolormesh([0, 1, 2], [0, 1], np.arange(6.0).reshape(2, 3), shading="gouraud")
    right.scatter([1, 2], [3, 4], gid="published")
    right.bar([1, 2], [3, 4], label="bars")
    right.imshow(np.eye(2))
    return figure


def numbers(marks):
    return sorted((m.kind, m.x, m.y, *np.nan_to_num([m.low, m.high, m.z], nan=-1.0)) for m in marks)


def test_points_carry_their_error_bars_and_the_name_of_the_line_of_their_colour(canvas):
    simulated = [m for m in drawn.marks(canvas) if m.source == "simulation" and m.panel == "first"]
    assert [(m.x, m.y) for m in simulated] == [(1, 1), (2, 4), (3, 9)]
    np.testing.assert_allclose([(m.low, m.high) for m in simulated], [(0.9, 1.1), (3.8, 4.2), (9, 9)])
    assert {m.series for m in simulated} == {"$d = 4$"}
    assert {(m.x_name, m.y_name) for m in simulated} == {("x", "error")}


def test_an_entry_of_the_legend_without_points_is_no_series():
    canvas, axes = panels()
    axes[0, 0].errorbar([], [], yerr=[], fmt="o", label="AMP")
    assert drawn.marks(canvas) == []


def test_a_label_that_the_legend_does_not_show_names_the_series():
    canvas, axes = panels()
    axes[0, 0].plot([1, 2], [3, 4], label="_limit")
    axes[0, 0].plot([1, 2], [5, 6])
    axes[0, 0].errorbar([1, 2], [5, 6], yerr=[np.nan, 1.0], fmt="o")
    found = drawn.marks(canvas)
    assert {m.series for m in found} == {"limit", ""}
    assert [(m.low, m.high) for m in found if m.kind == "points"][1] == (5, 7)


def test_a_guide_spans_the_panel(canvas):
    guide = [m for m in drawn.marks(canvas) if m.source == "guide"]
    assert [m.y for m in guide] == [2.0, 2.0]
    assert tuple(m.x for m in guide) == canvas.axes[0].get_xlim()


def test_every_kind_is_read(canvas):
    kinds = {m.kind for m in drawn.marks(canvas) if m.panel != "first"}
    assert kinds == {"line", "band", "image", "points", "bars"}


def test_the_table_redraws_the_picture(canvas, tmp_path):
    marks = [m for m in drawn.marks(canvas) if m.source != "guide"]
    drawn.write(marks, tmp_path / "t.csv")
    assert numbers(drawn.marks(drawn.redraw(drawn.read(tmp_path / "t.csv")))) == numbers(marks)


def test_another_table_is_refused_by_name(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"t\.csv is not the table of a figure: its columns are a, b"):
        drawn.read(tmp_path / "t.csv")


def test_the_report_writes_the_table_beside_the_picture(tmp_path):
    result = lab.run(FIGURE)
    lab.report([result], tmp_path)
    with open(tmp_path / "toy.mean.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kind"] for row in rows} >= {"points"}
    assert numbers(drawn.read(tmp_path / "toy.mean.csv")) == numbers(drawn.marks(result.draw()))


def test_tables_for_a_paper(canvas):
    marks = drawn.marks(canvas)
    table = latex.booktabs(marks, "A caption")
    assert r"$4 \pm 0.2$" in table
    assert table.count(r"\toprule") == table.count(r"\bottomrule") == 2
    picture = latex.pgfplots(marks, "A caption")
    assert picture.count(r"\begin{axis}") == picture.count(r"\end{axis}") == 2
    assert "(2,4) +- (0,0.2)" in picture
    assert r"\addlegendentry{$d = 4$}" in picture
    # entries of a legend go to plots in order, so that every plot has one or is forgotten
    assert picture.count(r"\addplot") == picture.count(r"\addlegendentry") + picture.count("forget plot")


def test_logarithmic_axes_are_so_in_latex():
    figure, axes = panels(1, 2)
    for ax, title in zip(axes[0], ("first", "second"), strict=True):
        ax.plot([1, 2], [3, 4], label="run")
        ax.plot([1, 2], [4, 5], label="run")
        ax.set_title(title)
    axes[0, 1].set(xscale="log", yscale="log")
    assert drawn.logarithmic(figure) == {"first": "", "second": "xy"}
    first, second = latex.pgfplots(drawn.marks(figure), "", drawn.logarithmic(figure)).split(r"\end{axis}")[:2]
    assert "mode=log" not in first
    assert "xmode=log, ymode=log" in second
    assert first.count("forget plot") == first.count(r"\addlegendentry") == 1


def test_a_sample_for_the_legend_has_no_points():
    figure, axes = panels()
    axes[0, 0].errorbar([], [], yerr=[], fmt="o", label="AMP")
    assert drawn.marks(figure) == []
