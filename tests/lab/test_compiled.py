"""Compiled programs are kept where only this user and this processor find them, and not beyond a limit."""

import os
import subprocess
import sys

import pytest

from attnlab.lab.engine import LocalWorkers, compiled

PROGRAM = """
import jax, jax.numpy as jnp
from jax import monitoring
found = []
monitoring.register_event_listener(lambda name, **_: found.append(name.split("/")[-1]))
print(float(jax.jit(lambda x: (x**2).sum())(jnp.arange(3.0))), "cache_hits" in found)
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.delenv(compiled.SWITCH, raising=False)
    monkeypatch.setattr(compiled, "SHORTEST", 0.0)


def run(environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_second_process_finds_the_program_and_a_damaged_one_is_compiled_again():
    environment = compiled.environment()
    assert run(environment) == ["5.0", "False"]
    assert run(environment) == ["5.0", "True"]
    for path in compiled.folder().iterdir():
        path.write_bytes(path.read_bytes()[:100])
    assert run(environment)[0] == "5.0"


def test_it_can_be_switched_off_and_leaves_the_user_s_own_setting(monkeypatch):
    monkeypatch.setenv(compiled.SWITCH, "off")
    assert compiled.environment() == {}
    monkeypatch.delenv(compiled.SWITCH)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/elsewhere")
    assert compiled.environment() == {}


def test_local_workers_have_it():
    assert LocalWorkers(2).environment()["JAX_COMPILATION_CACHE_DIR"] == str(compiled.folder())


def test_another_processor_has_another_folder(monkeypatch):
    here = compiled.folder()
    monkeypatch.setattr(compiled, "processor", lambda: "other")
    assert compiled.folder() != here


def test_a_home_that_cannot_be_written_keeps_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled.environment() == {}
