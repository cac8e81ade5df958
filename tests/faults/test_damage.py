"""Damaged files, full disks and hostile input: said in one line, nothing readable is lost."""

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess

import pytest
import toy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy import sweep

from attnlab.lab import SerialEngine
from attnlab.lab.errors import StoreDamaged, StoreUnwritable, UsageError
from attnlab.lab.runner import compute_cells, missing_cells
from attnlab.lab.store import Store
from attnlab.lab.store.merging import file_problems, verify
from attnlab.lab.store.salvage import salvage
from attnlab.lab.sweep import read


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The folder of a store of 90 finished cells, closed."""
    folder = tmp_path_factory.mktemp("original")
    with Store(folder / "s.sqlite", writable=True) as store:
        compute_cells(sweep(90, sleep=0.0).cells("quick"), store, SerialEngine())
    return folder


@pytest.fixture
def filled(original, tmp_path):
    """A copy of that store, to be damaged."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "s.sqlite"


def test_a_flipped_byte_in_a_record_is_found(filled, tried):
    with sqlite3.connect(filled) as db:
        (cell, text) = db.execute("SELECT id, record FROM cells LIMIT 1").fetchone()
        changed = text.replace("0", "1", 1)
        assert changed != text
        db.execute("UPDATE cells SET record = ? WHERE id = ?", (changed, cell))
    with Store(filled) as store:
        assert [(row.id, problem) for row, problem in verify(store)] == [(cell, "its record is not what was written")]
        with pytest.raises(StoreDamaged, match=cell[:12]):
            [store.record(row) for row in store.rows()]
    tried("a changed digit in a stored record", "found, and never read as a result")


def test_every_flipped_bit_of_an_array_file_is_found(filled, seed, tried):
    dice, flips, found = random.Random(seed), 100, 0
    files = sorted((filled.parent / "s.sqlite.arrays").rglob("*.npz"))
    with Store(filled) as store:
        rows = {row.arrays: row for row in store.rows()}
        for _ in range(flips):
            file = dice.choice(files)
            good = file.read_bytes()
            place = dice.randrange(8 * len(good))
            bad = bytearray(good)
            bad[place // 8] ^= 1 << place % 8
            file.write_bytes(bad)
            found += rows[file.stem].problem(store.arrays) == "its array file is not what was written"
            file.write_bytes(good)
        assert list(verify(store)) == []
    assert found == flips
    tried("flipped bits in array files", f"{found} of {flips} found")


def test_a_missing_array_file_is_found(filled):
    next((filled.parent / "s.sqlite.arrays").rglob("*.npz")).unlink()
    with Store(filled) as store:
        ((_, problem),) = verify(store)
    assert "cannot be read" in problem


def test_a_truncated_store_is_named_and_salvaged(filled, tmp_path, tried):
    size = filled.stat().st_size
    os.truncate(filled, size - 3 * 4096)
    with pytest.raises(StoreDamaged, match=r"s\.sqlite is damaged.*salvage"):
        Store(filled)
    with Store(tmp_path / "saved.sqlite", writable=True) as saved:
        counts = salvage(filled, saved)
        assert counts["copied"] > 0
        assert list(verify(saved)) == []
        # what was lost is computed again, and only that
        missing = missing_cells([sweep(90, sleep=0.0)], "quick", saved)
        assert len(missing) == 90 - counts["copied"]
        compute_cells(missing, saved, SerialEngine())
        assert saved.count() == {"done": 90}
    tried("a store of 90 cells cut by three pages", f"{counts['copied']} salvaged, {counts['lost']} computed again")


def test_an_overwritten_page_is_named_and_costs_only_its_rows(filled, tmp_path, tried):
    pages = filled.stat().st_size // 4096
    with open(filled, "r+b") as file:
        file.seek((pages - 4) * 4096)
        file.write(os.urandom(4096))
    with Store(filled) as store:
        assert file_problems(store)
        with pytest.raises(StoreDamaged, match="is damaged"):
            list(store.rows())
    with Store(tmp_path / "saved.sqlite", writable=True) as saved:
        counts = salvage(filled, saved)
        assert counts["copied"] >= 45
        assert counts["copied"] + counts["lost"] == 90
        assert list(verify(saved)) == []
    tried("a page of a store of 90 cells overwritten", f"{counts['copied']} salvaged, {counts['lost']} counted as lost")


def test_a_file_that_is_no_store_is_refused(tmp_path):
    text = tmp_path / "notes.sqlite"
    text.write_text("these are my notes, not a database\n" * 100)
    with pytest.raises(StoreDamaged, match=r"notes\.sqlite"):
        Store(text)
    with pytest.raises(UsageError, match="no store at"):
        Store(tmp_path / "absent.sqlite")


def test_an_unwritable_folder_is_said_in_one_line(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write to"):
        Store(blocker / "s.sqlite", writable=True)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of four megabytes."""
    mount = tmp_path / "disk"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", mount], capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


def test_a_full_disk_stops_with_one_line_and_the_run_resumes_after_freeing(small_disk, capsys, tried):
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 3_700_000)
    store = small_disk / "s.sqlite"
    command = [str(store), "--cells", "90", "--sleep", "0"]
    assert toy.main(command) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "what was committed is intact" in line
    ballast.unlink()
    with Store(store) as opened:
        before = opened.count()["done"]
        assert list(verify(opened)) == []
    assert 0 < before < 90
    assert toy.main(command) == 0
    with Store(store) as opened:
        assert opened.count() == {"done": 90}
    tried("a full disk in the middle of a run", f"one line; {before} of {before} committed cells intact; resumed")


toml_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["name", "task", "learner", "n_train", "n_test", "seeds", "figure", "scale", "set"])


def write_toml(value):
    """A TOML-like rendering that is often valid and sometimes not."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key or 'k'} = {write_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_toml, value)) + "]"
    return repr(value).replace("'", '"').replace("True", "true").replace("False", "false").replace("None", '""')


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.dictionaries(keys | st.text(min_size=1, max_size=6), toml_values, max_size=6) | st.binary(max_size=80)
)
def test_any_sweep_file_is_read_or_refused(tmp_path, content):
    path = tmp_path / "sweep.toml"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(
            "\n".join(f"{k} = {write_toml(v)}" for k, v in content.items()), encoding="utf-8", errors="replace"
        )
    with contextlib.suppress(UsageError):
        read(path)
