"""The explorer as a file: self-contained, small, and it says what it cannot show."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.explore import page as pages
from attnlab.explore.page import SCRIPTS, documentation, explorer
from attnlab.lab.errors import StoreUnwritable


def test_the_page_needs_nothing_beside_it_and_no_network(page):
    text = page.read_text()
    assert not re.search(r"<(script|img|link|iframe)[^>]+(src|href)=.(?!data:)", text)
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(|@import|url\((?!#)", text)


def test_the_page_is_small(page):
    assert page.stat().st_size < 1_000_000


def test_every_script_is_part_of_the_page():
    folder = Path(pages.__file__).parent / "js"
    assert sorted(SCRIPTS) == sorted(path.stem for path in folder.glob("*.js"))
    for path in folder.glob("*.js"):
        assert len(path.read_text().splitlines()) <= 300


def test_data_cannot_end_the_script_element(page):
    data = re.search(r'id="data">(.*?)</script>', page.read_text(), flags=re.DOTALL).group(1)
    assert "</" not in data
    assert data.startswith("{")
    assert data.endswith("}")


def test_an_unwritable_place_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write the explorer to"):
        explorer(tmp_path / "file" / "explorer.html")


def test_documentation_is_linked_from_where_the_page_lies(tmp_path):
    link = documentation("aim", tmp_path)
    assert link == "" or (tmp_path / link).resolve().exists()


def test_the_command_says_that_there_is_theory_only_and_how_to_change_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pages, "explorer", lambda out, *options: (out, 0))
    shown = CliRunner().invoke(app, ["explore", "--out", "e.html"]).stdout
    assert "theory only: there is no store at results/attnlab.sqlite" in shown
    assert "explorer: e.html" in shown
