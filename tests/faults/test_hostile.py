"""Stores of other users: nothing in them acts by itself, nothing is written outside the folder."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from toy import sweep
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.lab import SerialEngine
from attnlab.lab.errors import StoreDamaged
from attnlab.lab.runner import compute_cells
from attnlab.lab.store import Store
from attnlab.lab.store.arrays import ArrayFolder
from attnlab.lab.store.export import export_csv
from attnlab.lab.store.merging import merge
from attnlab.lab.store.row import HASHED
from attnlab.lab.store.salvage import salvage


def filled(path, cells=9):
    with Store(path, writable=True) as store:
        compute_cells(sweep(cells, sleep=0.0).cells("quick"), store, SerialEngine())
    return path


def rewrite(path, **changes):
    """Change one row and give it the hash that suits its new content, as its author could."""
    with sqlite3.connect(path) as db:
        db.row_factory = sqlite3.Row
        row = dict(db.execute("SELECT * FROM cells WHERE arrays <> '' LIMIT 1").fetchone())
        old, row = row["id"], row | changes
        row["payload_hash"] = hashlib.sha256("\n".join(str(row[name]) for name in HASHED).encode()).hexdigest()
        assignments = ", ".join(f"{name} = :{name}" for name in row)
        db.execute(f"UPDATE cells SET {assignments} WHERE id = :old", {**row, "old": old})
    db.close()
    return row


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "A" * 64, "0" * 63, 12])
@pytest.mark.parametrize("way", ["merge", "salvage"])
@pytest.mark.parametrize("column", ["id", "arrays"])
def test_a_row_cannot_name_a_place_outside_the_folder(tmp_path, way, column, name, tried):
    source = filled(tmp_path / "a" / "b" / "source.sqlite")
    row = rewrite(source, **{column: name})
    original = ArrayFolder.beside(source).path
    if column == "arrays":  # an array file to be found under that name, were it followed
        place = original / str(name)[:2] / f"{name}.npz"
        if not str(name).startswith("/"):
            place.parent.mkdir(exist_ok=True)
            place.resolve().write_bytes(b"x")
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    target = tmp_path / "c" / "d" / "target.sqlite"
    with Store(target, writable=True) as saved:
        if way == "merge":
            with Store(source) as opened:
                counts = merge(saved, [opened])
            assert counts["damaged"] == 1
        else:
            assert salvage(source, saved)["lost"] == 1
        assert sum(saved.count().values()) == 8
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(
        Path(target.parent) in path.parents for path in written if "-shm" not in path.name and "-wal" not in path.name
    )
    assert not Path("/tmp/escaped.npz").exists()
    assert row[column] == name
    tried(
        "merge and salvage of stores with ids and file names such as ../../x",
        "left out; nothing written outside",
        times=1,
    )


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON cells BEGIN DELETE FROM cells; END",
        "CREATE VIEW v AS SELECT * FROM cells",
        "CREATE TABLE extra (x)",
        "CREATE INDEX i ON cells (upper(record))",
    ],
)
def test_tables_that_are_not_ours_are_refused(tmp_path, statement, tried):
    path = filled(tmp_path / "s.sqlite")
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()
    for writable in (False, True):
        with pytest.raises(StoreDamaged, match="that attnlab did not make"):
            Store(path, writable=writable)
    tried("stores of another user with a trigger, a view, a table or an index", "not opened", times=1)


def test_a_view_in_place_of_the_table_does_not_answer_for_it(tmp_path):
    path = filled(tmp_path / "s.sqlite")
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE cells RENAME TO hidden")
        db.execute("CREATE VIEW cells AS SELECT * FROM hidden WHERE rowid < 3")
    db.close()
    result = CliRunner().invoke(app, ["store", "verify", str(path)])
    assert result.exit_code != 0
    assert "did not make" in str(result.exception)


def test_a_trigger_does_not_fool_verify(tmp_path):
    path = filled(tmp_path / "s.sqlite")
    with sqlite3.connect(path) as db:  # removed again after it has acted
        db.execute("DELETE FROM cells WHERE rowid = 4")
    db.close()
    result = CliRunner().invoke(app, ["store", "verify", str(path)])
    assert result.exit_code == 1
    assert "8 rows, 9 were committed" in result.output


def test_markup_and_escape_codes_in_names_are_shown_as_text(tmp_path):
    path = filled(tmp_path / "s.sqlite")
    rewrite(path, figure="[bold red]x[/]\x1b[2J", code="[link=http://x]y[/link]")
    result = CliRunner().invoke(app, ["store", "info", str(path)])
    assert result.exit_code == 0, result.output
    assert "[bold red]x[/]\\x1b[2J" in result.output
    assert "[link=http://x]y[/link]" in result.output
    assert "\x1b" not in result.output


def test_a_spreadsheet_takes_no_cell_for_a_formula(tmp_path):
    rows = [
        {"cell": "c", "figure": "f", "=x": 1, "word": text, "number": -1.5}
        for text in ("=1+1", "+1", "-1", "@a", "\tz", "plain")
    ]
    export_csv(rows, tmp_path / "t.csv")
    header, *lines = (tmp_path / "t.csv").read_text().splitlines()
    assert header == "cell,figure,'=x,number,word"
    assert [line.rpartition("-1.5,")[2] for line in lines] == ["'=1+1", "'+1", "'-1", "'@a", "'\tz", "plain"]


def test_a_record_that_nests_without_end_is_damage_not_a_crash(tmp_path):
    path = filled(tmp_path / "s.sqlite")
    rewrite(path, record="[" * 100_000, arrays="")
    with Store(path) as store, pytest.raises(StoreDamaged, match="is damaged"):
        [store.record(row) for row in store.rows()]


def test_a_compressed_array_file_is_not_unfolded(tmp_path):
    import io

    import numpy as np

    path = filled(tmp_path / "s.sqlite")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a0=np.zeros(10**6))
    content = buffer.getvalue()
    ArrayFolder.beside(path).write(content)
    rewrite(path, arrays=hashlib.sha256(content).hexdigest(), record=json.dumps({"x": {"__array__": "a0"}}))
    with Store(path) as store, pytest.raises(StoreDamaged, match="compressed"):
        [store.record(row) for row in store.rows()]
