"""Confirmations draw fresh numbers, and only the command that confirms draws them."""

import dataclasses
import inspect
import json

import claims_page
import pytest
import typer
from toy_figures import CLAIM, FIGURE

from attnlab import cli, lab
from attnlab.common.claim import at_most
from attnlab.lab import ledger
from attnlab.lab.claims import confirmation
from attnlab.lab.engine import SerialEngine
from attnlab.lab.runner import collect, compute_cells, missing_cells
from attnlab.lab.store import Store


def both_streams(folder, figure=FIGURE):
    with Store(folder / "s.sqlite", writable=True) as store:
        for stream in (1, confirmation.CONFIRMATION):
            compute_cells(missing_cells([figure], "quick", store, stream=stream), store, SerialEngine())
        return [collect(figure, "quick", store, stream=stream) for stream in (1, confirmation.CONFIRMATION)]


def test_a_confirmation_has_numbers_of_its_own(tmp_path):
    first, fresh = both_streams(tmp_path)
    assert len(first.records) == len(fresh.records) == 12
    assert not set(first.records.column("error")) & set(fresh.records.column("error"))


def test_no_other_command_reaches_the_stream_of_confirmations():
    assert "stream" not in inspect.signature(lab.run).parameters
    for command in typer.main.get_command(cli.app).commands.values():
        assert "stream" not in {parameter.name for parameter in command.params}
    source = inspect.getsource(cli) + inspect.getsource(cli.jobs)
    assert "CONFIRMATION" not in source
    assert cli.jobs.Job.__dataclass_fields__["stream"].default == 1


def test_verdict_and_confirmation_stand_side_by_side(tmp_path):
    first, fresh = both_streams(tmp_path)
    file = tmp_path / "claims.json"
    ledger.write([first], "quick", file, [fresh])
    (entry,) = json.loads(file.read_text())["claims"]
    assert entry["status"] == entry["confirmation"]["status"] == "holds"
    assert entry["value"] != entry["confirmation"]["value"]
    # measured again, the confirmation stays; measured for another threshold, it does not
    ledger.write([first], "quick", file)
    assert "confirmation" in json.loads(file.read_text())["claims"][0]
    moved = dataclasses.replace(FIGURE, claims=(dataclasses.replace(CLAIM, holds=at_most(0.5)),))
    ledger.write([lab.run(moved)], "quick", file)
    assert "confirmation" not in json.loads(file.read_text())["claims"][0]


def test_a_confirmation_alone_is_no_first_verdict(tmp_path):
    _, fresh = both_streams(tmp_path)
    ledger.write([], "quick", tmp_path / "claims.json", [fresh])
    (entry,) = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert (entry["status"], entry["confirmation"]["status"]) == ("not measured", "holds")


def entry(status, again):
    return {"id": "toy.1", "status": status, "confirmation": {"status": again}}


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("holds", "holds", "holds again"),
        ("holds", "undecided", "holds, then undecided"),
        ("not measured", "fails", "fails, first time"),
    ],
)
def test_the_two_verdicts_are_compared(before, now, said):
    assert confirmation.comparison(entry(before, now)) == said


def test_the_summary_names_what_did_not_hold_again():
    text = confirmation.summary([entry("holds", "holds"), entry("holds", "fails"), entry("fails", "holds")])
    assert text == "of 2 claims that held, 1 held again on fresh seeds; not again: toy.1 (fails)"


def test_the_page_counts_all_claims_and_labels_what_is_exploratory(tmp_path):
    guess = dataclasses.replace(CLAIM, id="toy.guess", kind="exploratory")
    unmeasured = dataclasses.replace(CLAIM, id="toy.none", note="a | b")
    figure = dataclasses.replace(FIGURE, claims=(CLAIM, guess))
    first, fresh = both_streams(tmp_path, figure)
    ledger.write([first], "quick", tmp_path / "claims_quick.json")
    everything = [figure, dataclasses.replace(FIGURE, name="toy.later", claims=(unmeasured,))]
    page = claims_page.markdown(everything, ledger.measured(tmp_path))
    assert "| quick scale | 2 | 0 | 0 | 1 |" in page
    assert "| quick scale, on fresh seeds | 0 | 0 | 0 | 3 |" in page
    assert "| paper scale | 0 | 0 | 0 | 3 |" in page
    assert "`toy.guess` (exploratory)" in page
    assert r"a \| b" in page
    assert "1 are exploratory, 1 of these not yet decided" in page
    ledger.write([first], "quick", tmp_path / "claims_quick.json", [fresh])
    page = claims_page.markdown(everything, ledger.measured(tmp_path))
    assert "| quick scale, on fresh seeds | 2 | 0 | 0 | 1 |" in page
    assert "(exploratory)" not in page
    assert "Of 2 claims that hold and were run again on fresh seeds, 2 held again." in page
