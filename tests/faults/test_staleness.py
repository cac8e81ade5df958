"""Results of other code, other defaults or another attnlab are computed again, and named where they are kept."""

import shutil
from pathlib import Path

import pytest
from test_signals import SWEEP
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.common import fingerprint
from attnlab.lab.store import Store

MINE = Path(__file__).parent / "mine.py"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder in which a sweep of 4 cells with a module of the user's own has been run."""
    folder = tmp_path_factory.mktemp("original")
    shutil.copy(MINE, folder / "mine.py")
    (folder / "slow.toml").write_text(SWEEP.format(seeds=4, seconds=0.0))
    assert "4 cells to compute" in run(folder)
    return folder


@pytest.fixture
def first(original, tmp_path):
    """A copy of that folder, whose results are those of its code."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    assert "cells to compute" not in run(tmp_path)
    return tmp_path


def run(folder, *options, report=False):
    names = {"--module": "mine.py", "--store": "s.sqlite", "--out": "out"}
    places = [word for option, name in names.items() for word in (option, str(folder / name))]
    # a part is computed and not reported
    options = [*options, *([] if report else ["--shard", "1/1"])]
    result = CliRunner().invoke(app, ["run", str(folder / "slow.toml"), *places, *options])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def codes(folder):
    with Store(folder / "s.sqlite") as store:
        return {row.code for row in store.rows()}


def edit(folder, old, new):
    file = folder / "mine.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [("* 0.0 +", "* 1.0 +"), ("random_state=None", "random_state=None, unused=3"), ("0.0))", "1.0))")]
)
def test_changed_code_of_the_user_is_run_again(first, old, new, tried):
    before = codes(first)
    edit(first, old, new)
    if "unused" in new:
        edit(
            first, "        self.seconds = seconds\n", "        self.seconds = seconds\n        self.unused = unused\n"
        )
    assert "4 cells to compute" in run(first)
    assert not codes(first) & before or "unused" in new  # a new parameter is another cell, beside the old ones
    tried(
        "a user's method, default or constant changed between two runs",
        "led to all cells being computed again",
        times=1,
    )


def test_a_comment_changes_nothing(first):
    edit(first, "    def predict", "    # says nothing\n    def predict")
    assert "cells to compute" not in run(first)


def test_another_version_of_attnlab_is_run_again_or_kept_and_named(first, monkeypatch):
    before = codes(first)
    monkeypatch.setattr(fingerprint, "library_version", lambda: "99.0")
    fingerprint._of_roots.cache_clear()
    try:
        kept = run(first, "--keep-old", report=True)
        assert "cells to compute" not in kept
        assert "4 of 4 cells are from other code" in kept
        assert "4 cells to compute" in run(first)
        assert not codes(first) & before
    finally:
        fingerprint._of_roots.cache_clear()


def test_info_and_report_name_every_code_and_version(first):
    import sqlite3

    with sqlite3.connect(first / "s.sqlite") as db:  # one row as if of an older attnlab
        db.execute(
            'UPDATE cells SET versions = replace(versions, \'"attnlab": "\', \'"attnlab": "0.0.\') WHERE rowid = 1'
        )
    db.close()
    (code,) = codes(first)
    info = CliRunner().invoke(app, ["store", "info", str(first / "s.sqlite")]).output
    assert info.count(f"code {code}") == 2
    assert "attnlab 0.0." in info
    run(first, report=True)
    page = (first / "out" / "index.html").read_text()
    assert page.count("<dt>attnlab</dt>") == 2
    assert code in page
