"""A changed knob of a figure moves each of its theory lines, or the figure says that the line does not depend on it."""

import functools
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from small_figures import is_numeric, small

from attnlab import lab
from attnlab.lab import registry
from attnlab.lab.drawn import marks

FIGURES = registry.figures()
# Those of theory alone, in NumPy: another size compiles nothing.
FAST = ("aim.weak_recovery", "icl.nonmonotone", "rfa.complexity")
# Knobs of the accuracy of an integral: they move a line by its error only, a line without error not at all.
ACCURACY = {"draws", "replicates", "n_draws", "nodes"}
# Values of a knob where one nearby is no setting, or changes nothing: tau enters a line as min(tau, 1).
OTHER = {
    ("icl.context_length", "kappa"): [0.5, 0.9],
    ("icl.nonmonotone", "tau"): [0.6, 0.7],
    ("mha.extraction", "n_heads"): 3,
    ("mha.reach", "k"): [6, 7],
    ("mha.reach", "n_heads"): 5,
    ("mha.rounding", "p"): 2,
    ("mha.rounding", "q"): [8, 16],
    ("mha.samples", "d"): 6,
    ("mha.samples", "n_heads"): 1,
    ("smi.skip_thresholds", "layer"): None,
}
# Knobs with one possible value: any other is refused by the law.
FIXED = {("slr.advantage", "gamma")}


class Lines(NamedTuple):
    """The theory lines of a figure: panel and series, and all numbers."""

    names: list[str]
    values: list[np.ndarray]


def other(value):
    """A value nearby; a whole number stays one."""
    if isinstance(value, list):
        return [other(v) for v in value]
    if isinstance(value, int):
        return value + max(1, value // 10)
    return value * 1.2 if value else 0.1


def knobs(name):
    """The numeric knobs of a figure, each with another value."""
    values = small(FIGURES[name]).knobs("quick")
    found = {
        knob: OTHER.get((name, knob), other(value))
        for knob, value in values.items()
        if knob not in ACCURACY | {"seeds"} and is_numeric(value)
    }
    return {knob: value for knob, value in found.items() if value is not None}


@functools.cache
def folder():
    return tempfile.TemporaryDirectory()


def drawn(name, **changed):
    """The theory lines with some knobs changed. Cells that a knob does not enter are read from the store."""
    figure = small(FIGURES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny samples are not fitted
        result = lab.run(figure, store=Path(folder().name) / f"{name}.sqlite", set=changed)
        assert not result.failed, result.failed[0].error
        found = {}
        for m in marks(result.draw()):
            if m.source == "theory":
                found.setdefault((f"{m.panel} | {m.series}", m.curve), []).append((m.x, m.y, m.low, m.high, m.z))
    lines = [np.nan_to_num(np.array(values), nan=-1.0) for values in found.values()]
    return Lines([name for name, _ in found], lines)


def same(one, other):
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-12)


def moved(before, after):
    """Whether each line of a figure moved. Where lines come or go, one that is drawn again anywhere did not move."""
    if len(before.values) == len(after.values):
        return [not same(one, other) for one, other in zip(before.values, after.values, strict=True)]
    return [not any(same(one, other) for other in after.values) for one in before.values]


def is_independent(figure, knob, line):
    """Whether a figure says that a line does not depend on a knob."""
    stated = [item.partition(": ")[::2] for item in figure.independent_of]
    return any(name == knob and text in line for name, text in stated)


def wrong(name, before, knob, value):
    """The lines that should have moved and did not, and the reverse."""
    if (name, knob) in FIXED:
        with pytest.raises(AssertionError, match=f"{knob} must be"):
            drawn(name, **{knob: value})
        return []
    after = drawn(name, **{knob: value})
    return [
        f"{line} {'moves' if move else 'does not move'} with {knob}"
        for line, move in zip(before.names, moved(before, after), strict=True)
        if move == is_independent(FIGURES[name], knob, line)
    ]


def check(name):
    if extra := FIGURES[name].missing_extra():
        pytest.skip(f"needs attnlab[{extra}]")
    if (before := drawn(name)).values:
        assert [text for knob, value in knobs(name).items() for text in wrong(name, before, knob, value)] == []


@pytest.mark.parametrize("name", FAST)
def test_theory_of_some_figures_follows_every_knob(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if name not in FAST and not figure.requires])
def test_theory_follows_every_knob(name):
    check(name)


@pytest.mark.parametrize("name", FIGURES)
def test_what_a_figure_is_independent_of_is_a_knob_of_its(name):
    figure = FIGURES[name]
    stated = {item.partition(": ")[0] for item in figure.independent_of}
    assert stated <= {knob for scale in figure.scales for knob in figure.knobs(scale)}
