"""``attnlab bench`` as a user meets it."""

import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.cli import bench
from attnlab.lab.errors import UsageError
from benchmarks import session
from benchmarks.results import Results
from benchmarks.rows import Row

ATTNLAB = Path(sys.executable).with_name("attnlab")


def attnlab(*arguments, cwd):
    command = [str(ATTNLAB), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "--only", "rfa,aimm"], "part must be one of"),
        (["bench", "--only", "aimm"], "did you mean 'aim'?"),
        (["bench", "--page", "absent.md"], "there is no page absent.md"),
        (["bench", "page", "absent.md"], "there is no page absent.md"),
        (["bench", "compare", "absent.json", "other.json"], "absent.json does not hold benchmark results"),
    ],
)
def test_wrong_requests_end_with_one_line_and_code_2(arguments, message, tmp_path):
    result = attnlab(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_compare_prints_what_changed(tmp_path):
    for name, value in (("a", 3.0), ("b", 5.0)):
        rows = [Row("fit", value, "x", ">= 3", "", spread=0.1), Row("solve", 1.0, "s", "", "", spread=0.1)]
        Results({"cores": 2}, {"rfa": rows}).write(tmp_path / f"{name}.json")
    result = attnlab("bench", "compare", "a.json", "b.json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "rfa: fit" in result.stdout
    assert "better" in result.stdout
    assert "solve" not in result.stdout
    assert "1 rows changed beyond the spread, 1 did not" in result.stdout


def test_help_shows_an_example_and_measures_nothing(tmp_path):
    result = attnlab("bench", "--help", cwd=tmp_path)
    assert result.returncode == 0
    assert "Example" in result.stdout
    assert "compare" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_without_a_checkout_it_says_where_the_benchmarks_are(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "site-packages" / "attnlab" / "cli" / "bench.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LookupError, match="inside a checkout of attnlab"):
        bench.benchmarks("session")


@pytest.fixture
def parts(monkeypatch):
    """Parts that measure nothing, one of which fails."""

    def rows_of(part):
        if part == "aim":
            raise RuntimeError("no luck")
        return [
            Row("fit", 3.5, "x", ">= 3", "n = 10", spread=0.1, compile=2.0),
            Row("solve", 9.0, "s", "< 5", "n = 10"),
            Row("steps", 1.02, "exponent", "", "three sizes", spread=0.01, theory=1.0),
        ]

    monkeypatch.setattr(session, "rows_of", rows_of)
    monkeypatch.setattr(session.machine, "describe", lambda: {"processor": "abacus"})


def test_one_run_gives_table_numbers_picture_and_page(parts, tmp_path, capsys):
    (tmp_path / "page.md").write_text("<!-- begin cpu -->\n<!-- end cpu -->\n")
    assert bench.measure("rfa,slr", tmp_path / "r.json", tmp_path / "r.png", tmp_path / "page.md") == 0
    shown = capsys.readouterr().out
    for text in ("3.5 ± 0.1", "met", "missed", "theory 1", "2.0 s", "2 of 4 targets met; missed: solve, solve"):
        assert text in shown
    assert list(Results.read(tmp_path / "r.json").rows) == ["slr", "rfa"]
    assert (tmp_path / "r.png").stat().st_size > 5000
    assert "**missed**" in (tmp_path / "page.md").read_text()


def test_some_parts_are_measured_beside_the_others_of_the_file(parts, tmp_path, monkeypatch):
    for only in ("rfa,slr", "slr", "mha"):
        assert bench.measure(only, tmp_path / "r.json") == 0
    kept = Results.read(tmp_path / "r.json")
    assert (list(kept.rows), set(kept.days)) == (["slr", "rfa", "mha"], {"slr", "rfa", "mha"})
    assert [len(rows) for rows in kept.rows.values()] == [3, 3, 3]
    monkeypatch.setattr(session.machine, "describe", lambda: {"processor": "slide rule"})
    with pytest.raises(UsageError, match="the file holds results of abacus, None, this is slide rule, None"):
        bench.measure("slr", tmp_path / "r.json")


def test_all_parts_replace_the_file(parts, tmp_path):
    Results({"processor": "slide rule"}, {"gone": []}, {"gone": 1.0}).write(tmp_path / "r.json")
    bench.measure("", tmp_path / "r.json")
    assert set(Results.read(tmp_path / "r.json").seconds) == set(session.choose(""))


def test_a_failed_part_is_shown_and_ends_with_code_1(parts, tmp_path, capsys):
    assert bench.measure("aim,rfa", tmp_path / "r.json") == 1
    shown = capsys.readouterr().out
    for text in ("part aim failed", "no luck", "3.5 ± 0.1"):
        assert text in shown
