"""What a killed driver, a damaged log or a copy without its log left behind, and how the file becomes whole again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from attnlab.lab.store.committed import MODULUS, CommitLog, Tally, number
from attnlab.lab.store.schema import log_file

SHOWN = 20


@dataclass(frozen=True)
class Lost:
    """Rows that were committed and are gone: by id, with what stands in the file instead (None: nothing)."""

    rows: dict[str, str | None]
    behind: int = 0

    def notes(self, db: sqlite3.Connection, path: Path, *, without_log: bool) -> list[str]:
        """What a user must know, one line each."""
        notes = []
        if without_log and _is_open(db):
            notes.append(
                f"{path} was not closed and its log {path.name}-wal is missing: the last cells may be in that file."
                f" Bring it back beside the store, or copy with 'attnlab store copy'; otherwise they are computed again"
            )
        if self.rows:
            names = ", ".join(id[:12] for id in list(self.rows)[:SHOWN])
            more = f" and {len(self.rows) - SHOWN} more" * (len(self.rows) > SHOWN)
            notes.append(
                f"{len(self.rows)} cells that were committed are lost with the damaged log of {path};"
                f" they will be computed again: {names}{more}"
            )
        elif self.behind:
            notes.append(f"{path} holds {self.behind} cells less than were committed; they will be computed again")
        return notes


def missing_log(path: Path) -> bool:
    """Whether there is no log, or an empty one: SQLite makes it when it opens the file."""
    log = log_file(path)
    return not log.exists() or not log.stat().st_size


def lost_rows(db: sqlite3.Connection, commits: CommitLog, tally: Tally) -> Lost:
    """Compare the second record of the commits with the file."""
    recorded, rows = commits.read()
    gone: dict[str, str | None] = {}
    for id, payload in rows.items():
        found = db.execute("SELECT payload_hash FROM cells WHERE id = ?", (id,)).fetchone()
        if found is None or found[0] != payload:
            gone[id] = found and found[0]  # None, or the hash of an earlier try
    return Lost(gone, max(0, recorded.rows - tally.rows) if recorded else 0)


def recover(db: sqlite3.Connection, lost: Lost, tally: Tally) -> Tally:
    """Remove what stands in the place of lost rows (an earlier, failed try), so that these cells are computed again."""
    stale = {id: payload for id, payload in lost.rows.items() if payload is not None}
    if not stale:
        return tally
    # the digest is a sum, so that a row is taken out by subtraction
    digest = (tally.digest - sum(number(payload) for payload in stale.values())) % MODULUS
    tally = Tally(tally.rows - len(stale), digest)
    db.execute("BEGIN IMMEDIATE")
    db.executemany("DELETE FROM cells WHERE id = ?", [(id,) for id in stale])
    db.execute("UPDATE meta SET value = ? WHERE key = 'committed'", (str(tally),))
    db.execute("COMMIT")
    return tally


def clear_log(db: sqlite3.Connection) -> bool:
    """Copy the log into the file; False while a reader still needs a part of it."""
    busy, pages, copied = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not busy and pages == copied  # both are -1 where there is no log


def _is_open(db: sqlite3.Connection) -> bool:
    found = db.execute("SELECT value FROM meta WHERE key = 'open'").fetchone()
    return bool(found and found[0])
