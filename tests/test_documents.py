"""Every snippet and example runs as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
ENVIRONMENT = {**os.environ, "MPLBACKEND": "Agg", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def run(program, folder):
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run(page, tmp_path):
    for block in python_blocks(page):
        result = run(block, tmp_path)
        assert result.returncode == 0, f"{block}\n{result.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs(example, tmp_path):
    result = run(example.read_text(), tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_is_short_and_has_a_title(example):
    text = example.read_text()
    assert len(text.splitlines()) <= 62
    assert re.match(r'"""\n.+\n=+\n', text)


@pytest.mark.slow
def test_the_commands_of_the_readme_run(tmp_path):
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [line.replace(".venv/bin/", "") for line in lines if line.startswith(".venv/bin/attnlab")]
    assert commands
    for command in commands:
        result = subprocess.run(
            command.split(), capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path, timeout=600
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
