"""Cells on Dask workers: a window of them at a time, wide enough for the workers there are at the moment."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from attnlab.common.figure import Cell
from attnlab.lab.engine.work import TRIES, Work
from attnlab.lab.errors import LabError
from attnlab.lab.outcome import Answer, Outcome, answers

# Tasks handed to Dask for each thread, and at least: a cluster that grows by itself must see that there is work. The
# scheduler keeps those that wait; a worker holds one more than it computes.
WINDOW, LEAST = 3, 64
# Seconds between looks at the workers, without a worker before that is said, and before the cluster is given up.
POLL, NOTICE, PATIENCE = 1.0, 10.0, 60.0
# Threads that fetch results. One that died with its worker holds its thread until it is computed again.
FETCHERS = 32

log = logging.getLogger("attnlab.engine")


class WorkersGone(LabError):
    """No worker has been seen for too long."""


class Cluster:
    """A way to Dask workers: called, it opens a client and closes it on leaving.

    ``owned`` clusters are started by us, and anew when all workers are lost.
    """

    owned = False

    def __call__(self) -> contextlib.AbstractContextManager[Any]:
        """Open a client."""
        raise NotImplementedError

    def expecting(self, client: Any) -> str:
        """What is still to come when no worker is there, in words; empty if nothing is."""
        return ""


@dataclass(frozen=True)
class DaskEngine:
    """Cells on Dask workers; ``connect`` is a :class:`Cluster`, or any function that opens a client."""

    connect: Callable[[], contextlib.AbstractContextManager[Any]]

    def outcomes(self, cells: Iterable[Cell]) -> Iterator[Outcome]:
        """Compute the cells."""
        work = Work(cells)
        cluster = self.connect if isinstance(self.connect, Cluster) else Cluster()
        losses = 0
        while losses < TRIES:
            with self.connect() as client:
                session = _Session(client, cluster, work)
                try:
                    for outcome in session.outcomes():
                        losses = 0
                        yield outcome
                    return
                except WorkersGone:
                    # a cluster of somebody else's cannot be started anew
                    losses = losses + 1 if cluster.owned else TRIES
        raise WorkersGone("no worker is left; what is finished is stored, and the same command goes on from there")


class _Session:
    """Work on one client, until it is done or the workers are gone."""

    def __init__(self, client: Any, cluster: Cluster, work: Work) -> None:
        self.client, self.cluster, self.work = client, cluster, work
        self.finished: queue.SimpleQueue[tuple[Any, list[Answer] | LabError | None]] = queue.SimpleQueue()
        self.in_flight: dict[str, tuple[list[Cell], Any]] = {}
        self.threads, self.looked = 0, -POLL
        self.fetchers = ThreadPoolExecutor(FETCHERS, "attnlab-fetch")

    def outcomes(self) -> Iterator[Outcome]:
        try:
            while self._fill():
                future, found = self._next()
                if isinstance(found, LabError):
                    raise found
                cells, _ = self.in_flight.pop(future.key)
                if found is None:
                    yield from self.work.died(cells)
                else:
                    # a worker that took long sends back a part of its batch
                    self.work.returned(cells[len(found) :])
                    yield from map(self.work.answered, cells, found)
        finally:
            # not waited for: a worker that does not answer would hold the end of the run
            self.fetchers.shutdown(wait=False, cancel_futures=True)
            for cells, _ in self.in_flight.values():
                self.work.returned(cells)

    def _fill(self) -> bool:
        """Hand out work up to the window; False when there is none left."""
        if time.monotonic() - self.looked >= POLL:
            self._look()
        while len(self.in_flight) < max(LEAST, WINDOW * self.threads):
            cells = self.work.batch()
            if not cells and not self.in_flight:
                cells = self.work.lonely()
            if not cells:
                break
            self._submit(cells)
        return bool(self.in_flight)

    def _submit(self, cells: list[Cell]) -> None:
        try:
            # pure=False: tasks of equal arguments would share a key, and a second try the first one's result
            future = self.client.submit(answers, cells, pure=False)
        except Exception as error:
            self.work.returned(cells)
            raise LabError(f"cells of {cells[0].figure} cannot be sent to workers: {error!r}") from error
        self.in_flight[future.key] = cells, future
        future.add_done_callback(self._fetch)

    def _fetch(self, future: Any) -> None:
        """Take a result from its worker at once.

        It is lost with the worker for as long as it lies there, so it must wait neither for others to be committed nor
        for one whose worker does not answer any more.
        """

        def take() -> None:
            found = _answers(future)
            future.release()
            self.finished.put((future, found))

        with contextlib.suppress(RuntimeError):  # the session has ended
            self.fetchers.submit(take)

    def _look(self) -> None:
        """Count the threads of the workers; none when the scheduler does not answer."""
        self.looked = time.monotonic()
        try:
            self.threads = sum(self.client.nthreads().values())
        except Exception:
            self.threads = 0

    def _next(self) -> tuple[Any, list[Answer] | LabError | None]:
        """The next finished future and what it gave, unless all workers are gone for good."""
        alone_since, notice = time.monotonic(), NOTICE
        while True:
            with contextlib.suppress(queue.Empty):
                return self.finished.get(timeout=POLL)
            self._look()
            if self.threads:
                alone_since, notice = time.monotonic(), NOTICE
                self._fill()  # workers may have joined while nothing was finished
                continue
            waited = time.monotonic() - alone_since
            if waited < notice:
                continue
            if coming := self.cluster.expecting(self.client):
                log.warning(coming)
                notice = waited + PATIENCE
            elif waited < PATIENCE:
                log.warning(f"no worker at {self._address()}; giving up after {PATIENCE:.0f} s")
                notice = PATIENCE
            else:
                raise WorkersGone("no worker is left")

    def _address(self) -> str:
        return str(getattr(self.client.scheduler, "address", None) or "the scheduler, which does not answer")


def _answers(future: Any) -> list[Answer] | LabError | None:
    """What the first cells of a task, mostly all of them, gave; None if it died with its worker."""
    from distributed import KilledWorker

    try:
        found: list[Answer] = future.result()
        return found
    except KilledWorker:
        return None
    except Exception as error:
        # a cell's own exceptions are answers, so this is the cluster: a worker without attnlab, a lost scheduler
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return LabError(
            f"the cluster failed: {type(error).__name__}: {reason[0]}; the same command goes on from what is stored"
        )
