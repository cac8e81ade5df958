"""What executes cells: this process, or Dask workers here, on a running cluster, or under SLURM."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attnlab.common.figure import Cell
from attnlab.common.validation import integer
from attnlab.lab.errors import LabError, UsageError
from attnlab.lab.outcome import Outcome, compute, killed

TRIES = 3
# Cells handed to each worker at a time: one to compute and one waiting, so that little is in flight when all stops.
WINDOW = 2
# Seconds between looks at the workers, and without a sign of life before they are given up.
POLL, PATIENCE = 5.0, 60.0
# Dask's own log lines about dead workers would bury ours.
QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "DASK_LOGGING__TORNADO": "critical"}


@runtime_checkable
class Engine(Protocol):
    """Yields the outcome of each cell as it is finished, in any order."""

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Compute the cells."""
        ...


@dataclass(frozen=True)
class SerialEngine:
    """One cell after another in this process."""

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Compute the cells in their order."""
        return map(compute, cells)


class WorkersGone(LabError):
    """No worker has been seen for too long."""


@dataclass(frozen=True)
class DaskEngine:
    """Cells on Dask workers.

    ``connect`` opens a client on a cluster and closes both on leaving. A cell in whose company a worker died is tried
    again alone, since only then a further death can be laid at its door. A cluster that lost all its workers is
    opened anew.
    """

    connect: Callable[[], contextlib.AbstractContextManager[Any]]

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Compute the cells, a small window at a time."""
        pending = {cell.id: cell for cell in cells}
        deaths: Counter[str] = Counter()
        for _ in range(TRIES):
            if not pending:
                return
            with contextlib.suppress(WorkersGone), self.connect() as client:
                for outcome in _settle(client, list(pending.values()), deaths):
                    del pending[outcome.cell.id]
                    yield outcome
        if pending:
            raise LabError(f"no worker is left and {len(pending)} cells remain; run the same command to go on")


def _settle(client: Any, cells: Sequence[Cell], deaths: Counter[str]) -> Iterator[Outcome]:
    """All cells together, then those under suspicion one by one."""
    window = WINDOW * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    suspects = []
    for cell, outcome in _attempts(client, cells, window):
        if outcome is None:
            deaths[cell.id] += 1
            suspects.append(cell)
        else:
            yield outcome.after(deaths[cell.id] + 1)
    for cell in suspects:
        outcome = None
        while outcome is None and deaths[cell.id] < TRIES:
            ((_, outcome),) = _attempts(client, [cell], 1)
            deaths[cell.id] += outcome is None
        yield outcome.after(deaths[cell.id] + 1) if outcome else killed(cell, TRIES)


def _attempts(client: Any, cells: Sequence[Cell], window: int) -> Iterator[tuple[Cell, Outcome | None]]:
    """Try each cell once, at most ``window`` at a time; None stands for a result that died with its worker."""
    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting = deque(cells)
    in_flight: dict[str, tuple[Cell, Any]] = {}
    while waiting or in_flight:
        while waiting and len(in_flight) < window:
            cell = waiting.popleft()
            future = client.submit(compute, cell, pure=False)
            in_flight[future.key] = cell, future
            future.add_done_callback(finished.put)
        future = _next(finished, client)
        cell, _ = in_flight.pop(future.key)
        yield cell, _result(future)
        future.release()


def _next(finished: queue.SimpleQueue[Any], client: Any) -> Any:
    """The next finished future, unless all workers are gone for good."""
    lonely = 0.0
    while lonely < PATIENCE:
        with contextlib.suppress(queue.Empty):
            return finished.get(timeout=POLL)
        lonely = 0.0 if client.scheduler_info(n_workers=-1)["workers"] else lonely + POLL
    raise WorkersGone("no worker is left; run the same command to go on")


def _result(future: Any) -> Outcome | None:
    from distributed import KilledWorker

    try:
        outcome: Outcome = future.result(timeout=PATIENCE)
        return outcome
    except (KilledWorker, TimeoutError):
        return None
    except Exception as error:
        # compute() catches what a cell raises, so this is the cluster: a worker without attnlab, a lost scheduler
        raise LabError(f"the cluster failed: {error!r}; run the same command to go on") from error


