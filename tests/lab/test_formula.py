"""What the theory functions say of themselves: signature, status, source."""

import inspect

import pytest

from attnlab.lab.formulas.formula import STATUSES, formula, formulas, kind_of
from attnlab.lab.formulas.plain import plain

ALL = formulas()


@pytest.mark.parametrize("name", ALL)
def test_every_theory_function_states_its_status_and_its_source(name):
    assert ALL[name].status in STATUSES
    assert ALL[name].source
    assert ALL[name].summary


def test_only_functions_of_functions_are_beyond_a_command_line():
    beyond = sorted(name for name, item in ALL.items() if item.beyond)
    assert beyond == ["rfa.dimension_free_cost", "smi.erm_state_evolution"]


def test_all_systems_and_the_spectrum_are_there():
    assert {"aim.mmse", "slr.risk", "rfa.complexity", "mha.examples_needed", "aim.spectrum.density"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_parameters_are_those_of_the_signature(name):
    direct = [p for p in ALL[name].parameters if "." not in p.name]
    signature = inspect.signature(ALL[name].function).parameters
    assert [p.name for p in direct] == [n for n in signature if n not in ALL[name].objects]
    assert all(p.required == (signature[p.name].default is inspect.Parameter.empty) for p in direct)


def test_an_object_is_spelled_out_as_its_fields():
    names = [p.name for p in formula("rfa.complexity").parameters]
    assert names[:4] == ["task.target", "task.p", "task.d", "task.n_keys"]
    assert names[-2:] == ["model", "form"]


@pytest.mark.parametrize(("asked", "near"), [("aim.mms", "aim.mmse"), ("mmse", "aim.mmse"), ("slr.rik", "slr.risk")])
def test_a_wrong_name_suggests_the_nearest(asked, near):
    with pytest.raises(ValueError, match=f"did you mean '{near}'"):
        formula(asked)


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (float, ("number", False)),
        (int | None, ("integer", True)),
        (bool, ("flag", False)),
        (tuple[float, float], ("tuple", False)),
        (type(len), ("beyond", False)),
    ],
)
def test_types_become_kinds(hint, kind):
    assert kind_of(hint) == kind


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r":math:`\tfrac{1}{2}\alpha \le \hat q`", "1/2α ≤ q̂"),
        (r":math:`\frac{\mathcal E}{1 + \frac{\hat q}{n^{2}}}`", "E/(1 + (q̂)/(n^{2}))"),
        (r":math:`\mathbb{E}\|S\|_F^2`", "E|S|_F^2"),
        ("``d`` of :class:`attnlab.aim.AMP`", "d of AMP"),
    ],
)
def test_markup_becomes_words(text, words):
    assert plain(text) == words
