"""Workers as SLURM jobs, submitted through dask-jobqueue."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.common.validation import integer
from attnlab.lab.engine.dask import Cluster
from attnlab.lab.engine.quiet import quiet_dask
from attnlab.lab.engine.security import NO_PAGES, one_run
from attnlab.lab.errors import UsageError

# Workers serve no pages beyond their own node.
WORKER_OPTIONS = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]


@dataclass(frozen=True)
class SlurmJobs(Cluster):
    """Jobs submitted to SLURM; the options come from a TOML file, one key per argument.

    The key ``jobs`` is the number of jobs; all others go to ``dask_jobqueue.SLURMCluster``. Driver and workers talk
    TLS with keys made for the run, which lie in ``shared_temp_directory`` (by default ``~/.attnlab``, readable by the
    user alone) for as long as it lasts.
    """

    options: dict[str, Any]
    jobs: int
    owned = True

    @classmethod
    def from_toml(cls, path: str | Path) -> SlurmJobs:
        """Read and check the options."""
        try:
            options = tomllib.loads(Path(path).read_text())
        except (OSError, ValueError, RecursionError) as error:
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
        SLURMCluster = _slurm_cluster()
        try:
            return SLURMCluster(**self._arguments())
        except (TypeError, ValueError) as error:
            raise UsageError(f"dask-jobqueue refuses the SLURM options: {error}") from error

    def _arguments(self) -> dict[str, Any]:
        from distributed.utils import get_ip, get_ip_interface

        given = dict(self.options)  # setdefault below must not change the options
        folder = Path(given.setdefault("shared_temp_directory", str(Path.home() / ".attnlab"))).expanduser()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        interface = given.get("interface")
        # one address, not all of the machine's
        host = get_ip_interface(interface) if interface else get_ip()
        scheduler = {"host": host, "dashboard": False, "dashboard_address": f"{host}:0"}
        return {
            "security": one_run(),
            **given,
            "scheduler_options": {**scheduler, **given.get("scheduler_options", {})},
            "worker_extra_args": [*given.get("worker_extra_args", []), *WORKER_OPTIONS],
        }

    def job_script(self) -> str:
        """What would be submitted."""
        with quiet_dask(), self.cluster() as cluster:
            return str(cluster.job_script())

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        """Submit the jobs; cancel them on leaving."""
        import dask
        from distributed import Client

        # no tries by Dask itself: a death comes back at once, and Work decides about the next try
        settings = {**NO_PAGES, "distributed.scheduler.allowed-failures": 0}
        with quiet_dask(), dask.config.set(settings), self.cluster() as cluster, Client(cluster) as client:
            cluster.scale(jobs=self.jobs)
            with _kept_at(cluster, self.jobs):
                yield client

    def expecting(self, client: Any) -> str:
        """Whether SLURM still has jobs of this run."""
        states = job_states([job.job_id for job in client.cluster.workers.values() if getattr(job, "job_id", None)])
        counts = {state: states.count(state) for state in sorted(set(states))}
        listed = ", ".join(f"{number} {state.lower()}" for state, number in counts.items())
        return f"waiting for workers; SLURM jobs: {listed}" if states else ""


def job_states(ids: list[str]) -> list[str]:
    """The states of those jobs that SLURM still has, as squeue names them (PENDING, RUNNING...)."""
    if not ids:
        return []
    command = ["squeue", "--noheader", "--format=%T", f"--jobs={','.join(ids)}"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    # jobs in these states bring no worker any more
    return [state for state in found.stdout.split() if state not in ("COMPLETING", "CANCELLED", "TIMEOUT")]


@contextlib.contextmanager
def _kept_at(cluster: Any, jobs: int, every: float = 30.0) -> Iterator[None]:
    """Submit a new job for each that ended, by its walltime or because it was cancelled, while others still run."""
    done = threading.Event()

    def keep() -> None:
        while not done.wait(every):
            # SLURM may refuse or not answer for a moment; the next round tries again
            with contextlib.suppress(Exception):
                cluster.scale(jobs=jobs)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=every)


def _slurm_cluster() -> Any:
    """dask-jobqueue's class; its import takes SIGINT over to exit silently, which is undone."""
    before = signal.getsignal(signal.SIGINT)
    try:
        from dask_jobqueue import SLURMCluster
    except ModuleNotFoundError as error:
        raise UsageError("--slurm needs the extra: pip install 'attnlab[slurm]'") from error
    finally:
        # only the main thread may set handlers of signals
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
    return SLURMCluster