@dataclass(frozen=True)
class LocalWorkers:
    """Spawned processes on this machine, reachable from this machine only, each with its share of the cores."""

    n_workers: int
    threads: int = 1

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        """Start the processes; end them on leaving."""
        import dask
        from distributed import Client, LocalCluster

        threads = str(self.threads)
        environment = {
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if self.threads > 1 else 'false'}",
            # XLA's CPU client sizes its thread pool by this
            "NPROC": threads,
            **QUIET,
        }
        settings = {
            "distributed.scheduler.allowed-failures": 0,
            "distributed.nanny.pre-spawn-environ": environment,
            "distributed.worker.multiprocessing-method": "spawn",
            # A nanny brings its worker back by itself; the cluster must not dismiss it meanwhile.
            "distributed.deploy.lost-worker-timeout": "1 day",
            # A result that died with its worker is given up for recomputation after this long (by default 30 s).
            "distributed.comm.timeouts.connect": "5s",
        }
        with (
            same_environment(),
            quiet_dask(),
            dask.config.set(settings),
            LocalCluster(
                n_workers=self.n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                config={"distributed.comm.timeouts.connect": "60s"},
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client


@contextlib.contextmanager
def same_environment() -> Iterator[None]:
    """Undo changes of the environment: Dask sets what its workers shall inherit in this process, and leaves it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@dataclass(frozen=True)
class RunningCluster:
    """A Dask scheduler that is already there; ``tls`` holds the files ca, cert and key when it asks for them."""

    address: str
    tls: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        """Connect; the cluster stays when we leave."""
        from distributed import Client
        from distributed.security import Security

        security = None
        if self.tls:
            security = Security(
                tls_ca_file=self.tls["ca"],
                tls_client_cert=self.tls["cert"],
                tls_client_key=self.tls["key"],
                require_encryption=True,
            )
        with quiet_dask():
            try:
                client = Client(self.address, security=security, timeout="20s")
            except (OSError, TimeoutError) as error:
                raise LabError(f"no Dask scheduler answers at {self.address}: {error}") from error
            with client:
                yield client


@dataclass(frozen=True)
class SlurmJobs:
    """Jobs submitted to SLURM through dask-jobqueue; the options come from a TOML file, one key per argument.

    The key ``jobs`` is the number of jobs; all others go to ``dask_jobqueue.SLURMCluster``.
    """

    options: dict[str, Any]
    jobs: int

    @classmethod
    def from_toml(cls, path: str | Path) -> SlurmJobs:
        """Read and check the options."""
        try:
            options = tomllib.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the SLURM options in {path}: {error}") from error
        for name in ("cores", "memory"):
            if name not in options:
                raise UsageError(
                    f"the SLURM options in {path} must set {name!r}, for example cores = 4, memory = '16GB'"
                )
        jobs = integer("jobs", options.pop("jobs", 1), low=1)
        return cls(options, jobs)

    def cluster(self) -> Any:
        """The cluster object, with no job submitted yet."""
        try:
            from dask_jobqueue import SLURMCluster
        except ModuleNotFoundError as error:
            raise UsageError("--slurm needs the extra: pip install 'attnlab[slurm]'") from error
        try:
            return SLURMCluster(**self.options)
        except (TypeError, ValueError) as error:
            raise UsageError(f"dask-jobqueue refuses the SLURM options: {error}") from error

    def job_script(self) -> str:
        """What would be submitted."""
        with quiet_dask(), self.cluster() as cluster:
            return str(cluster.job_script())

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        """Submit the jobs; cancel them on leaving."""
        from distributed import Client

        with quiet_dask(), self.cluster() as cluster, Client(cluster) as client:
            cluster.scale(jobs=self.jobs)
            client.wait_for_workers(1)
            yield client


@contextlib.contextmanager
def quiet_dask() -> Iterator[None]:
    """Keep the driver's side of Dask silent too; what matters reaches us as exceptions."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
