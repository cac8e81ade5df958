"""Signals that queue systems and terminals send: the run ends with a message and a code, and can be resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.lab.store import Store

HERE = Path(__file__).parent
SWEEP = """
name = "slow"
n_train = 10
n_test = 10
seeds = {seeds}
[task]
name = "slr.Task"
d = 4
L = 2
[[learner]]
name = "own.Slow"
seconds = {seconds}
"""
MAIN = "from attnlab.cli import main; main()"


def words(folder, seeds, seconds):
    """The command line of a sweep in this folder."""
    (folder / "slow.toml").write_text(SWEEP.format(seeds=seeds, seconds=seconds))
    return ["run", "slow.toml", "--module", str(HERE / "mine.py"), "--store", "s.sqlite"]


def start(folder, *options, seeds=200, seconds=0.1, before=MAIN, **environment):
    command = [sys.executable, "-c", before, *words(folder, seeds, seconds)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*command, *options], cwd=folder, env={**os.environ, **environment}, **pipes)


def rows(folder):
    try:
        with Store(folder / "s.sqlite") as store:
            return sum(store.count().values())
    except Exception:  # not there yet
        return 0


def wait_for_rows(folder, process, least=1, timeout=300):
    deadline = time.monotonic() + timeout
    while rows(folder) < least:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    "name",
    ["SIGUSR1", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGHUP", "SIGTERM", "SIGINT"))],
)
def test_a_signal_ends_the_run_with_a_message_and_it_resumes(tmp_path, monkeypatch, name, tried):
    run = start(tmp_path)
    wait_for_rows(tmp_path, run)
    run.send_signal(getattr(signal, name))
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 130, output
    assert "stopped; what is finished is in s.sqlite" in output
    assert "Traceback" not in output
    done = rows(tmp_path)
    assert 0 < done < 200
    monkeypatch.chdir(tmp_path)
    again = CliRunner().invoke(app, [*words(tmp_path, done + 3, 0.1), "--quiet", "--shard", "1/1"])
    assert again.exit_code == 0, again.output
    assert rows(tmp_path) == done + 3
    tried(f"{name} to a running driver", "ends with a message and code 130; resumed")


@pytest.mark.slow
def test_a_run_under_nohup_outlives_its_terminal(tmp_path):
    ignoring = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {MAIN}"
    run = start(tmp_path, "--shard", "1/1", seeds=30, before=ignoring)
    wait_for_rows(tmp_path, run)
    run.send_signal(signal.SIGHUP)
    output, _ = run.communicate(timeout=100)
    assert run.returncode == 0, output
    assert rows(tmp_path) == 30
