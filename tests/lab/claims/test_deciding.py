"""Replicates for undecided claims."""

import dataclasses

import pytest
from toy_figures import CLAIM, FIGURE

from attnlab import lab
from attnlab.cli.claims import spend
from attnlab.cli.jobs import Job
from attnlab.common.claim import at_most, between
from attnlab.common.figure import Grid
from attnlab.lab.claims import deciding
from attnlab.lab.engine import SerialEngine
from attnlab.lab.runner import collect, compute_cells, missing_cells
from attnlab.lab.store import Store


def figure(*thresholds):
    claims = [dataclasses.replace(CLAIM, id=f"toy.{i}", holds=holds) for i, holds in enumerate(thresholds)]
    return dataclasses.replace(FIGURE, claims=tuple(claims))


def test_the_nearest_claim_comes_first_and_decided_ones_are_left_alone():
    value = lab.run(FIGURE).verdicts[0].estimate.value
    near, far = at_most(1.8 * value), at_most(1.2 * value)
    result = lab.run(figure(at_most(1.0), far, near))
    assert [v.status for v in result.verdicts] == ["holds", "undecided", "undecided"]
    found = deciding.proposals([result])
    assert [proposal.claim for proposal in found] == ["toy.2", "toy.1"]
    assert found[0].factor == pytest.approx(result.verdicts[2].replicates_needed / 4)
    assert found[0].seconds == pytest.approx((found[0].factor - 1) * sum(cell.seconds for cell in result.cells))


def test_more_replicates_decide():
    value = lab.run(FIGURE).verdicts[0].estimate.value
    open_ = figure(at_most(1.8 * value))
    (proposal,) = deciding.proposals([lab.run(open_)])
    again = deciding.marked(lab.run(deciding.enlarged(open_, "quick", 4 * proposal.factor)))
    assert again.verdicts[0].status != "undecided"
    assert again.verdicts[0].extended


def test_what_is_run_once_is_not_repeated():
    mixed = dataclasses.replace(FIGURE, scales={"quick": [Grid({"n": 10}), Grid({"n": 100}, seeds=4)]})
    grids = deciding.enlarged(mixed, "quick", 1.1).scales["quick"]
    assert [grid.seeds for grid in grids] == [1, 5]


def test_a_value_at_its_threshold_is_not_pursued():
    value = lab.run(FIGURE).verdicts[0].estimate.value
    assert deciding.proposals([lab.run(figure(between(value, 1.0)))]) == []


def job(folder):
    return Job(SerialEngine(), folder / "s.sqlite", folder, None, False, False, True, False, True)


def measured(figure, folder):
    with Store(folder / "s.sqlite", writable=True) as store:
        compute_cells(missing_cells([figure], "quick", store), store, SerialEngine())
        return collect(figure, "quick", store)


def test_time_is_spent_until_the_claims_are_decided(tmp_path, capsys):
    value = lab.run(FIGURE).verdicts[0].estimate.value
    first = measured(figure(at_most(1.8 * value)), tmp_path)
    (after,) = spend([first], "quick", job(tmp_path), minutes=1.0, cores=1)
    assert first.verdicts[0].status == "undecided"
    assert after.verdicts[0].status in ("holds", "fails")
    assert after.verdicts[0].estimate.runs > first.verdicts[0].estimate.runs
    assert after.verdicts[0].extended
    assert "times the replicates of toy.mean" in capsys.readouterr().out


def test_no_time_changes_nothing_and_says_what_it_would_take(tmp_path, capsys):
    value = lab.run(FIGURE).verdicts[0].estimate.value
    first = measured(figure(at_most(1.8 * value)), tmp_path)
    assert spend([first], "quick", job(tmp_path), minutes=0.0, cores=1) == [first]
    assert "toy.0 would take about" in capsys.readouterr().out
