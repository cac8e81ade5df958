"""One driver per store: a lock on the file itself, which dies with its process and which no other name avoids."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import ClassVar

from attnlab.lab.errors import StoreHeld

NETWORK_DRIVES = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "fuse.sshfs"}
PATIENCE = 10  # attempts to lock


class OpenFile:
    """The file under a store, held open for as long as this process has the store open.

    The kernel drops a lock with the process, however it ends. On a network drive ``flock`` would keep readers out, so
    the file ``<store>.lock`` is locked instead; elsewhere that file only names the holder.

    SQLite's own locks belong to the process, and closing *any* descriptor of the file gives them up. So there is one
    descriptor for all users in the process, closed when the last of them has left.
    """

    _open: ClassVar[dict[tuple[int, int], OpenFile]] = {}

    def __init__(self, path: Path, key: tuple[int, int]) -> None:
        self.key, self.users, self.held = key, 0, False
        self.path = path.resolve()
        self.note = self.path.with_name(self.path.name + ".lock")
        self.network = on_network_drive(self.path)
        self._descriptor = os.open(self.note, os.O_RDWR | os.O_CREAT, 0o644) if self.network else os.open(path, 0)

    @classmethod
    def use(cls, path: Path) -> OpenFile:
        """Enter; every :meth:`use` is followed by one :meth:`leave`."""
        status = os.stat(path)
        key = status.st_dev, status.st_ino
        # by device and inode, so that a link leads to the same entry
        if key not in cls._open:
            cls._open[key] = cls(path, key)
        cls._open[key].users += 1
        return cls._open[key]

    def leave(self) -> None:
        """Close the file behind the last user."""
        self.users -= 1
        if not self.users:
            del self._open[self.key]
            os.close(self._descriptor)

    def lock(self) -> bool:
        """Become the only driver, if there is none."""
        # A reader that checks for a driver holds the lock for a moment.
        for attempt in range(PATIENCE if not self.held else 0):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05 if attempt < PATIENCE - 1 else 0.0)
            else:
                self.held = True
                return True
        return False

    @property
    def has_driver(self) -> bool:
        """Whether a driver, here or in another process, holds the store."""
        if self.held:
            return True
        try:
            # shared, so that readers who look at the same time do not take each other for a driver
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False

    def unlock(self) -> None:
        """Let the next driver in."""
        if self.held:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.held = False

    def sign(self) -> None:
        """Write the holder of the lock to a file."""
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.datetime.now().isoformat(timespec="seconds"),
            "command": " ".join(sys.argv[:4]),
        }
        self.note.write_text(json.dumps(holder))

    def refusal(self, store: Path) -> StoreHeld:
        """The error of whoever comes second."""
        pid = os.getpid() if self.held else _locking_process(self.key[1])
        holder = f"process {pid}" if pid else "another process"
        # the note may be removed, or lie beside another name of the file
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            who = json.loads(self.note.read_text())
            # the note may be of an earlier holder
            if pid in (None, who["pid"]):
                holder = f"process {who['pid']} on {who['host']} since {who['since']} ({who['command']})"
        return StoreHeld(f"the store {store} is held by {holder}")

    @property
    def moved(self) -> bool:
        """Whether the name leads to another file by now, or to none."""
        try:
            status = os.stat(self.path)
        except OSError:
            return True
        return (status.st_dev, status.st_ino) != self.key


def _locking_process(inode: int) -> int | None:
    """The process that holds a flock on this file, as Linux lists them."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        # a line is ``n: FLOCK ADVISORY WRITE pid major:minor:inode start end``; of who waits, ``n: -> FLOCK ...``
        if fields[1] == "FLOCK" and fields[5].rsplit(":", 1)[-1] == str(inode) and int(fields[4]) > 0:
            return int(fields[4])
    return None


def on_network_drive(path: Path) -> bool:
    """Whether the file system under ``path``, symbolic links followed, is a network drive (Linux only)."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return False
    best, kind = "", ""
    where = str(path.resolve())
    for entry in mounts.read_text().splitlines():
        _, mount, filesystem, *_ = entry.split(" ")
        inside = where == mount or where.startswith(mount.rstrip("/") + "/")
        # the deepest mount holds the path; of two at one place the later one covers the other
        if inside and len(mount) >= len(best):
            best, kind = mount, filesystem
    return kind in NETWORK_DRIVES
