"""The array files of a store, named by their content: nothing that is committed is ever overwritten."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from attnlab.lab.store.payload import sha256

HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ArrayFolder:
    """The folder ``<store>.arrays``; a file's name is the SHA-256 of what it holds."""

    path: Path

    @classmethod
    def beside(cls, store: Path) -> ArrayFolder:
        """The folder that belongs to a store, also when the store is reached through a symbolic link."""
        real = store.resolve()
        return cls(real.with_name(real.name + ".arrays"))

    def file(self, name: str) -> Path:
        """Where a file is; a name that is not a hash could lead out of the folder and is refused."""
        if not HASH.fullmatch(name):
            raise ValueError(f"the name of an array file must be 64 hexadecimal digits, got {name!r}")
        return self.path / name[:2] / f"{name}.npz"

    def write(self, content: bytes) -> None:
        """Write a file whole or not at all, unless it is there; nothing to write, nothing written."""
        if not content or self.holds(name := sha256(content)):
            return
        target = self.file(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(".partial")
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                # On the disk before it has its name: after a power cut the name must not stand for a part of it.
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def holds(self, name: str) -> bool:
        """Whether the file is there with the content its name states; a damaged one may be replaced."""
        try:
            return sha256(self.read(name)) == name
        except OSError:
            return False

    def read(self, name: str) -> bytes:
        """The bytes of an array file."""
        return self.file(name).read_bytes()
