"""``attnlab bench`` as a user meets it."""

import subprocess
import sys
from pathlib import Path

import pytest

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
    from attnlab.cli import bench

    monkeypatch.setattr(bench, "__file__", str(tmp_path / "site-packages" / "attnlab" / "cli" / "bench.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LookupError, match="inside a checkout of attnlab"):
        bench.benchmarks("session")
