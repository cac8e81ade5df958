"""Workers on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attnlab.common.threads import single_threaded_blas
from attnlab.lab.engine import compiled
from attnlab.lab.engine.dask import Cluster
from attnlab.lab.engine.quiet import QUIET, quiet_dask, same_environment
from attnlab.lab.engine.security import NO_PAGES, one_run


@dataclass(frozen=True)
class LocalWorkers(Cluster):
    """Spawned processes on this machine, reachable by this run only, each with its share of the cores."""

    n_workers: int
    threads: int = 1
    owned = True

    def environment(self) -> dict[str, str]:
        """What limits the threads of numerical libraries in each process, and where compiled programs are kept."""
        threads = str(self.threads)
        return {
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if self.threads > 1 else 'false'}",
            # XLA's CPU client sizes its thread pool by this
            "NPROC": threads,
            **compiled.environment(),
            **QUIET,
        }

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Any]:
        """Start the processes; end them on leaving."""
        import dask
        from distributed import Client

        settings = {
            **NO_PAGES,
            # no tries by Dask itself: a death comes back at once, and Work decides about the next try
            "distributed.scheduler.allowed-failures": 0,
            "distributed.nanny.pre-spawn-environ": self.environment(),
            "distributed.worker.multiprocessing-method": "spawn",
            # A nanny brings its worker back by itself; the cluster must not dismiss it meanwhile.
            "distributed.deploy.lost-worker-timeout": "1 day",
            # A result that died with its worker is given up for recomputation after this long (by default 30 s).
            "distributed.comm.timeouts.connect": "5s",
        }
        with (
            # the process above them draws and judges: threads of its BLAS would wait for cores that the workers have
            single_threaded_blas(),
            same_environment(),
            quiet_dask(),
            dask.config.set(settings),
            self._cluster() as cluster,
            Client(cluster) as client,
        ):
            yield client

    def _cluster(self) -> Any:
        from distributed import LocalCluster

        return LocalCluster(
            n_workers=self.n_workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=one_run(),
            config={"distributed.comm.timeouts.connect": "60s", **NO_PAGES},
            # Dask always opens a port for pages, here one without any; its own choice, 8787, may be another run's.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        )
