"""Files that are kept from run to run stay within their limit, where the user wants them."""

import os
from pathlib import Path

from attnlab.common import cache


def test_the_oldest_go_beyond_the_limit_and_drafts_stay(tmp_path):
    for age, name in enumerate("abcd"):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (age, age))
    (tmp_path / "being written.tmp").write_bytes(b"x" * 100)
    cache.tidy(tmp_path, limit=25)
    assert {path.name for path in tmp_path.iterdir()} == {"c", "d", "being written.tmp"}


def test_the_folder_is_the_users_choice(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
    monkeypatch.delenv("ATTNLAB_CACHE", raising=False)
    assert cache.home() == Path("/some/cache/attnlab")
    monkeypatch.setenv("ATTNLAB_CACHE", "/other")
    assert cache.home() == Path("/other")
