"""Workers that come late, have several threads, or whose scheduler disappears."""

import contextlib
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from test_kills import ENVIRONMENT, finish, rows_in, start, wait_until
from toy import sweep

from attnlab import lab, slr
from attnlab.lab.runner import compute_cells
from attnlab.lab.spec import Spec
from attnlab.lab.store import Store


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def scheduler():
    """A scheduler of somebody else's, and a function that adds workers to it."""
    port = free_port()
    address, started = f"tcp://127.0.0.1:{port}", []

    def begin(*words):
        command = [sys.executable, "-m", *words, "--host", "127.0.0.1", "--no-dashboard"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, env=ENVIRONMENT, **silent))
        return started[-1]

    def add(workers, threads=1):
        begin("distributed.cli.dask_worker", address, "--nworkers", str(workers), "--nthreads", str(threads))

    main = begin("distributed.cli.dask_scheduler", "--port", str(port))
    try:
        yield address, add, main
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


@pytest.mark.slow
def test_workers_that_join_late_are_used(tmp_path, tried):
    """At least 85 % of threads / cell time with one worker, then eight."""
    from distributed import Client

    stamps, seconds = [], 0.5
    with scheduler() as (address, add, _), Store(tmp_path / "s.sqlite", writable=True) as store:
        add(1)

        def count(outcome):
            stamps.append(time.monotonic())
            if len(stamps) == 4:
                add(7)

        engine = lab.DaskEngine(lab.RunningCluster(address))
        compute_cells(sweep(360, sleep=seconds).cells("quick"), store, engine, report=count)
        with Client(address) as client:
            assert sum(client.nthreads().values()) == 8
    late = np.array(stamps[-200:-16])  # all workers are there, none has run out of work
    rate = (len(late) - 1) / (late[-1] - late[0])
    assert rate >= 0.85 * 8 / seconds
    tried("seven workers that join a run of one worker late", f"{rate * seconds / 8:.0%} of threads / cell time")


@pytest.mark.slow
def test_a_scheduler_without_workers_is_said_and_given_up_once(tmp_path):
    with scheduler() as (address, _, _):
        begun = time.monotonic()
        code, errors = finish(tmp_path / "s.sqlite", "--scheduler", address, "--cells", 6, timeout=120)
        assert time.monotonic() - begun < 100
    assert code == 1
    assert f"no worker at {address}; giving up after 60 s" in errors
    assert "Traceback" not in errors
    assert len(errors.strip().splitlines()) <= 2


@pytest.mark.slow
def test_a_killed_scheduler_is_one_line(tmp_path, tried):
    with scheduler() as (address, add, main):
        add(1)
        store = tmp_path / "s.sqlite"
        run = start(store, "--scheduler", address, "--cells", 300, "--sleep", 0.1)
        wait_until(lambda: rows_in(store) > 3)
        main.kill()
        _, errors = run.communicate(timeout=150)
        assert run.returncode == 1
        assert "Traceback" not in errors
        assert len(errors.strip().splitlines()) <= 2, errors
        assert rows_in(store) > 3
    tried("kill -9 of the scheduler", "one line, code 1; what was committed is there")


class Here:
    """As much of a Dask client as the engine uses: tasks are computed as they are handed in, one thread for each."""

    def __init__(self, *threads):
        self.threads, self.tasks, self.reported, self.most = list(threads), [], 0, 0

    def nthreads(self):
        return {str(i): n for i, n in enumerate(self.threads)}

    def submit(self, function, cells, pure):
        self.tasks.append(len(cells))
        self.most = max(self.most, sum(self.tasks) - self.reported)
        return Done(self, function, cells)


class Done:
    def __init__(self, client, function, cells):
        self.key, self.found = f"task-{len(client.tasks)}", function(cells)

    def add_done_callback(self, function):
        function(self)

    def result(self):
        return self.found

    def release(self):
        pass


