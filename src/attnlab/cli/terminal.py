"""The terminal that commands print to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

# NO_COLOR asks for no escape codes at all, bold included (no-color.org).
COLORS: Any = None if os.environ.get("NO_COLOR") else "auto"
# A log has no width of its own: 80 columns would break every sentence of the verdicts.
console = Console(emoji=False, color_system=COLORS, width=None if sys.stdout.isatty() else 160)


def print_table(title: str, headings: Iterable[str], rows: Iterable[Iterable[Any]], **options: Any) -> None:
    """Rows under headings."""
    table = Table(*headings, title=title, title_justify="left", **options)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def say(text: str) -> None:
    """Print a line as it is: names in a store are data, neither markup nor commands to the terminal."""
    # an escape code in a name would move the cursor or change what is on the screen
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    console.print(plain, markup=False, highlight=False, soft_wrap=True)
