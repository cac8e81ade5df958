"""Replicates for undecided claims."""

import dataclasses

import pytest
from toy_figures import CLAIM, FIGURE

from attnlab import lab
from attnlab.common.claim import at_most, between
from attnlab.common.figure import Grid
from attnlab.lab.claims import deciding


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
