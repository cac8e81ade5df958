"""No file of attnlab names this package, and without it attnlab lacks nothing."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.common.systems import systems

# attnlab as if this package were not installed, then a command.
WITHOUT = """
import sys
from importlib import metadata
found = metadata.entry_points
metadata.entry_points = lambda **k: [p for p in found(**k) if p.value != "attnlab_icl"]
from attnlab.cli import app
app({words})
"""


def attnlab(*words):
    """What a command prints where this package is absent."""
    program = WITHOUT.format(words=list(words))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_no_file_of_attnlab_names_this_package():
    folder = Path(importlib.util.find_spec("attnlab").origin).parent
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(files) > 100
    naming = [path for path in files if re.search(rb"attnlab[-_]icl|\bicl\b", path.read_bytes())]
    assert naming == []


def test_the_entry_point_is_all_that_attnlab_knows():
    assert systems()["icl"] == "attnlab_icl"


@pytest.mark.parametrize("words", [("list",), ("theory", "--help"), ("arena", "--help")])
def test_without_this_package_nothing_is_missing(words):
    result = attnlab(*words)
    assert result.returncode == 0, result.stderr
    assert not re.search(r"\bicl\b", result.stdout)


def test_without_this_package_its_figures_are_unknown():
    result = attnlab("reproduce", "icl", "--dry-run")
    assert result.returncode != 0
    assert "got 'icl'" in result.stderr
