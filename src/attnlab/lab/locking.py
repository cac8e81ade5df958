"""One driver per store: a lock that dies with its process, and that says who holds it."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import socket
import sys
from pathlib import Path

from attnlab.lab.errors import StoreHeld

NETWORK_DRIVES = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "fuse.sshfs"}


class WriterLock:
    """An exclusive lock on ``<store>.lock``; the kernel drops it when the process ends, however it ends."""

    def __init__(self, store: Path) -> None:
        path = store.with_name(store.name + ".lock")
        self._file = open(path, "a+")  # noqa: SIM115  # the open file is the lock
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise StoreHeld(f"the store {store} is held by {_describe(holder)}") from None
        self._file.truncate(0)
        json.dump(
            {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": datetime.datetime.now().isoformat(timespec="seconds"),
                "command": " ".join(sys.argv[:4]),
            },
            self._file,
        )
        self._file.flush()

    def release(self) -> None:
        """Let the next driver in."""
        self._file.close()


def on_network_drive(path: Path) -> bool:
    """Whether the file system under ``path`` is a network drive (Linux; elsewhere taken as local)."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return False
    best, kind = "", ""
    where = str(path.absolute())
    for entry in mounts.read_text().splitlines():
        _, mount, filesystem, *_ = entry.split(" ")
        inside = where == mount or where.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, filesystem
    return kind in NETWORK_DRIVES


def _describe(holder: str) -> str:
    try:
        who = json.loads(holder)
        return f"process {who['pid']} on {who['host']} since {who['since']} ({who['command']})"
    except (ValueError, KeyError, TypeError):
        return holder
