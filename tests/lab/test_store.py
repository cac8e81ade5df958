import sqlite3

import numpy as np
import pytest
from toy_figures import FIGURE

from attnlab.lab import SerialEngine
from attnlab.lab.errors import StoreHeld, UsageError
from attnlab.lab.outcome import compute, killed
from attnlab.lab.runner import Shard, compute_cells, missing_cells
from attnlab.lab.store import Store
from attnlab.lab.store.export import StoredTable, export_csv, export_parquet
from attnlab.lab.store.locking import on_network_drive
from attnlab.lab.store.merging import merge, verify
from attnlab.lab.store.payload import decode, encode

CELLS = FIGURE.cells("quick")


def test_what_is_put_is_read_back_exactly(tmp_path):
    cell = CELLS[0]
    with Store(tmp_path / "s.sqlite", writable=True) as store:
        store.put(compute(cell))
        ((row,),) = [list(store.rows())]
        record = store.record(row)
    expected = cell()
    assert record["error"] == expected["error"]
    assert np.array_equal(record["numbers"], expected["numbers"])
    assert (record["cell"], record["figure"], record["n"]) == (cell.id, "toy.mean", 10)


def test_records_of_any_nesting_survive():
    record = {
        "a": 1,
        "b": [1.5, "x", None, True],
        "rows": [{"v": np.arange(3)}, {"v": np.float64(2.0)}],
        "c": np.eye(2),
    }
    text, content = encode(record)
    back = decode(text, content)
    assert back["a"] == 1
    assert back["b"] == [1.5, "x", None, True]
    assert np.array_equal(back["rows"][0]["v"], np.arange(3))
    assert back["rows"][1]["v"] == 2.0
    assert np.array_equal(back["c"], np.eye(2))


@pytest.mark.parametrize("value", [object(), lambda: 0, {1, 2}, np.array([object()])])
def test_what_cannot_be_stored_is_refused_by_name(value):
    with pytest.raises(TypeError, match="'bad'"):
        encode({"bad": value})


def test_a_finished_cell_is_never_overwritten_and_a_failed_one_is(tmp_path):
    with Store(tmp_path / "s.sqlite", writable=True) as store:
        store.put(killed(CELLS[0], 3))
        assert store.count() == {"failed": 1}
        store.put(compute(CELLS[0]))
        store.put(killed(CELLS[0], 3))
        assert store.count() == {"done": 1}


def test_only_missing_cells_are_computed(tmp_path):
    with Store(tmp_path / "s.sqlite", writable=True) as store:
        compute_cells(CELLS[:5], store, SerialEngine())
        assert [c.id for c in missing_cells([FIGURE], "quick", store)] == [c.id for c in CELLS[5:]]
        store.put(killed(CELLS[6], 3))
        assert CELLS[6].id not in {c.id for c in missing_cells([FIGURE], "quick", store)}
        assert CELLS[6].id in {c.id for c in missing_cells([FIGURE], "quick", store, retry_failed=True)}


def test_shards_partition_the_cells_and_merge_to_the_whole(tmp_path):
    parts = [[c for c in CELLS if Shard(i, 3).holds(c)] for i in (1, 2, 3)]
    assert sorted(c.id for part in parts for c in part) == sorted(c.id for c in CELLS)
    for i, part in enumerate(parts):
        with Store(tmp_path / f"{i}.sqlite", writable=True) as store:
            compute_cells(part, store, SerialEngine())
    sources = [Store(tmp_path / f"{i}.sqlite") for i in range(3)]
    with Store(tmp_path / "all.sqlite", writable=True) as whole:
        assert merge(whole, sources) == {"copied": 12, "healed": 0, "damaged": 0, "different": 0}
        assert merge(whole, sources) == {"copied": 0, "healed": 0, "damaged": 0, "different": 0}
        assert list(verify(whole)) == []
        assert whole.count() == {"done": 12}
    for source in sources:
        source.close()


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "a/b", "1/0", "-1/2"])
def test_a_wrong_shard_says_the_right_form(text):
    with pytest.raises(ValueError, match="i/n with 1 <= i <= n"):
        Shard.parse(text)


def test_readers_are_welcome_while_a_driver_writes(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path, writable=True) as driver:
        driver.put(compute(CELLS[0]))
        with Store(path) as reader:
            assert reader.count() == {"done": 1}
            driver.put(compute(CELLS[1]))
            assert reader.count() == {"done": 2}
        with pytest.raises(StoreHeld, match="held by process"):
            Store(path, writable=True)
    Store(path, writable=True).close()


def test_a_store_of_another_schema_is_refused(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path, writable=True).close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '99'")
    db.close()
    with pytest.raises(UsageError, match="schema 99"):
        Store(path)


def test_the_journal_suits_the_drive(tmp_path, monkeypatch):
    assert not on_network_drive(tmp_path)
    monkeypatch.setattr("attnlab.lab.store.locking.on_network_drive", lambda path: True)
    path = tmp_path / "s.sqlite"
    Store(path, writable=True).close()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    db.close()


def test_exports_hold_parameters_and_results(tmp_path):
    from pyarrow import parquet

    with Store(tmp_path / "s.sqlite", writable=True) as store:
        compute_cells(CELLS, store, SerialEngine())
        rows = list(StoredTable(store))
    export_csv(rows, tmp_path / "t.csv")
    export_parquet(rows, tmp_path / "t.parquet")
    header, *lines = (tmp_path / "t.csv").read_text().splitlines()
    assert header == "cell,figure,code,error,n,numbers,seed,stream,version"
    assert len(lines) == 12
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table.column_names == header.split(",")
    assert table.column("error").to_pylist() == [row["error"] for row in rows]
