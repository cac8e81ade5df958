"""What executes cells: this process, or Dask workers here, on a running cluster, or under SLURM."""

from __future__ import annotations

import contextlib
import logging
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from attnlab.common.figure import Cell
from attnlab.common.validation import integer
from attnlab.lab.errors import LabError, UsageError
from attnlab.lab.outcome import Outcome, compute, killed

TRIES = 3
# Cells handed to each worker at a time: one to compute and one waiting, so that little is in flight when all stops.
WINDOW = 2
# Dask's own log lines about dead workers would bury ours.
QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "DASK_LOGGING__TORNADO": "critical"}


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


@dataclass(frozen=True)
class DaskEngine:
    """Cells on Dask workers.

    ``connect`` opens a client on a cluster and closes both on leaving. A cell in whose company a worker died is tried
    again alone, since only then a further death can be laid at its door.
    """

    connect: Callable[[], contextlib.AbstractContextManager[Any]]

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Compute the cells, a small window at a time; the outcome of a cell is released once it was taken."""
        if not cells:
            return
        with self.connect() as client:
            suspects: list[Cell] = []
            yield from self._all_at_once(client, cells, suspects)
            for cell in suspects:
                yield self._alone(client, cell)

    def _all_at_once(self, client: Any, cells: Sequence[Cell], suspects: list[Cell]) -> Iterator[Outcome]:
        from distributed import KilledWorker, as_completed

        waiting = deque(cells)
        window = WINDOW * max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        in_flight: dict[str, Cell] = {}

        def submit_next() -> list[Any]:
            if not waiting:
                return []
            cell = waiting.popleft()
            in_flight[cell.id] = cell
            return [client.submit(compute, cell, key=cell.id, pure=False)]

        finished = as_completed([future for _ in range(window) for future in submit_next()])
        for future in finished:
            cell = in_flight.pop(future.key)
            error = future.exception()
            if error is None:
                yield future.result()
            elif isinstance(error, KilledWorker):
                suspects.append(cell)
            else:
                raise LabError(f"the cluster lost cell {cell.id[:12]}: {error!r}; run the same command to go on")
            future.release()
            finished.update(submit_next())

    def _alone(self, client: Any, cell: Cell) -> Outcome:
        from distributed import KilledWorker

        for attempt in range(2, TRIES + 1):
            try:
                outcome: Outcome = client.submit(compute, cell, key=f"{cell.id}-{attempt}", pure=False).result()
                return outcome.after(attempt)
            except KilledWorker as error:
                why = str(error).split("\n")[0]
        return killed(cell, TRIES, why)


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
            "distributed.comm.retry.count": 3,
        }
        with (
            quiet_dask(),
            dask.config.set(settings),
            LocalCluster(
                n_workers=self.n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client


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
