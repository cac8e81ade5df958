"""Ranges, grids and the tables and pictures made of them."""

import csv
import io
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from attnlab import aim, rfa
from attnlab.common.law import from_law
from attnlab.common.prediction import Prediction
from attnlab.lab.formulas.curves import curves
from attnlab.lab.formulas.formula import Formula, Parameter, formula
from attnlab.lab.formulas.ranges import values
from attnlab.lab.formulas.tabulate import fields, request, tabulate

NUMBER, INTEGER = Parameter("alpha", "number"), Parameter("n", "integer")


def of(name, **given):
    return tabulate(request(formula(name), given))


@pytest.mark.parametrize(
    ("parameter", "text", "expected"),
    [
        (NUMBER, "0.1", [0.1]),
        (NUMBER, "-2,inf", [-2.0, math.inf]),
        (NUMBER, "0.05:0.2:0.05", [0.05, 0.1, 0.15, 0.2]),
        (NUMBER, "0:1:0.4", [0.0, 0.4, 0.8]),
        (NUMBER, "1:4:n4,0", [1.0, 2.0, 3.0, 4.0, 0.0]),
        (INTEGER, "10:1000:x3", [10, 100, 1000]),
        (INTEGER, "1:4:x9", [1, 2, 3, 4]),
        (INTEGER, "2:6:2", [2, 4, 6]),
        (Parameter("d", "integer", none=True), "none,3", [None, 3]),
        (Parameter("b", "tuple"), "[0.2,5]", [(0.2, 5)]),
        (Parameter("x", "text"), "rfa,mlp", ["rfa", "mlp"]),
        (Parameter("x", "flag"), "true,no", [True, False]),
    ],
)
def test_what_is_typed_becomes_values(parameter, text, expected):
    assert values(parameter, text) == expected


def test_the_end_of_a_range_is_included_and_its_decimals_are_those_typed():
    found = values(NUMBER, "0.05:0.2:0.01")
    assert found == [round(0.05 + 0.01 * i, 2) for i in range(16)]


def test_an_array_is_one_value():
    (matrix,) = values(Parameter("Theta", "array"), "[[1,0],[0,2]]")
    assert np.array_equal(matrix, [[1, 0], [0, 2]])
    assert len(values(Parameter("Theta", "array"), "[1,0],[0,1],3")) == 3


@pytest.mark.parametrize(
    ("parameter", "text", "said"),
    [
        (NUMBER, "a", "start:end:step"),
        (NUMBER, "1:2", "start:end:step"),
        (NUMBER, "nan", "got 'nan'"),
        (NUMBER, "2:1:0.1", "start <= end"),
        (NUMBER, "1:2:0", "step > 0"),
        (NUMBER, "0:1:x5", "both ends > 0"),
        (NUMBER, "0:1:1e-9", "a million"),
        (NUMBER, "[1,2]", "start:end:step"),
        (INTEGER, "2.5", "takes integers"),
        (Parameter("x", "flag"), "maybe", "true or false"),
        (Parameter("x", "array"), "[1,", r"an array such as \[1,0.5\]"),
        (Parameter("x", "tuple"), "3", "an array such as"),
    ],
)
def test_what_cannot_be_read_is_said(parameter, text, said):
    with pytest.raises(ValueError, match=f"--{parameter.name} .*{said}"):
        values(parameter, text)


def test_a_grid_is_the_product_of_its_ranges_and_equals_the_function():
    table = of("aim.mmse", rho="0.5,1", alpha="0.05:0.15:0.05")
    assert [(row["alpha"], row["rho"]) for row in table.rows] == [(a, r) for a in (0.05, 0.1, 0.15) for r in (0.5, 1.0)]
    assert all(row["value"] == aim.theory.mmse(row["alpha"], row["rho"]) for row in table.rows)


def test_an_object_is_built_from_its_fields():
    (row,) = of("rfa.complexity", **{"task.p": "1", "task.d": "8", "model": "rfmlp"}).rows
    assert row["value"] == rfa.theory.complexity(rfa.Task(p=1, d=8), "rfmlp")


def test_named_results_become_columns_and_say_whether_they_converged():
    table = of("aim.state_evolution", alpha="0.1,0.15", rho="0.5")
    assert [row["converged"] for row in table.rows] == [True, True]
    (first, _) = csv.DictReader(io.StringIO(table.to_csv()))
    assert first["status"] == "asymptotic"
    assert float(first["trajectory[0]"]) == 1.0
    stopped = of("aim.state_evolution", alpha="0.1", rho="0.5", max_iter="2")
    assert "1 of 1 points did not converge" in stopped.notes


def test_json_holds_the_formula_its_status_and_only_valid_numbers():
    table = of("aim.recovery_threshold", rho="0.5", channel="softmax,hardmax")
    content = json.loads(table.to_json(), parse_constant=pytest.fail)
    assert (content["formula"], content["status"]) == ("aim.recovery_threshold", "asymptotic")
    assert [row["value"] for row in content["rows"]] == [0.1875, "inf"]


def test_nan_is_not_silent():
    table = of("slr.hard_phase", nu="5", L="2", noise_std="0.3162", n_draws="512")
    assert "1 of 1 points hold a NaN" in table.notes


