"""The claims ledger: grouped by paper, compared with the record, complete."""

import dataclasses
import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from toy_figures import CLAIM, FIGURE

from attnlab import lab
from attnlab.common.claim import Verdict, at_most
from attnlab.common.intervals import Replicates
from attnlab.common.records import Estimate
from attnlab.lab import ledger, registry
from attnlab.lab.errors import StoreUnwritable

DOCS = Path(__file__).parents[2] / "docs"
CLAIMS = [(claim, figure) for figure in registry.figures().values() for claim in figure.claims]


@pytest.mark.parametrize(("claim", "figure"), CLAIMS, ids=lambda item: getattr(item, "id", ""))
def test_every_claim_is_complete(claim, figure):
    assert claim.id.split(".")[0] == figure.name.split(".")[0]
    assert claim.says
    assert claim.source
    assert claim.because
    assert set(claim.registered) <= set(ledger.SCALES)
    if any(claim.expected(scale) != "holds" for scale in ledger.SCALES):
        assert claim.note, "a claim on record as failing or undecided says why, and what would decide it"


def test_ids_are_unique():
    ids = [claim.id for claim, _ in CLAIMS]
    assert len(ids) == len(set(ids))


def test_every_paper_named_by_a_claim_has_a_title():
    assert {ledger.paper(claim) for claim, _ in CLAIMS} <= {*registry.papers(), ""}


def test_claims_are_grouped_by_paper_and_what_was_derived_here_comes_last():
    groups = ledger.by_paper((claim, claim.id) for claim, _ in CLAIMS)
    titles = list(groups)
    assert titles.index("Derived here, beside the papers: slr") > titles.index(ledger.heading(("slr", "2410.01537")))
    assert sum(map(len, groups.values())) == len(CLAIMS)


def undecided(measured):
    estimate = Estimate(measured.value, *measured.interval(0.95), measured.units)
    return Verdict(dataclasses.replace(CLAIM, holds=at_most(1.0)), "quick", "undecided", estimate, measured=measured)


# mean 0 and standard deviation 1 in four replicates
UNIT = np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(5 / 3)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        # t_16 s / sqrt(17) = 0.485 <= 0.5 < 0.502 = t_15 s / sqrt(16) at s = 0.943
        (0.5 + 0.943 * UNIT, "about 17 replicates would decide at this value and noise (4 now)"),
        (1.0 + UNIT, "the value is at the threshold"),
        (np.array([0.5]), "more seeds"),
        # (1.96 * 6.05 / 0.01)^2
        (0.99 + 6.05 * UNIT, "about 1 400 000 replicates"),
    ],
)
def test_an_undecided_claim_says_what_would_decide_it(values, said):
    assert said in ledger.decided_by(undecided(Replicates(values)))


def test_what_has_no_number_says_nothing():
    assert ledger.decided_by(Verdict(CLAIM, "quick", "undecided", None)) == ""
    assert ledger.power(Verdict(CLAIM, "quick", "undecided", None)) == ""


def test_the_four_counts_add_up():
    statuses = ["holds"] * 3 + ["fails"] + ["not measured"] * 2
    assert ledger.tally(statuses) == "6 claims: 3 hold, 1 fail, 0 undecided, 2 not measured"


def test_the_file_of_the_ledger_grows_figure_by_figure(tmp_path):
    file, result = tmp_path / "claims.json", lab.run(FIGURE)
    other = dataclasses.replace(FIGURE, name="toy.other", claims=(dataclasses.replace(CLAIM, id="toy.9"),))
    ledger.write([lab.run(other)], "quick", file)
    ledger.write([result], "quick", file)
    content = json.loads(file.read_text(), parse_constant=pytest.fail)
    first, second = content["claims"]
    assert [first["id"], second["id"]] == ["toy.1", "toy.9"]
    assert (first["figure"], first["registered"], first["status"]) == ("toy.mean", "holds", "holds")
    assert content["figures"]["toy.mean"]["1"]["code"] == [result.cells[0].code]
    with pytest.raises(StoreUnwritable, match="cannot write the ledger"):
        ledger.write([result], "quick", tmp_path / "absent" / "claims.json")


def test_an_incomplete_figure_is_left_out(tmp_path):
    ledger.write([dataclasses.replace(lab.run(FIGURE), missing=1)], "quick", tmp_path / "claims.json")
    assert json.loads((tmp_path / "claims.json").read_text())["claims"] == []


def test_a_value_counts_for_the_claim_it_was_measured_for(tmp_path):
    file = tmp_path / "claims.json"
    ledger.write([lab.run(FIGURE)], "quick", file)
    data = json.loads(file.read_text())
    moved = dataclasses.replace(FIGURE, claims=(dataclasses.replace(CLAIM, holds=at_most(0.5)),))
    assert list(ledger.current([FIGURE], data)) == ["toy.1"]
    assert ledger.current([moved], data) == {}


@pytest.mark.parametrize(("page", "holds"), [("claims", "`slr.manifold`"), ("exact", "<attnlab.aim.theory.mmse>")])
def test_the_documentation_is_filled_when_it_is_built(page, holds):
    fill = runpy.run_path(str(DOCS / "conf.py"))["fill"]
    text = [(DOCS / f"{page}.md").read_text()]
    assert holds not in text[0]
    fill(SimpleNamespace(srcdir=DOCS), page, text)
    assert holds in text[0]
    assert "<!--" not in text[0]
