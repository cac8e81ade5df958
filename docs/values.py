"""Measured numbers on pages come from data files: a comment behind a number names its file, row and column.

``12.4<!-- bench_cpu.json; name=AMP iteration, growth in d; value -->`` is the column ``value`` of the one row of
``docs/data/bench_cpu.json`` with that name. ``python docs/values.py`` writes all of them again, with as many digits as
stand there. A claim without a value reads *not measured*.
"""

import csv
import json
import math
import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parent
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))
ABSENT = "not measured"
MARKED = re.compile(rf"(?P<shown>[-−]?\d+(?:\.\d+)?(?:e[-−]?\d+)?|{ABSENT})<!-- (?P<file>[\w.]+); (?P<cell>[^>]+) -->")
# Digits of a number that takes the place of an absent one.
DIGITS = 2


@cache
def rows(file):
    """The rows of a data file: those of a CSV file, the benchmarks or the claims of a JSON file."""
    text = (DOCS / "data" / file).read_text(encoding="utf-8")
    if file.endswith(".csv"):
        return list(csv.DictReader(text.splitlines()))
    content = json.loads(text)
    return content["rows"] if "rows" in content else content["claims"]


def value(file, cell):
    """The number that a marker names, or None where it is not measured; a row that is named twice is an error."""
    *conditions, column = cell.split("; ")
    wanted = dict(condition.split("=", 1) for condition in conditions)
    found = [row for row in rows(file) if all(str(row[key]) == text for key, text in wanted.items())]
    if len(found) > 1 or (not found and not file.startswith("claims_")):
        raise LookupError(f"{len(found)} rows of docs/data/{file} have {', '.join(conditions)}")
    number = found[0][column] if found else None
    return None if number in (None, "") else float(number)


def shown(number, like):
    """A number with as many significant digits as the text it replaces.

    >>> shown(0.04112, "0.053"), shown(12.43, "27"), shown(None, "27"), shown(0.9, "1.0"), shown(297.4, "3e2")
    ('0.041', '12', 'not measured', '0.90', '3e+02')
    >>> shown(0.956, "not measured")
    '0.96'
    """
    if number is None:
        return ABSENT
    mantissa = "" if like == ABSENT else re.sub(r"e.*", "", like)
    digits = len(mantissa.lstrip("-−0.").replace(".", "")) or DIGITS
    if like != ABSENT and "e" in like:
        return f"{number:.{digits - 1}e}".replace("-", "−")
    decimals = digits - 1 - (math.floor(math.log10(abs(number))) if number else 0)
    return f"{number:.{max(0, decimals)}f}".replace("-", "−")


def renewed(text):
    """A page with its marked numbers as the data files have them."""

    def renew(match):
        file, cell = match["file"], match["cell"]
        return f"{shown(value(file, cell), match['shown'])}<!-- {file}; {cell} -->"

    return MARKED.sub(renew, text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
