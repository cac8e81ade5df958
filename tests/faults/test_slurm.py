"""The command line under a real SLURM: jobs that come late, are cancelled, run out of time; the driver interrupted."""

import os
import signal
import socket
import subprocess
import time

import psutil
import pytest
from slurm_machine import slurm, why_not
from test_signals import rows, start, wait_for_rows
from typer.testing import CliRunner

from attnlab.cli import app

JOBS = """
jobs = {jobs}
cores = 1
memory = "2GB"
queue = "long"
walltime = "{walltime}"
interface = "lo"
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    if reason := why_not():
        pytest.skip(reason)
    with slurm(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture
def cluster(machine, tmp_path):
    """Start drivers in a folder of their own, and ask SLURM."""

    class Cluster:
        folder = tmp_path

        def start(self, *, seeds, seconds=0.2, jobs=2, walltime="00:20:00"):
            (tmp_path / "job.toml").write_text(JOBS.format(jobs=jobs, walltime=walltime))
            options = ("--slurm", "job.toml", "--shard", "1/1")
            home = tmp_path / "home"
            home.mkdir(exist_ok=True)
            environment = {"SLURM_CONF": machine["SLURM_CONF"], "HOME": str(home)}
            return start(tmp_path, *options, seeds=seeds, seconds=seconds, **environment)

        def command(self, *words):
            return subprocess.run(words, env=machine, capture_output=True, text=True, check=True).stdout

        def jobs(self, states="PENDING,RUNNING"):
            return self.command("squeue", "--noheader", "--format=%i", f"--states={states}").split()

        def empty(self, timeout=30):
            deadline = time.monotonic() + timeout
            while self.jobs() and time.monotonic() < deadline:
                time.sleep(0.5)
            return not self.jobs()

    found = Cluster()
    yield found
    subprocess.run(["scancel", "--user=root"], env=machine, capture_output=True)
    assert found.empty()


def finished(run, timeout=400):
    output, _ = run.communicate(timeout=timeout)
    return run.returncode, output


@pytest.mark.slow
def test_ctrl_c_ends_the_run_with_a_message_and_cancels_the_jobs(cluster, tried):
    run = cluster.start(seeds=300)
    wait_for_rows(cluster.folder, run)
    # keys lie in the user's folder, readable by the user alone, and every port of the driver is on loopback
    keys = list((cluster.folder / "home" / ".attnlab").iterdir())
    assert keys
    assert all(key.stat().st_mode & 0o077 == 0 for key in [*keys, keys[0].parent])
    listening = [c for c in psutil.Process(run.pid).net_connections(kind="inet") if c.status == psutil.CONN_LISTEN]
    assert listening
    assert {c.laddr.ip for c in listening} == {"127.0.0.1"}
    run.send_signal(signal.SIGINT)
    code, output = finished(run)
    assert code == 130, output
    assert "stopped; what is finished is in s.sqlite" in output
    assert "Traceback" not in output
    assert cluster.empty()
    done = rows(cluster.folder)
    code, output = finished(cluster.start(seeds=done + 4))
    assert (code, rows(cluster.folder)) == (0, done + 4), output
    tried("SLURM: Ctrl-C of the driver", "message, code 130, jobs cancelled; resumed")


@pytest.mark.slow
def test_jobs_that_come_late_are_used(cluster, tried):
    host = socket.gethostname().split(".")[0]
    cluster.command("scontrol", "update", f"nodename={host}", "state=drain", "reason=test")
    try:
        run = cluster.start(seeds=40, jobs=3)
        deadline = time.monotonic() + 60
        while len(cluster.jobs("PENDING")) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        cluster.command("scontrol", "update", f"nodename={host}", "state=resume")
    code, output = finished(run)
    assert (code, rows(cluster.folder)) == (0, 40), output
    tried("SLURM: a drained node, on which jobs wait until it resumes", "run waits, then completes")


@pytest.mark.slow
def test_a_node_drained_during_the_run_finishes_what_runs(cluster, tried):
    host = socket.gethostname().split(".")[0]
    run = cluster.start(seeds=60)
    wait_for_rows(cluster.folder, run)
    cluster.command("scontrol", "update", f"nodename={host}", "state=drain", "reason=test")
    try:
        code, output = finished(run)
        assert (code, rows(cluster.folder)) == (0, 60), output
    finally:
        cluster.command("scontrol", "update", f"nodename={host}", "state=resume")
    tried("SLURM: the node drained during a run", "run completes on the jobs it has")


@pytest.mark.slow
def test_jobs_cancelled_by_somebody_are_submitted_again(cluster, tried):
    run = cluster.start(seeds=60)
    wait_for_rows(cluster.folder, run, least=5)
    before = set(cluster.jobs())
    cluster.command("scancel", *before)
    code, output = finished(run, timeout=400)
    assert (code, rows(cluster.folder)) == (0, 60), output
    tried("SLURM: scancel of all jobs", "submitted again; run completes, no cell lost or doubled")


@pytest.mark.slow
def test_a_walltime_that_ends_in_the_middle_of_a_cell_costs_a_second_try(cluster, tried):
    run = cluster.start(seeds=30, seconds=4.0, jobs=2, walltime="00:01:00")
    code, output = finished(run, timeout=500)
    assert (code, rows(cluster.folder)) == (0, 30), output
    tried("SLURM: walltime of one minute ending in the middle of cells", "new jobs, run completes, no failed cell")


@pytest.mark.slow
def test_a_killed_driver_loses_nothing_that_was_committed(cluster, tried):
    run = cluster.start(seeds=60)
    wait_for_rows(cluster.folder, run, least=5)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    done = rows(cluster.folder)
    cluster.command("scancel", "--user=root")
    code, output = finished(cluster.start(seeds=60))
    assert (code, rows(cluster.folder)) == (0, 60), output
    assert done >= 5
    tried("SLURM: kill -9 of the driver", "what was committed is there; resumed")


def test_the_script_of_a_dry_run_is_printed_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "job.toml").write_text(JOBS.format(jobs=2, walltime="00:20:00"))
    before = signal.getsignal(signal.SIGINT)
    result = CliRunner().invoke(app, ["reproduce", "slr.manifold", "--slurm", str(tmp_path / "job.toml"), "--dry-run"])
    assert result.exit_code == 0, result.exception
    (command,) = [
        line for line in result.output.splitlines() if "distributed.cli.dask_worker" in line or " dask " in line
    ]
    assert len(command) > 160
    assert "tls://" in command
    assert "--tls-key" in command
    assert signal.getsignal(signal.SIGINT) is before