def compute_here(client, cells, path, joining=()):
    """Count what was stored; with each cell that is reported, workers of as many threads as ``joining`` says come."""
    joining = iter(joining)

    def report(outcome):
        client.reported += 1
        client.threads.append(next(joining, 0))

    with Store(path, writable=True) as store:
        compute_cells(cells, store, lab.DaskEngine(lambda: contextlib.nullcontext(client)), report=report)
        return store.count()


def test_cells_without_duration_travel_in_batches_that_slow_ones_leave(tmp_path, monkeypatch):
    monkeypatch.setattr("attnlab.lab.engine.dask.LEAST", 4)
    cells, quick, slow = sweep(150, sleep=0.0).cells("quick"), Here(1), Here(1)
    assert compute_here(quick, cells, tmp_path / "quick.sqlite") == {"done": 150}
    assert max(quick.tasks) > 3
    monkeypatch.setattr("attnlab.lab.outcome.TOGETHER", -1.0)  # every cell takes longer than was thought
    assert compute_here(slow, cells, tmp_path / "slow.sqlite") == {"done": 150}
    assert len(slow.tasks) >= 150


def test_the_window_follows_the_threads_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr("attnlab.lab.engine.dask.LEAST", 4)
    monkeypatch.setattr("attnlab.lab.engine.dask.POLL", 0.0)  # a look at the workers before each task
    monkeypatch.setattr("attnlab.lab.engine.work.BATCH_CELLS", 1)
    cells, few, many = sweep(90, sleep=0.0).cells("quick"), Here(1), Here(1)
    compute_here(few, cells, tmp_path / "few.sqlite")
    compute_here(many, cells, tmp_path / "many.sqlite", joining=(7, 7, 7))
    assert few.most <= 5
    assert many.most >= 2 * sum(many.threads) == 44


class Silent(Here):
    """The worker of the first task does not answer before all others were asked for their results."""

    def __init__(self, tasks):
        super().__init__(1)
        self.asked, self.answered = threading.Semaphore(0), False
        self.others = tasks - 1

    def submit(self, function, cells, pure):
        done = super().submit(function, cells, pure)
        first, found = len(self.tasks) == 1, done.found

        def result():
            if first:
                self.answered = all(self.asked.acquire(timeout=10) for _ in range(self.others))
            else:
                self.asked.release()
            return found

        done.result = result
        return done


def test_a_worker_that_does_not_answer_keeps_no_result_of_others_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr("attnlab.lab.engine.work.BATCH_CELLS", 1)
    silent = Silent(30)
    assert compute_here(silent, sweep(30, sleep=0.0).cells("quick"), tmp_path / "s.sqlite") == {"done": 30}
    assert silent.answered


class Warns(RegressorMixin, BaseEstimator):
    """Converges or not as it is told, and warns in the second case."""

    def __init__(self, converges=True):
        self.converges = converges

    def fit(self, X, y):
        import warnings

        time.sleep(0.01)
        self.converged_ = self.converges
        if not self.converges:
            warnings.warn("Warns did not converge", stacklevel=2)
        time.sleep(0.01)
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_workers_of_many_threads_say_truly_what_converged(tmp_path, tried):
    from distributed import Client, LocalCluster

    task = slr.Task(d=4, L=2)
    cells = [
        Spec(task, Warns(converges=bool(i % 2)), n_train=10, n_test=10, replicate=i).cell("toy.threads")
        for i in range(100)
    ]
    with (
        LocalCluster(n_workers=1, threads_per_worker=8, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
        Store(tmp_path / "s.sqlite", writable=True) as store,
    ):
        compute_cells(cells, store, lab.DaskEngine(lambda: contextlib.nullcontext(client)))
        found = [store.record(row) for row in store.rows()]
    assert len(found) == 100
    wrong = sum(row["converged"] is not bool(row["seed"] % 2) for row in found)
    assert wrong == 0
    tried("100 cells on a worker of 8 threads, half of them not converging", f"{wrong} wrong flags")
