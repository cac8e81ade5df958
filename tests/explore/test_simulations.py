"""Stored results become points: means, standard errors and intervals are those of the cells."""

import pytest
from explore.conftest import RUNS

from attnlab.common.records import proportion
from attnlab.common.view import means, shares
from attnlab.explore.simulations import count, simulations
from attnlab.lab.errors import UsageError


def test_a_mean_has_the_standard_error_of_its_runs_and_one_run_has_none():
    rows = [{"d": 2, "error": 1.0}, {"d": 2, "error": 3.0}, {"d": 4, "error": 5.0}]
    assert means(rows, ("d",), lambda row: row["error"]) == [
        {"d": 2, "mean": 2.0, "sem": 1.0},
        {"d": 4, "mean": 5.0, "sem": 0.0},
    ]


def test_what_is_not_finite_is_left_out():
    rows = [{"rho": float("inf"), "error": 1.0}, {"rho": 1.0, "error": float("nan")}, {"rho": 2.0, "error": 3.0}]
    assert [point["rho"] for point in means(rows, ("rho",), lambda row: row["error"])] == [2.0]


def test_a_share_has_the_exact_interval():
    (point,) = shares([{"n": 8, "success": i < 3} for i in range(10)], ("n",))
    expected = proportion([True] * 3 + [False] * 7)
    assert (point["share"], point["low"], point["high"]) == (expected.value, expected.low, expected.high)


@pytest.fixture(scope="module")
def points(store):
    return simulations(store)


def test_amp_runs_of_several_figures_are_one_point(points):
    found = [p for p in points["aim"]["points"] if (p["learner"], p["tokens"], p["alpha"]) == ("amp", 2, 0.1)]
    setting = {(p["channel"], p["rho"]): p for p in found}
    # the replicates 0 and 1 have the errors 0.40 and 0.42
    assert setting["softmax", 1.0]["mean"] == pytest.approx(0.41)
    assert setting["softmax", 1.0]["sem"] == pytest.approx(0.01)
    assert ("hardmax", 0.5) in setting


def test_gradient_descent_is_shown_single_and_averaged_at_its_alpha(points):
    single = [p for p in points["aim"]["points"] if p["learner"] == "single" and p["tokens"] == 3]
    assert single
    for point in single:
        assert point["mean"] == pytest.approx(0.8)
        assert 0 < point["alpha"] * 10 < 1.2


def test_runs_that_arrive_are_counted(points):
    (label,) = {run["label"] for run in points["slr"]["runs"] if run["label"].startswith("starts on M")}
    assert label == "starts on M: 18 of 20 arrive"


def test_infinitely_many_heads_are_theory_not_a_point(points):
    assert min(p["heads"] for p in points["rfa"]["heads"]) > 0


def test_every_view_has_points(points):
    stored = {name.split(".")[0] for name in RUNS}
    assert [name for name in stored for series in points[name].values() if not series] == []


def test_without_a_store_every_list_is_empty():
    assert count(simulations(None)) == 0


def test_a_store_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UsageError, match="there is no store at"):
        simulations(tmp_path / "absent.sqlite")
