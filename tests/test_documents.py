"""Every snippet and example runs as printed."""

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.lab import registry

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
ENVIRONMENT = {**os.environ, "MPLBACKEND": "Agg", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def documentation_module(name):
    """A module of the documentation, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


values = documentation_module("values")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_marked_numbers_of_a_page_are_those_of_the_data_files(page):
    text = page.read_text(encoding="utf-8")
    assert text == values.renewed(text), "run python docs/values.py"
    # other comments, filled by the documentation or a benchmark, have no semicolon
    assert len(values.MARKED.findall(text)) == len(re.findall(r"<!-- [^>]*;[^>]* -->", text)), "a marker is not read"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_measured_number_with_an_error_names_its_data(page):
    prose = re.sub(
        r"^```.*?^```|<!-- begin (\S+) -->.*?<!-- end \1 -->", "", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    assert not re.findall(r"\d ?± ?[\d.]+(?!<!--|[\d. ]*%)\b(?! ?<!--)", prose)


def test_a_wrong_number_is_corrected_and_an_unknown_row_is_refused():
    marker = "<!-- bench_cpu.json; name=AMP memory against stored tensors; value -->"
    assert values.renewed(f"99{marker}") == f"163{marker}"
    absent = "<!-- claims_quick.json; id=no.such; value -->"
    assert values.renewed(f"0.95{absent}") == f"not measured{absent}"
    with pytest.raises(LookupError, match=r"0 rows of docs/data/bench_cpu\.json have name=nothing"):
        values.renewed("1<!-- bench_cpu.json; name=nothing; value -->")


def test_the_readme_states_the_time_of_all_figures():
    stated = float(re.search(r"about (\d+) minutes on two cores; writes", (ROOT / "README.md").read_text())[1])
    measured = sum(figure.minutes.get("quick", 0) for figure in registry.figures().values())
    assert stated / 2 <= measured <= 2 * stated  # as near as the times that commands announce


# Pages whose blocks build on each other, as their headings say.
ONE_PROGRAM = {"own-model.md", "slr.md"}


def python_blocks(page):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return ["\n".join(blocks)] if page.name in ONE_PROGRAM else blocks


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
def test_a_snippet_defines_every_name_that_it_uses(page):
    for block in python_blocks(page):
        command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "-"]
        checked = subprocess.run(command, input=block, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


def run(program, folder):
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run(page, tmp_path):
    for block in python_blocks(page):
        result = run(block, tmp_path)
        assert result.returncode == 0, f"{block}\n{result.stderr}"


def wrong_comments(block, printed):
    """Decimal numbers in the comments of a block's print statements that are not what its lines print."""
    prints = [line for line in block.splitlines() if line.startswith("print(")]
    wrong = []
    for line, shown in zip(prints, printed.splitlines(), strict=True):
        found = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", shown)]
        for expected in re.findall(r"\b\d+\.\d+\b(?!e)", line.partition("  # ")[2]):
            digit = 10.0 ** -len(expected.partition(".")[2])
            # the last digit may differ by one: another BLAS rounds otherwise
            if not any(abs(number - float(expected)) <= 1.5 * digit for number in found):
                wrong.append(expected)
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_first_examples_print_what_their_comments_say(page, tmp_path):
    for block in python_blocks(ROOT / page):
        if "\n    print(" not in block:
            assert wrong_comments(block, run(block, tmp_path).stdout) == [], block


def test_a_wrong_comment_is_noticed():
    block = "print(1 / 3)  # a third, 0.33\nprint(2.0)  # two and a half, 2.5"
    assert wrong_comments(block, "0.3333\n2.0\n") == ["2.5"]


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


def shell_blocks(page):
    """What a page prints as shell commands; ``make`` targets are what runs these tests."""
    blocks = re.findall(r"^```bash\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [block.replace(".venv/bin/", "") for block in blocks if not block.startswith("make ")]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if shell_blocks(page)], ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page, tmp_path):
    for name in ("examples", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    for block in shell_blocks(page):
        with (tmp_path / "log").open("w+") as log:
            # a session of its own, so that what a block starts in the background ends with it
            shell = subprocess.Popen(
                ["bash", "-e", "-c", block],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=ENVIRONMENT,
                cwd=tmp_path,
                start_new_session=True,
            )
            try:
                assert shell.wait(timeout=900) == 0, f"{block}\n{(tmp_path / 'log').read_text()}"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGTERM)
