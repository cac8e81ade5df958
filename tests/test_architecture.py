"""The page on architecture names files and folders that exist, and all of the lab."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PLACES = (ROOT, ROOT / "src" / "attnlab", ROOT / "src" / "attnlab" / "lab")


def named():
    """Files and folders in backquotes; the second file of a list stands in the folder of the first."""
    found, folder = [], ""
    for name in re.findall(r"`([\w/]+(?:\.py|\.toml|/))`", PAGE):
        if "/" in name.rstrip("/"):
            folder = name.rstrip("/").rpartition("/")[0]
        found.append((name, folder))
    return found


def exists(name, folder):
    inside = [place / part for place in PLACES for part in (name, f"{folder}/{name}")]
    # a room that every system has
    return any(path.exists() for path in inside) or any((ROOT / "src" / "attnlab").glob(f"*/{name}"))


def test_every_file_and_folder_exists():
    assert len(named()) > 20
    assert [name for name, folder in named() if not exists(name, folder)] == []


def test_every_file_and_folder_of_the_lab_is_named():
    lab = ROOT / "src" / "attnlab" / "lab"
    parts = {path.name if path.is_file() else f"{path.name}/" for path in lab.iterdir()}
    parts = {part for part in parts if part.endswith((".py", "/")) and not part.startswith("__")}
    assert parts - {name.removeprefix("lab/") for name, _ in named()} == set()
