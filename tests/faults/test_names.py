"""One file under several names: the lock and the arrays follow the file."""

import multiprocessing
import os

import pytest
import toy
from toy import sweep

from attnlab.lab import SerialEngine
from attnlab.lab.errors import StoreHeld, StoreUnwritable
from attnlab.lab.runner import compute_cells
from attnlab.lab.store import Store, locking
from attnlab.lab.store.merging import verify

CELLS = sweep(6, sleep=0.0).cells("quick")


def hold(path, ready, done):
    with Store(path, writable=True):
        ready.set()
        done.wait(60)


@pytest.fixture
def held(tmp_path):
    """A store that another process is writing to, and the number of that process."""
    path = tmp_path / "here" / "s.sqlite"
    with Store(path, writable=True) as store:
        compute_cells(CELLS, store, SerialEngine())
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=hold, args=(path, ready, done))
    process.start()
    assert ready.wait(60)
    yield path, process.pid
    done.set()
    process.join(60)


def test_no_other_name_avoids_the_lock(held, tmp_path, capsys, tried):
    path, pid = held
    (tmp_path / "there").mkdir()
    symbolic, hard, folder = tmp_path / "there" / "a.sqlite", tmp_path / "there" / "b.sqlite", tmp_path / "linked"
    symbolic.symlink_to(path)
    os.link(path, hard)
    folder.symlink_to(path.parent)
    (path.parent / "s.sqlite.lock").unlink()
    names = (path, symbolic, hard, folder / "s.sqlite")
    for name in names:
        with pytest.raises(StoreHeld, match=f"held by process {pid}"):
            Store(name, writable=True)
        with Store(name) as reader:  # reading is always allowed
            assert reader.count() == {"done": 6} or name == hard
    assert toy.main([str(path)]) == 2
    error = capsys.readouterr().err
    assert f"attnlab: the store {path} is held by process {pid}" in error
    tried("a second driver on a store in use", "refused, with the process that holds it")
    tried(
        "a second driver by symbolic link, hard link, linked folder, and after the .lock file was removed",
        "refused",
        times=len(names),
    )


def test_a_second_writer_in_the_same_process_is_refused_and_harmless(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path, writable=True) as store:
        compute_cells(CELLS[:3], store, SerialEngine())
        with pytest.raises(StoreHeld, match=f"held by process {os.getpid()}"):
            Store(path, writable=True)
        compute_cells(CELLS[3:], store, SerialEngine())
    with Store(path) as store:
        assert store.count() == {"done": 6}


def test_arrays_are_found_through_a_link(tmp_path):
    real, link = tmp_path / "far" / "s.sqlite", tmp_path / "near.sqlite"
    with Store(real, writable=True) as store:
        compute_cells(CELLS[:3], store, SerialEngine())
    link.symlink_to(real)
    with Store(link, writable=True) as store:
        compute_cells(CELLS[3:], store, SerialEngine())
        assert list(verify(store)) == []
        assert [store.record(row)["numbers"].shape for row in store.rows()] == [(20,)] * 6
    assert not (tmp_path / "near.sqlite.arrays").exists()


def test_a_linked_network_drive_is_recognised(tmp_path, monkeypatch):
    drive, link = tmp_path / "drive", tmp_path / "home"
    drive.mkdir()
    link.symlink_to(drive)

    class Mounts:
        def __init__(self, name):
            assert name == "/proc/self/mounts"

        def exists(self):
            return True

        def read_text(self):
            return f"disk / ext4 rw 0 0\nserver:/x {drive} nfs4 rw 0 0\n"

    monkeypatch.setattr(locking, "Path", Mounts)
    assert locking.on_network_drive(link / "s.sqlite")
    assert not locking.on_network_drive(tmp_path / "s.sqlite")


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_store_that_disappears_under_the_driver_is_noticed(tmp_path, change):
    path = tmp_path / "s.sqlite"
    with Store(path, writable=True) as store:
        compute_cells(CELLS[:3], store, SerialEngine())
        path.rename(tmp_path / "elsewhere.sqlite")
        if change == "replaced":
            path.write_bytes(b"")
        with pytest.raises(StoreUnwritable, match="moved, removed or replaced"):
            compute_cells(CELLS[3:], store, SerialEngine())
