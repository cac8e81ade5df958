"""The claims ledger: grouped by paper, compared with the record, complete."""

import dataclasses
import json
import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from toy_figures import CLAIM, FIGURE

from attnlab import lab
from attnlab.common.claim import Verdict, at_most
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
    if any(ledger.recorded(claim, scale) != "holds" for scale in ledger.SCALES):
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


def undecided(estimate):
    return Verdict(dataclasses.replace(CLAIM, holds=at_most(1.0)), "quick", "undecided", estimate)


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate(0.5, -1.0, 2.0, 4), "about 17 replicates would decide"),
        (Estimate(1.0, 0.0, 2.0, 4), "at the threshold"),
        (Estimate(0.5, 0.5, 0.5, 1), "more seeds"),
        (Estimate(math.nan, math.nan, math.nan, 4), ""),
        (None, ""),
    ],
)
def test_an_undecided_claim_says_what_would_decide_it(estimate, said):
    # s = 1.5 / t_3 * sqrt(4) = 0.943, and t_16 s / sqrt(17) = 0.485 <= 0.5 < 0.502 = t_15 s / sqrt(16)
    assert said in ledger.decided_by(undecided(estimate))


def test_large_numbers_of_runs_are_rounded():
    # s = 1.2 / 1.984 * 10 = 6.05 at a distance of 0.01: (1.96 * 605)^2
    assert "about 1 400 000 replicates" in ledger.decided_by(undecided(Estimate(0.99, -0.21, 2.19, 100)))


def test_the_file_of_the_ledger_holds_everything(tmp_path):
    result = lab.run(FIGURE)
    ledger.write([result], "quick", tmp_path / "claims.json")
    content = json.loads((tmp_path / "claims.json").read_text(), parse_constant=pytest.fail)
    (entry,) = content["claims"]
    assert content["command"] == "attnlab reproduce --scale quick"
    assert (entry["figure"], entry["record"]) == ("toy.mean", {"quick": "holds", "paper": "holds"})
    assert entry["changed"] is False
    with pytest.raises(StoreUnwritable, match="cannot write the ledger"):
        ledger.write([result], "quick", tmp_path / "absent" / "claims.json")


def test_the_page_shows_every_claim_its_record_and_what_was_measured():
    known = dataclasses.replace(CLAIM, id="toy.2", registered={"paper": "fails"}, note="a | b")
    figure = dataclasses.replace(FIGURE, claims=(CLAIM, known))
    measured = {
        "quick": {"command": "c", "attnlab": "1", "written": "today", "claims": ledger.entries([lab.run(FIGURE)])}
    }
    page = ledger.markdown([figure], measured)
    first, second = [line for line in page.splitlines() if "`toy." in line]
    assert "quick: " in first
    assert first.endswith("| holds | holds |")
    assert "not yet measured" in second
    assert second.endswith("| holds | **fails** |")
    assert r"a \| b" in second


@pytest.mark.parametrize(("page", "holds"), [("claims", "`slr.manifold`"), ("exact", "<attnlab.aim.theory.mmse>")])
def test_the_documentation_is_filled_when_it_is_built(page, holds):
    fill = runpy.run_path(str(DOCS / "conf.py"))["fill"]
    text = [(DOCS / f"{page}.md").read_text()]
    assert holds not in text[0]
    fill(SimpleNamespace(srcdir=DOCS), page, text)
    assert holds in text[0]
    assert "<!--" not in text[0]
