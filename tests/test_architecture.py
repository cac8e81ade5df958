"""The page on the house names files and folders that exist."""

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
