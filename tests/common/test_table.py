from dataclasses import replace

import numpy as np

from attnlab.common.records import PACKED, Records
from attnlab.common.table import Columns, PackedRows, Repeated

ROWS = [
    {"a": 1, "b": 0.5, "c": "x"},
    {"a": 2, "b": 1, "c": None},
    {"a": 2**70, "c": "x", "d": [1, 2]},
    {"b": True, "e": np.arange(3)},
    {},
]


def test_packed_rows_read_as_the_dictionaries_they_were_made_from():
    table = Columns(ROWS)
    packed = PackedRows(table, range(table.count))
    for row, found in zip(ROWS, packed, strict=True):
        assert list(found) == list(row)
        assert len(found) == len(row)
        for name in "abcde":
            assert (name in found) == (name in row)
            assert type(found.get(name)) is type(row.get(name))
        assert {name: repr(value) for name, value in found.items()} == {
            name: repr(value) for name, value in row.items()
        }


def test_a_constant_is_kept_once_and_a_zero_keeps_its_sign():
    table = Columns({"a": 0.0, "b": 0, "c": "x"} for _ in range(5))
    assert all(isinstance(column.values, Repeated) for column in table.columns.values())
    signed = PackedRows(Columns([{"a": 0.0}, {"a": -0.0}]), range(2))
    assert [str(row["a"]) for row in signed] == ["0.0", "-0.0"]


def test_large_records_answer_as_small_ones_do(monkeypatch):
    rows = [{"cell": f"{i}", "x": i % 7, "y": i * 0.25, "seed": i // 7, "name": "ab"[i % 2]} for i in range(60)]
    plain = Records.of(rows)
    monkeypatch.setattr("attnlab.common.records.PACKED", 10)
    packed = Records.of(rows)
    assert PACKED > 1000
    assert len(packed) == len(plain) == 60
    assert [dict(row) for row in packed] == [dict(row) for row in plain]
    assert packed.values("x") == plain.values("x")
    assert packed.where(x=3, name="a").mean("y") == plain.where(x=3, name="a").mean("y")
    for ours, theirs in zip(packed.curve("x", "y"), plain.curve("x", "y"), strict=True):
        assert np.array_equal(ours, theirs)
    assert len(packed.without_seed(2)) == len(plain.without_seed(2))
    packed = replace(packed, parameters=("x", "name"))
    assert packed.complete_replicates() == replace(plain, parameters=("x", "name")).complete_replicates()
    once = replace(packed, parameters=("x", "name", "y")).only([3])  # every setting was run once: all rows stay
    assert len(once) == 60
    assert isinstance(once.rows, PackedRows)
    assert [row["y"] for row in packed.rows[5:7]] == [1.25, 1.5]
