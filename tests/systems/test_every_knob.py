"""A changed knob of a figure moves its theory lines, or the figure says that they do not depend on it."""

import dataclasses
import functools
import warnings

import numpy as np
import pytest

from attnlab import lab
from attnlab.lab import registry
from attnlab.lab.drawn import marks

FIGURES = registry.figures()
# Figures whose every knob has been looked at; the others may still draw a line that a knob does not move.
FOLLOWED = frozenset(name for name, figure in FIGURES.items() if figure.independent_of)
# Values of an axis that are kept: enough for a line.
KEPT = 2


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_numeric(value):
    return is_number(value) or (isinstance(value, list) and all(map(is_number, value)))


def small(figure):
    """The figure with one replicate and short axes."""
    grids = [
        dataclasses.replace(
            grid,
            params={k: v[:KEPT] if isinstance(v, list) and is_numeric(v) else v for k, v in grid.params.items()},
            seeds=1,
        )
        for grid in figure.scales["quick"]
    ]
    return dataclasses.replace(figure, scales={"quick": grids}, claims=())


def other(value):
    """A value nearby; a whole number stays one."""
    if isinstance(value, list):
        return [other(v) for v in value]
    if isinstance(value, int):
        return value + max(1, value // 10)
    return value * 1.2 if value else 0.1


def theory_lines(figure):
    """Every point of every line that is drawn as theory; None where the changed law is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = lab.run(figure)
        if result.failed:
            return None
        drawn = [(m.x, m.y, m.low, m.high, m.z) for m in marks(result.draw()) if m.source == "theory"]
    return np.array(sorted(map(tuple, np.nan_to_num(np.array(drawn), nan=-1.0)))) if drawn else np.empty((0, 5))


@functools.cache
def baseline(name):
    return theory_lines(small(FIGURES[name]))


def same(one, other):
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-12)


KNOBS = [
    (name, knob)
    for name, figure in FIGURES.items()
    for knob, value in figure.knobs("quick").items()
    if knob != "seeds" and is_numeric(value)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "knob"), KNOBS, ids=lambda value: value)
def test_a_knob_moves_the_theory_or_the_figure_says_that_it_does_not(name, knob):
    figure = small(FIGURES[name])
    before = baseline(name)
    if before is None or not len(before):
        pytest.skip("draws no theory line")
    after = theory_lines(figure.changed("quick", {knob: other(figure.knobs("quick")[knob])}))
    if name not in FOLLOWED and (after is None or same(before, after)):
        pytest.xfail(f"{name} does not say yet whether its theory depends on {knob}")
    if after is not None:
        assert same(before, after) == (knob in figure.independent_of)


@pytest.mark.parametrize("name", FIGURES)
def test_what_a_figure_is_independent_of_is_a_knob_of_its(name):
    figure = FIGURES[name]
    assert set(figure.independent_of) <= {knob for scale in figure.scales for knob in figure.knobs(scale)}