@dataclass(frozen=True)
class Pair:
    left: float
    right: np.ndarray

    @property
    def both(self):
        return self.left + self.right.sum()


@dataclass(frozen=True)
class Law:
    d: int
    rho: float = 0.5
    kind: str = "softmax"


@from_law(Law, "rho", d=10)
def doubled(task: Law, alpha: float, *, terms: int = 3) -> Prediction:
    """Twice alpha rho.  Source: here.  Status: exact."""
    return Prediction(2 * alpha * task.rho, error=0.1, converged=alpha < 1, detail={"terms": terms})


def test_a_function_of_a_law_takes_the_parameters_of_the_law():
    formula = Formula("toy.doubled", doubled)
    assert [(p.name, p.kind, p.required) for p in formula.parameters] == [
        ("alpha", "number", True),
        ("rho", "number", False),
        ("kind", "text", False),
        ("terms", "integer", False),
    ]
    table = tabulate(request(formula, {"alpha": "0.5,2", "rho": "0.25"}))
    assert [row["value"] for row in table.rows] == [0.25, 1.0]
    assert [row["error"] for row in table.rows] == [0.1, 0.1]
    assert table.notes == ["1 of 2 points did not converge"]


def test_each_value_of_a_prediction_has_its_own_error_and_flag():
    named = fields(Prediction(np.arange(2.0), error=0.5, status="bound", converged=np.array([True, False])))
    assert named == {"value": [0.0, 1.0], "error": [0.5, 0.5], "status": "bound", "converged": [True, False]}


def test_a_result_with_the_name_of_a_parameter_keeps_both():
    def bound(error: float) -> Prediction:
        return Prediction(1 / error, error=0.5)

    (row,) = tabulate(request(Formula("toy.bound", bound), {"error": "0.25"})).rows
    assert (row["error"], row["value"], row["value.error"]) == (0.25, 4.0, 0.5)


@pytest.mark.parametrize(
    ("result", "named"),
    [
        (np.float64(2.0), {"value": 2.0}),
        (np.array([3.0]), {"value": 3.0}),
        (1 + 2j, {"value.real": 1.0, "value.imag": 2.0}),
        ({"a": 1, "b": (2, 3)}, {"a": 1, "b": [2, 3]}),
        (Pair(1.0, np.arange(2)), {"left": 1.0, "right": [0, 1], "both": 2.0}),
        (
            (Pair(1.0, np.ones(1)), 5),
            {"value[0].left": 1.0, "value[0].right": 1.0, "value[0].both": 2.0, "value[1]": 5},
        ),
    ],
)
def test_results_of_any_form_are_named(result, named):
    assert fields(result) == named


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("aim.mmse", {"alhpa": "1"}, "did you mean 'alpha'"),
        ("aim.mmse", {"rho": "0.5"}, "also needs alpha, for example --alpha"),
        ("aim.mmse", {"alpha": "0:1:0.0001", "rho": "1:2:0.1"}, "the grid has 110011 points"),
        ("rfa.complexity", {"task.target": "key_power,keypower"}, "did you mean 'key_power'"),
        ("rfa.dimension_free_cost", {"d": "4"}, "call it from Python"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_computed(name, given, said, monkeypatch):
    asked = Formula(name, formula(name).function)
    monkeypatch.setattr("attnlab.lab.formulas.tabulate.fields", lambda *_: pytest.fail("computed"))
    with pytest.raises(ValueError, match=said):
        request(asked, given)


def test_the_ends_of_the_axes_are_computed_first():
    seen = []

    def spy(x: float) -> float:
        seen.append(x)
        return x

    table = tabulate(request(Formula("toy.spy", spy), {"x": "1:5:1"}))
    assert seen == [1, 5, 2, 3, 4]
    assert [row["value"] for row in table.rows] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"kappa": "0:1:0.1", "nu": "1"}, "curve"),
        ({"kappa": "0:1:0.1", "nu": "0,1"}, "family"),
        ({"kappa": "0:1:0.1", "nu": "0:1:n8"}, "map"),
    ],
)
def test_one_varied_parameter_is_a_curve_and_two_a_family_or_a_map(given, kind):
    canvas = curves(of("slr.manifold_risk", d="16", L="3", lam="0.1", **given))
    axes = canvas.axes[0]
    assert axes.get_xlabel() == "$\\kappa$"
    assert "slr.manifold_risk (exact)" in axes.get_title()
    assert len(axes.lines) == {"curve": 1, "family": 2, "map": 0}[kind]
    assert (canvas.axes[1] if kind == "map" else axes).get_ylabel() == "manifold_risk"


def test_names_make_a_family_too():
    axes = curves(of("aim.recovery_threshold", rho="0.1:2:n5", channel="softmax,linear")).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["channel = softmax", "channel = linear"]


def test_equal_ratios_make_a_logarithmic_axis_and_wide_errors_too():
    axes = curves(of("rfa.learning_curve", n="64:8192:x5", model="rfa")).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="one or two parameters"):
        curves(of("aim.mmse", alpha="0.1", rho="0.5"))
    with pytest.raises(ValueError, match="--show must be one of 'value', 'error'"):
        curves(of("aim.state_evolution", alpha="0.1,0.15", rho="0.5"), "valu")
