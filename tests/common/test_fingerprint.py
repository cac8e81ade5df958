"""A fingerprint changes with the code that a cell reaches, and with nothing else."""

import importlib
import sys

import pytest

from attnlab.common import fingerprint as module
from attnlab.common.fingerprint import fingerprint

FILES = {
    "toysystem/__init__.py": "",
    "toysystem/task.py": "from .noise import LEVEL\n\nclass Task:\n    level = LEVEL\n",
    "toysystem/noise.py": "LEVEL = 1\n",
    "toysystem/unused.py": "LEVEL = 2\n",
    "toysystem/figures.py": '''"""Figures."""
from toysystem.task import Task
from toysystem.unused import LEVEL

SIZE = 3

def run(params, seed):
    """One cell."""
    return helper(Task())

def helper(task):
    return task.level + SIZE

def draw(records):
    return LEVEL

LAMBDA = lambda params, seed: SIZE
''',
}


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    yield tmp_path / "toysystem"
    forget()


def forget():
    """As a new process would see the files."""
    for name in [name for name in sys.modules if name.split(".")[0] == "toysystem"]:
        del sys.modules[name]
    for item in vars(module).values():
        if hasattr(item, "cache_clear"):
            item.cache_clear()
    importlib.invalidate_caches()


def of_run(name="run"):
    forget()
    return fingerprint(getattr(importlib.import_module("toysystem.figures"), name))


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("figures", "task.level + SIZE", "task.level - SIZE", True),  # a function that run calls
        ("figures", "SIZE = 3", "SIZE = 4", True),  # a constant behind it
        ("noise", "LEVEL = 1", "LEVEL = 5", True),  # a module that a module imports
        ("figures", '"""One cell."""', '"""One cell of many."""', False),
        ("figures", "SIZE = 3", "SIZE = 3  # a comment", False),
        ("figures", "return LEVEL", "return LEVEL + 1", False),  # the drawing
        ("unused", "LEVEL = 2", "LEVEL = 3", False),  # a module that only the drawing uses
        ("noise", "LEVEL = 1", "LEVEL  =  1\n", False),
    ],
)
def test_only_code_that_the_cell_reaches_counts(system, file, old, new, changes):
    before = of_run()
    path = system / f"{file}.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert (of_run() != before) == changes


def test_a_lambda_counts_its_whole_file(system):
    before = of_run("LAMBDA")
    path = system / "figures.py"
    path.write_text(path.read_text().replace("return LEVEL", "return 7"))
    assert of_run("LAMBDA") != before


def test_what_has_no_file_is_known_by_its_instructions():
    def made(text):
        space = {"__name__": "prompt"}
        exec(text, space)
        return fingerprint(space["f"])

    assert made("def f(x): return x + 1") == made("def f(y): return y + 1")
    assert made("def f(x): return x + 1") != made("def f(x): return x + 2")
