"""Stored results: written, read, compared, and shown on a page."""

import math
from pathlib import Path

import pytest

from benchmarks import page, picture, session
from benchmarks.results import Results, compare
from benchmarks.rows import Row

ROOT = Path(__file__).parents[2]
MACHINE = {"date": "today", "processor": "abacus", "cores": 2, "sgemm GFLOP/s": 100.0}


def results(**values):
    """One row of each kind."""
    return Results(
        {**MACHINE},
        {
            "rfa": [
                Row("fit", values.get("fit", 3.2), "x", ">= 3", "n = 10", spread=0.1, compile=1.5),
                Row("Gram", 0.5, "of sgemm", ">= 0.6", "n = 10", note="bound by the copy"),
                Row("memory", values.get("memory", 0.2), "GiB", "< 1.5", "one run", memory=2e8),
            ],
            "slr": [Row("map in d", 0.01, "exponent", "", "three sizes", spread=0.02, theory=0.0)],
        },
        {"rfa": 12.0, "slr": 3.0},
    )


def test_results_survive_the_file(tmp_path):
    before = results()
    before.write(tmp_path / "deep" / "r.json")
    assert Results.read(tmp_path / "deep" / "r.json") == before
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["r.json"]


def test_what_is_not_a_number_is_stored_as_null(tmp_path):
    results(fit=math.inf).write(tmp_path / "r.json")
    assert "Infinity" not in (tmp_path / "r.json").read_text()
    assert math.isnan(Results.read(tmp_path / "r.json").rows["rfa"][0].value)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"machine": {}, "rows": [{"part": "a"}]}'])
def test_a_file_without_results_is_refused(text, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ValueError, match="does not hold benchmark results"):
        Results.read(tmp_path / "r.json")


def test_changes_within_the_spread_are_not_reported():
    found = compare(results(), results(fit=3.5, memory=0.22))
    assert found.changes == []
    assert found.same == 4


def test_changes_beyond_the_spread_say_better_or_worse():
    found = compare(results(), results(fit=2.7, memory=0.1))
    assert [(change.name, change.verdict) for change in found.changes] == [
        ("rfa: fit", "worse"),
        ("rfa: memory", "better"),
    ]


def test_rows_and_machines_that_differ_are_named():
    other = results()
    other.machine |= {"cores": 4, "sgemm GFLOP/s": 105.0, "date": "tomorrow"}
    other.rows["aim"] = other.rows.pop("slr")
    found = compare(results(), other)
    assert found.machine == {"cores": (2, 4)}
    assert (found.only_before, found.only_after) == (["slr: map in d"], ["aim: map in d"])


def test_the_page_shows_every_row_and_names_each_miss():
    text = page.render((ROOT / "docs" / "performance.md").read_text(), results(), None)
    assert "| fit | 3.2 ± 0.1 x | >= 3 | met | n = 10; compile 1.5 s apart |" in text
    assert "| Gram | 0.5 of sgemm | >= 0.6 | **missed** | n = 10 |" in text
    assert "- **Gram**: 0.5 of sgemm, target >= 0.6. bound by the copy" in text
    assert "| map in d | 0.01 ± 0.02 | 0 | three sizes |" in text
    assert "| processor | abacus |" in text
    assert page.ABSENT in text  # no GPU run


def test_paper_scale_is_told_figure_by_figure_with_its_total():
    stated = {
        "a.slow": {"quick": 0.1, "paper": 90.0},
        "a.fast": {"quick": 0.1, "paper": 30.0},
        "b.guessed": {"quick": 0.1, "paper": "about 60"},
        "b.quick_only": {"quick": 0.1},
    }
    first, _, *lines = page.paper_block(stated).splitlines()
    assert first.startswith("2 figures measured, 2.0 h in all, the longest `a.slow` with 90 min; 1 not measured yet")
    assert "1.0 h more" in first
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| `a.slow`", "| `a.fast`", "| `b.guessed`"]


def test_the_page_has_the_times_that_are_stated():
    text = (ROOT / "docs" / "performance.md").read_text()
    shown = dict(page.MARK.findall(text))["paper"]
    assert shown.strip() == page.paper_block().strip(), "write the page again: attnlab bench page"


def test_rendering_twice_changes_nothing():
    text = page.render((ROOT / "docs" / "scaling.md").read_text(), results(), None)
    assert page.render(text, results(), None) == text


def test_a_page_and_its_picture_are_written(tmp_path):
    (tmp_path / "performance.md").write_text("prose\n\n<!-- begin cpu -->\nold\n<!-- end cpu -->\n\nmore prose\n")
    page.check(tmp_path / "performance.md")
    page.write(tmp_path / "performance.md", results())
    text = (tmp_path / "performance.md").read_text()
    assert text.startswith("prose")
    assert text.endswith("more prose\n")
    assert "old" not in text
    assert (tmp_path / "images" / "performance.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "there is no page"), ("prose", "has no block"), ("<!-- begin cpuu -->\n<!-- end cpuu -->", "'cpuu'")],
)
def test_a_page_without_known_blocks_is_refused(text, message, tmp_path):
    if text is not None:
        (tmp_path / "p.md").write_text(text)
    with pytest.raises(ValueError, match=message):
        page.check(tmp_path / "p.md")


def test_the_picture_has_a_point_for_each_ratio_and_share():
    left, right = picture.draw(results()).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["fit"]
    assert [label.get_text() for label in right.get_yticklabels()] == ["Gram"]


def test_a_failed_part_does_not_lose_the_others(tmp_path, monkeypatch):
    def rows_of(part):
        if part == "slr":
            raise RuntimeError("no luck")
        return [Row("fine", 1.0, "s", "", "")]

    monkeypatch.setattr(session, "rows_of", rows_of)
    monkeypatch.setattr(session.machine, "describe", lambda: MACHINE)
    shown = []
    session.run(["slr", "rfa"], tmp_path / "r.json", lambda part, rows, seconds: shown.append((part, len(rows))))
    assert shown == [("slr", 0), ("rfa", 1)]
    stored = Results.read(tmp_path / "r.json")
    assert "no luck" in stored.failed["slr"]
    assert [row.name for row in stored.all_rows()] == ["fine"]


def test_parts_run_in_one_order_and_the_nearest_name_is_suggested():
    assert session.choose("aim, rfa") == ["rfa", "aim"]
    assert session.choose("") == [*session.PARTS, *session.brought()]
    with pytest.raises(ValueError, match="did you mean 'rfa'"):
        session.choose("rff")
