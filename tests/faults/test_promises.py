"""The guarantees of docs/lab.md name the tests that hold them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_guarantee_names_tests_that_exist():
    page = (ROOT / "docs" / "lab.md").read_text()
    rows = re.findall(r"^\| (?!guarantee)(.+?) \| (`tests/.+`) \|$", page, flags=re.MULTILINE)
    assert len(rows) >= 11
    for guarantee, named in rows:
        for file, _, test in (name.partition("::") for name in re.findall(r"`(.+?)`", named)):
            source = (ROOT / file).read_text()
            assert f"\ndef {test}(" in source or not test, (guarantee, test)
