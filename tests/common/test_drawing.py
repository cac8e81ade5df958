import io

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from attnlab.common.drawing import COLORS, MARKERS, band, line, panels, points, style
from attnlab.common.records import Curve, Records


def test_panels_are_an_array_of_axes_in_the_house_style():
    before = dict(matplotlib.rcParams)
    canvas, axes = panels(2, 3, width=2, height=1, sharex=True)
    assert axes.shape == (2, 3)
    assert canvas.get_size_inches().tolist() == [6, 2]
    assert not axes[0, 0].spines["top"].get_visible()
    assert dict(matplotlib.rcParams) == before


def test_no_global_pyplot_state_is_made():
    import sys

    loaded = "matplotlib.pyplot" in sys.modules
    panels()
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_the_style_file_and_the_palette_agree():
    with style():
        cycle = [to_hex(c["color"]).upper() for c in matplotlib.rcParams["axes.prop_cycle"]]
    assert cycle == [c.upper() for c in COLORS]
    assert len(set(COLORS)) == len(set(MARKERS)) == len(COLORS) == 8


def test_theory_is_a_line_and_simulation_is_points_with_bars():
    _, axes = panels()
    line(axes[0, 0], [0, 1], [2, 3], label="theory")
    (theory,) = axes[0, 0].lines
    assert (theory.get_linestyle(), theory.get_marker()) == ("-", "")
    points(axes[0, 0], Curve(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0.5, np.nan])), color=COLORS[1])
    (bars,) = axes[0, 0].containers
    assert bars.lines[0].get_linestyle() == "None"
    assert bars.lines[0].get_marker() == "o"
    (segments,) = bars.lines[2]
    # one standard error to either side; a single run has none
    assert np.allclose([s[:, 1] for s in segments.get_segments()], [[2.5, 3.5], [4.0, 4.0]])


def test_a_mean_over_runs_that_did_not_converge_is_hollow():
    rows = [{"n": n, "error": 1.0, "converged": n > 1} for n in (1, 2)] + [{"n": 2, "error": 1.0, "converged": None}]
    _, axes = panels()
    points(axes[0, 0], Records.of(rows).curve("n", "error"), color=COLORS[1], fmt="s")
    hollow = axes[0, 0].lines[-1]
    assert hollow.get_xdata().tolist() == [1.0]
    assert (hollow.get_marker(), hollow.get_markerfacecolor()) == ("s", "white")


def test_a_band_is_the_mean_and_the_central_95_percent():
    _, axes = panels()
    samples = np.linspace(0, 1, 101)[:, None] * np.array([1.0, 2.0])
    band(axes[0, 0], [0.0, 1.0], samples)
    assert np.allclose(axes[0, 0].lines[0].get_ydata(), [0.5, 1.0])
    (shade,) = axes[0, 0].collections
    heights = shade.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.025, 1.95))


def test_options_of_the_caller_win():
    _, axes = panels()
    points(axes[0, 0], Curve(*np.ones((3, 2))), fmt="s", capsize=0, label="x")
    assert axes[0, 0].containers[0].lines[0].get_marker() == "s"
    line(axes[0, 0], [0, 1], [0, 1], linestyle="--")
    assert axes[0, 0].lines[-1].get_linestyle() == "--"


@pytest.mark.parametrize("form", ["png", "pdf", "svg"])
def test_a_canvas_saves_without_a_display(form):
    canvas, axes = panels()
    line(axes[0, 0], [0, 1], [0, 1])
    file = io.BytesIO()
    with style():
        canvas.savefig(file, format=form)
    assert len(file.getvalue()) > 1000
