"""The tutorial on a model of one's own: what its comments say is what its lines print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/own-model.md"


def numbers(text):
    """The numbers of a text, and one and a half units of the last digit of each."""
    found = re.findall(r"\d+\.?\d*", text)
    return [float(x) for x in found], [1.5 * 10.0 ** -len(x.partition(".")[2]) for x in found]


@pytest.mark.slow
def test_the_comments_are_what_is_printed(tmp_path):
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    said = re.findall(r"^print\(.*  # ([^;\n]*)|^# (.*\|.*)$", program, re.MULTILINE)
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MPLBACKEND": "Agg"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = run.stdout.splitlines()
    assert len(lines) == len(said) == 6
    for line, comment in zip(lines, said, strict=True):
        (printed, _), (stated, digits) = numbers(line), numbers("".join(comment))
        assert len(printed) == len(stated)
        assert all(abs(a - b) <= digit for a, b, digit in zip(printed, stated, digits, strict=True)), line
    assert {path.name for path in tmp_path.iterdir()} == {"own_model.csv", "own_model.pdf"}
