"""Figures draw what they were asked for, not only the settings they ship with."""

import numpy as np
import pytest

from attnlab.aim.figures import FIGURES, descent, hardmax, softmax
from attnlab.common.records import Records
from attnlab.lab import drawn


def records(**setting):
    rows = [{"d": 60, "alpha": alpha, "mse": 0.3, "se": 0.3, "seed": 0, **setting} for alpha in (0.02, 0.05)]
    return Records.of(rows)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_softmax_draws_another_width_and_another_number_of_tokens():
    (axes,) = softmax.draw(records(rho=0.8, tokens=3)).axes
    assert r"$\rho = 0.8$" in legend(axes)
    assert "$T = 3$" in axes.get_title(loc="left")
    # the line of the centred prior ends where measurements equal parameters, 1/(T^2 + T - 2)
    assert 0.1 < axes.get_xlim()[1] < 0.12


def test_hardmax_draws_another_width_beside_the_published_curve():
    correct, published = hardmax.draw(records(rho=0.8, tokens=2)).axes
    assert r"$\rho = 0.8$" in legend(correct)
    assert len(published.lines) == len(correct.lines)


def test_a_quarter_of_the_gap_of_averaged_descent_is_the_number_of_starts():
    """The shipped grid: A_m = A + (E_1 - A)/m with m = 32 starts; docs/aim.md quotes what is left."""
    rows = [row for row in descent.read_grid() if 0.1 < row["alpha"] * (row["tokens"] ** 2 + row["tokens"] - 2) < 0.6]
    single, averaged, bayes = (np.array([row[name] for row in rows]) for name in ("single", "averaged", "se"))
    starts = (single - averaged).mean() / 31
    assert 0.2 < starts / (averaged - bayes).mean() < 0.3


SMALL = {"d": 16, "inits": 2, "points": 5, "samples": 200}


@pytest.mark.parametrize("name", [figure.name for figure in FIGURES])
def test_a_figure_is_drawn_and_tabulated_from_its_first_cell_alone(name):
    """The report of a running experiment draws what is there."""
    figure = next(figure for figure in FIGURES if figure.name == name)
    known = figure.knobs("quick")
    cell = figure.changed("quick", {knob: SMALL[knob] for knob in SMALL if knob in known}).cells("quick")[0]
    canvas = figure.draw(Records.of([{**cell.params, **cell()}]))
    assert drawn.marks(canvas)
