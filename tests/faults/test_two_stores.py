"""Rows that travel between stores: good ones are never destroyed, damaged ones are healed."""

import sqlite3

import pytest
from toy import sweep
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.lab import SerialEngine
from attnlab.lab.runner import compute_cells
from attnlab.lab.store import Store
from attnlab.lab.store.merging import file_problems, merge, verify
from attnlab.lab.store.salvage import salvage

CELLS = sweep(12, sleep=0.0).cells("quick")


def filled(path, cells=CELLS):
    with Store(path, writable=True) as store:
        compute_cells(cells, store, SerialEngine())
    return path


def array_files(path):
    return sorted((path.parent / f"{path.name}.arrays").rglob("*.npz"))


def changed_results(path):
    """The same cells with other numbers, each row in order: a run on other hardware, or of other code."""
    import numpy as np

    from attnlab.lab.outcome import Answer, Outcome, versions
    from attnlab.lab.store.payload import encode

    with Store(path, writable=True) as store:
        for cell in CELLS:
            answer = Answer("done", *encode({"mean": 0.5, "numbers": np.ones(20)}), "", 0.1, "cpu", versions())
            store.put(Outcome(cell, answer))
    return path


def test_salvage_into_a_filled_store_destroys_nothing(tmp_path, tried):
    target, other = filled(tmp_path / "good.sqlite"), changed_results(tmp_path / "other.sqlite")
    before = {file: file.read_bytes() for file in array_files(target)}
    with Store(target, writable=True) as store:
        rows = list(store.rows())
        counts = salvage(other, store)
        assert (counts["copied"], counts["different"], counts["lost"]) == (0, 12, 0)
        assert list(store.rows()) == rows
        assert list(verify(store)) == []
        assert file_problems(store) == []
    assert {file: file.read_bytes() for file in before} == before
    tried(
        "salvage of 12 differing cells into a store that has them",
        "unchanged, each still what was written",
        times=len(rows),
    )


def test_a_second_result_never_touches_the_arrays_of_the_first(tmp_path):
    path = filled(tmp_path / "s.sqlite")
    before = {file: file.read_bytes() for file in array_files(path)}
    changed_results(path)
    assert {file: file.read_bytes() for file in before} == before
    with Store(path) as store:
        assert list(verify(store)) == []


@pytest.mark.parametrize("damage", ["record", "hash", "array", "missing array"])
def test_merge_heals_damaged_rows_of_the_target(tmp_path, damage, tried):
    target, source = filled(tmp_path / "t.sqlite"), filled(tmp_path / "s.sqlite")
    if "array" in damage:
        file = array_files(target)[0]
        file.unlink() if damage == "missing array" else file.write_bytes(b"x" + file.read_bytes()[1:])
    else:
        column = {"record": "record", "hash": "payload_hash"}[damage]
        with sqlite3.connect(target) as db:
            db.execute(f"UPDATE cells SET {column} = 'z' || substr({column}, 2) WHERE rowid = 3")
        db.close()
    with Store(target, writable=True) as healed, Store(source) as good:
        assert len(list(verify(healed))) == 1
        assert merge(healed, [good]) == {"copied": 0, "healed": 1, "damaged": 0, "different": 0}
        assert list(verify(healed)) == []
        assert file_problems(healed) == []
    tried("a damaged row or array of the target, healed by merge from a good source", "healed", times=1)


def test_differing_rows_give_exit_code_one(tmp_path):
    target, other, same = (
        filled(tmp_path / "t.sqlite"),
        changed_results(tmp_path / "o.sqlite"),
        filled(tmp_path / "u.sqlite"),
    )
    result = CliRunner().invoke(app, ["store", "merge", str(target), str(other)])
    assert (result.exit_code, "12 different" in result.output) == (1, True)
    assert CliRunner().invoke(app, ["store", "merge", str(target), str(same)]).exit_code == 0


def test_a_store_is_not_salvaged_into_itself(tmp_path):
    path = filled(tmp_path / "t.sqlite")
    (tmp_path / "link.sqlite").symlink_to(path)
    result = CliRunner().invoke(app, ["store", "salvage", str(path), str(tmp_path / "link.sqlite")])
    assert "itself" in str(result.exception)
