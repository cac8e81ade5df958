"""The package as a stranger gets it: wheel and sdist, a clean environment without extras, an empty folder."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(command, folder, **environment):
    plain = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        command, cwd=folder, env={**plain, **environment}, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """An environment with the wheel and its dependencies alone."""
    folder = tmp_path_factory.mktemp("clean")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    built = run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], folder)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("attnlab-*.whl")
    assert run([sys.executable, "-m", "venv", folder / "venv"], folder).returncode == 0
    python = folder / "venv" / "bin" / "python"
    installed = run([python, "-m", "pip", "--disable-pip-version-check", "-q", "install", wheel], folder)
    assert installed.returncode == 0, installed.stderr
    return folder, wheel


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(clean):
    _, wheel = clean
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("attnlab/", "attnlab-")) for name in names)
    for needed in (
        "lab/page.html.j2",
        "aim/durations.json",
        "explore/page.html.j2",
        "aim/explorer/live.js",
        "py.typed",
    ):
        assert f"attnlab/{needed}" in names


@pytest.mark.slow
def test_the_commands_of_a_first_visit_work_from_an_empty_folder(clean, tmp_path):
    folder, _ = clean
    attnlab = folder / "venv" / "bin" / "attnlab"
    for command, said in {
        "list": "slr.manifold",
        "theory aim.mmse --alpha 0.1 --rho 0.5": "0.392",
        "reproduce slr.manifold": "report",
        "explore": "explorer.html",
    }.items():
        result = run([attnlab, *command.split()], tmp_path)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        assert said in result.stdout, command
    assert (tmp_path / "results" / "report" / "index.html").exists()
    refused = run([attnlab, "bench"], tmp_path)
    assert refused.returncode != 0
    assert "in the source repository" in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stdout + refused.stderr
    missing = run([attnlab, "reproduce", "slr.probing"], tmp_path)
    assert "attnlab[nlp]" in missing.stdout + missing.stderr


@pytest.mark.slow
def test_the_source_distribution_builds_the_same_package(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    run([sys.executable, "-m", "venv", tmp_path / "venv"], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    assert run([python, *pip[1:], "install", "hatchling"], tmp_path).returncode == 0
    made = run([python, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path / "dist"], ROOT)
    assert made.returncode == 0, made.stderr
    (archive,) = (tmp_path / "dist").glob("attnlab-*.tar.gz")
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    assert any(name.endswith("src/attnlab/aim/durations.json") for name in names)
    built = run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path / "wheel", archive], tmp_path)
    assert built.returncode == 0, built.stderr
