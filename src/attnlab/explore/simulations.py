"""Stored simulations as the explorer's points."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.common.records import Records, Row
from attnlab.common.view import Point
from attnlab.lab import registry
from attnlab.lab.store import Store


class StoredCells:
    """The finished cells of a store by figure; without a store there are none."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    def of(self, *figures: str) -> list[Row]:
        """The rows of these figures, whatever the scale they were run at."""
        if self._store is None:
            return []
        done = (row for figure in figures for row in self._store.rows(figure) if row.status == "done")
        # record() checks each row against its hash: a damaged point is never drawn
        return list(Records.of(map(self._store.record, done)))


def simulations(path: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Every point that the views show, from the store at ``path`` (None: empty lists)."""
    with contextlib.nullcontext() if path is None else Store(path) as store:
        cells = StoredCells(store)
        return {name: dict(view.points(cells)) for name, view in registry.views().items()}


def count(points: Mapping[str, Mapping[str, Sequence[Point]]]) -> int:
    """How many points there are in all views."""
    return sum(len(series) for view in points.values() for series in view.values())
