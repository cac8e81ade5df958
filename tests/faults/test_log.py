"""SQLite's write-ahead log: copied, missing, or damaged."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from toy import sweep
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.lab import SerialEngine
from attnlab.lab.runner import compute_cells, missing_cells
from attnlab.lab.store import Store
from attnlab.lab.store.merging import file_problems, verify

HERE = Path(__file__).parent
FIGURE = sweep(42, sleep=0.0)
FRAME = 24 + 4096  # of the log, after its header of 32 bytes

KILLED = """
import os, signal, sys
from toy import sweep
from attnlab.lab import SerialEngine
from attnlab.lab.runner import compute_cells
from attnlab.lab.store import Store
store = Store(sys.argv[1], writable=True)
compute_cells(sweep(42, sleep=0.0).cells("quick")[:40], store, SerialEngine())
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory):
    """The folder of a driver that was killed after 40 commits."""
    folder = tmp_path_factory.mktemp("killed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run([sys.executable, "-c", KILLED, str(folder / "s.sqlite")], env=environment, cwd=HERE)
    assert run.returncode == -signal.SIGKILL
    assert (folder / "s.sqlite-wal").stat().st_size > 40 * FRAME
    return folder


@pytest.fixture
def killed(left_behind, tmp_path):
    """A copy of that folder, as if it had just happened."""
    shutil.copytree(left_behind, tmp_path, dirs_exist_ok=True)
    return tmp_path / "s.sqlite"


def test_after_a_kill_all_rows_are_there_and_a_look_brings_them_into_the_file(killed, tmp_path):
    result = CliRunner().invoke(app, ["store", "info", str(killed)])
    assert result.output.splitlines()[-1] == "40 cells, 1 code"
    alone = tmp_path / "alone" / "s.sqlite"
    alone.parent.mkdir()
    shutil.copy(killed, alone)
    with Store(alone) as store:
        assert store.count() == {"done": 40}


def test_a_copy_without_the_log_says_that_it_is_missing(killed, tmp_path, tried):
    alone = tmp_path / "alone" / "s.sqlite"
    alone.parent.mkdir()
    shutil.copy(killed, alone)
    result = CliRunner().invoke(app, ["store", "info", str(alone)])
    assert "its log s.sqlite-wal is missing" in result.output
    assert "attnlab store copy" in result.output
    assert CliRunner().invoke(app, ["store", "verify", str(alone)]).exit_code == 1
    tried("the file of a killed run copied without its log", "said, with the way to copy it whole")


def test_a_missing_log_beside_its_store_names_the_lost_cells(killed):
    (killed.parent / "s.sqlite-wal").unlink()
    with Store(killed) as store:
        assert any("40 cells that were committed are lost" in note for note in store.notes)


def flip(log, where, bit):
    content = bytearray(log.read_bytes())
    content[where] ^= 1 << bit
    log.write_bytes(bytes(content))


def test_every_flipped_bit_of_the_log_is_noticed(killed, left_behind, seed, tried):
    """A row is either there and what was written, or named as lost; none disappears silently."""
    dice, log = random.Random(seed), killed.parent / "s.sqlite-wal"
    size, noticed, harmless = log.stat().st_size, 0, 0
    for _ in range(40):
        for name in ("s.sqlite", "s.sqlite-wal", "s.sqlite-shm", "s.sqlite.committed"):
            shutil.copy(left_behind / name, killed.parent / name)
        flip(log, dice.randrange(32, size), dice.randrange(8))
        with Store(killed) as store:
            rows = sum(store.count().values())
            lost = sum(int(note.split(" ")[0]) for note in store.notes if "are lost with" in note)
            assert rows + lost == 40
            assert list(verify(store)) == []
            noticed, harmless = noticed + (lost > 0), harmless + (rows == 40)
    assert noticed + harmless == 40
    assert noticed > 30
    tried(
        "flipped bits in the log of a killed run",
        f"40: {noticed} noticed with the cells lost, {harmless} in parts no longer read, 0 silent",
    )


def test_the_lost_cells_are_named_and_computed_again(killed):
    flip(killed.parent / "s.sqlite-wal", 32 + 30 * FRAME, 3)
    with Store(killed, writable=True) as store:
        (note,) = store.notes
        missing = list(missing_cells([FIGURE], "quick", store))
        lost = len(missing) - 2
        assert lost > 0
        assert f"{lost} cells that were committed are lost" in note
        assert sum(cell.id[:12] in note for cell in missing) >= min(lost, 20)
        compute_cells(missing, store, SerialEngine())
    with Store(killed) as store:
        assert (store.notes, store.count(), file_problems(store)) == ([], {"done": 42}, [])


def test_a_copy_of_a_store_in_use_is_whole(tmp_path, tried):
    path = tmp_path / "s.sqlite"
    cells = FIGURE.cells("quick")
    with Store(path, writable=True) as store:
        for i in range(3):
            compute_cells(cells[10 * i : 10 * i + 10], store, SerialEngine())
            target = tmp_path / f"copy{i}" / "c.sqlite"
            target.parent.mkdir()
            result = CliRunner().invoke(app, ["store", "copy", str(path), str(target)])
            assert result.output.startswith(f"{10 * i + 10} cells copied"), result.output
            with Store(target) as copied:
                assert (copied.notes, copied.count(), file_problems(copied)) == ([], {"done": 10 * i + 10}, [])
                assert list(verify(copied)) == []
    again = CliRunner().invoke(app, ["store", "copy", str(path), str(target)])
    assert "does not overwrite" in str(again.exception)
    tried("store copy while a driver writes", "copies whole", times=3)
