"""What is kept from run to run in a folder of the user's, within a limit."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """``ATTNLAB_CACHE``, or ``attnlab`` in the user's folder for such files."""
    own = os.environ.get("ATTNLAB_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"


def tidy(folder: Path, limit: int) -> None:
    """Remove the oldest files of a folder until the rest is within the limit, in bytes; drafts (``.tmp``) stay."""
    kept = (path for path in folder.iterdir() if path.is_file() and path.suffix != ".tmp")
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in kept)
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= limit:
            break
        path.unlink(missing_ok=True)  # another process may tidy at the same time
        total -= size
