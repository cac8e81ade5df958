"""Real processes, really killed: nothing that was committed is lost, nothing is stored twice."""

import csv
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import toy

from attnlab.lab.store import Store
from attnlab.lab.store.export import StoredTable, export_csv

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}


def start(store, *options, log=None):
    environment = ENVIRONMENT | ({"TOY_LOG": str(log)} if log else {})
    command = [sys.executable, "-m", "toy", str(store), *map(str, options)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=HERE)


def finish(store, *options, log=None, timeout=300):
    process = start(store, *options, log=log)
    _, errors = process.communicate(timeout=timeout)
    return process.returncode, errors


def exported(path, tmp_path):
    """The bytes of the CSV export."""
    target = tmp_path / f"{path.stem}.csv"
    with Store(path) as store:
        export_csv(StoredTable(store), target)
    return target.read_bytes()


def array_hashes(path):
    with Store(path) as store:
        return {row.id: row.payload_hash for row in store.rows()}


def wait_until(condition, timeout=120.0):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def rows_in(path):
    try:
        with Store(path) as store:
            return sum(store.count().values())
    except Exception:  # not created yet
        return 0


@pytest.mark.slow
def test_twenty_kills_of_the_driver_lose_nothing(tmp_path, seed, tried):
    calm, stormy = tmp_path / "calm.sqlite", tmp_path / "stormy.sqlite"
    assert finish(calm, "--cells", 300, "--sleep", 0.02)[0] == 0
    dice, kills, hit = random.Random(seed), 20, 0
    for kill in range(kills):
        target = (kill + 1) * 14 + dice.randrange(14)  # spread over the sweep, so that every kill hits a running driver
        workers = 2 if kill % 5 == 0 else 0  # by themselves and with workers in turn
        driver = start(stormy, "--workers", workers, "--cells", 300, "--sleep", 0.02)
        wait_until(lambda target=target, driver=driver: rows_in(stormy) >= target or driver.poll() is not None)
        hit += driver.poll() is None
        driver.kill()
        driver.communicate(timeout=60)
    assert hit == kills
    assert finish(stormy, "--workers", 2, "--cells", 300, "--sleep", 0.02)[0] == 0
    rows = list(csv.DictReader(exported(stormy, tmp_path).decode().splitlines()))
    assert len(rows) == len({row["cell"] for row in rows}) == 300
    assert exported(stormy, tmp_path) == exported(calm, tmp_path)
    tried(
        f"kill -9 of the driver {hit} times in a sweep of 300 cells",
        "0 rows lost, changed or doubled; CSV byte-identical to that of a calm run",
    )


@pytest.mark.slow
def test_workers_killed_every_second_do_not_stop_the_sweep(tmp_path, tried):
    store, log = tmp_path / "s.sqlite", tmp_path / "log"
    driver = start(store, "--workers", 2, "--cells", 300, "--sleep", 0.2, log=log)
    wait_until(lambda: rows_in(store) > 0)
    kills = 0
    for _ in range(20):
        committed = rows_in(store)
        workers = [
            p for p in psutil.Process(driver.pid).children(recursive=True) if "spawn_main" in " ".join(p.cmdline())
        ]
        if workers:
            workers[0].kill()
            kills += 1
        time.sleep(1)
        assert rows_in(store) >= committed
    driver.communicate(timeout=600)
    assert driver.returncode == 0
    assert rows_in(store) == 300
    # Only cells in flight at one of the 20 kills were computed more than once: at most a window of two each time.
    computed = len(log.read_text().splitlines())
    assert computed <= 300 + kills * 2
    tried(f"kill -9 of a worker {kills} times in a sweep of 300 cells", f"300 done; {computed - 300} computed again")


def test_a_deadly_cell_fails_after_three_tries_and_the_others_go_on(tmp_path, tried):
    store, log = tmp_path / "s.sqlite", tmp_path / "log"
    code, _ = finish(store, "--workers", 1, "--cells", 6, "--seeds", 1, "--deadly", 1, log=log)
    assert code == 1
    with Store(store) as opened:
        rows = list(opened.rows())
    assert sorted(row.status for row in rows) == ["done"] * 5 + ["failed"]
    (failed,) = (row for row in rows if row.status == "failed")
    assert failed.tries == 3
    assert "died 3 times" in failed.error
    assert log.read_text().splitlines().count("1 0") == 3
    tried(
        "a cell that kills its worker every time",
        f"a failed row after {failed.tries} tries; the {len(rows) - 1} others done",
    )


def test_a_failing_cell_is_a_row_with_its_error(tmp_path):
    store = tmp_path / "s.sqlite"
    assert toy.main([str(store), "--cells", "9", "--faulty", "2", "--sleep", "0"]) == 1
    with Store(store) as opened:
        failed = [row for row in opened.rows() if row.status == "failed"]
        assert opened.count() == {"done": 6, "failed": 3}
    assert all("ArithmeticError: this cell always fails" in row.error for row in failed)


@pytest.mark.slow
def test_sigterm_ends_a_driver_with_workers_and_the_run_resumes(tmp_path):
    store = tmp_path / "s.sqlite"
    driver = start(store, "--workers", 1, "--cells", 30, "--sleep", 0.2)
    wait_until(lambda: rows_in(store) >= 2)
    driver.terminate()
    driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert 2 <= rows_in(store) < 30
    assert finish(store, "--cells", 30, "--sleep", 0.2)[0] == 0
    assert rows_in(store) == 30


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--workers", 1), ("--workers", 2), ("--workers", 4), ("--shuffle", 7)])
def test_records_do_not_depend_on_workers_or_order(tmp_path, options):
    serial, other = tmp_path / "serial.sqlite", tmp_path / "other.sqlite"
    finish(serial, "--cells", 60)
    finish(other, "--cells", 60, *options)
    assert array_hashes(serial) == array_hashes(other)
    assert len(array_hashes(serial)) == 60


@pytest.mark.slow
def test_a_running_dask_cluster_gives_the_same_table(tmp_path, tried):
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    address = "tcp://127.0.0.1:18786"
    quiet = {"env": ENVIRONMENT, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    scheduler = subprocess.Popen([*dask, "--host", "127.0.0.1", "--port", "18786", "--no-dashboard"], **quiet)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--host", "127.0.0.1", "--nthreads", "1"]
    workers = [subprocess.Popen([*command, "--no-dashboard"], **quiet) for _ in range(2)]
    try:
        cluster, calm = tmp_path / "cluster.sqlite", tmp_path / "calm.sqlite"
        driver = start(cluster, "--scheduler", address, "--cells", 90, "--sleep", 0.1)
        wait_until(lambda: rows_in(cluster) > 10)
        for process in psutil.Process(workers[0].pid).children(recursive=True):
            process.kill()
        workers[0].kill()
        _, errors = driver.communicate(timeout=300)
        assert driver.returncode == 0, errors
        assert finish(calm, "--cells", 90, "--sleep", 0.1)[0] == 0
        assert exported(cluster, tmp_path) == exported(calm, tmp_path)
        tried("kill -9 of one of two workers of a running Dask cluster", "run completes; CSV byte-identical")
    finally:
        for process in [*workers, scheduler]:
            process.terminate()
            process.wait()
