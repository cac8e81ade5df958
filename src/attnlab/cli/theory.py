"""``attnlab theory``: any theory function at the command line, over ranges, lists and grids."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from attnlab.cli.jobs import load_modules, usage
from attnlab.cli.terminal import console

if TYPE_CHECKING:
    from attnlab.lab.formulas.formula import Formula, Parameter
    from attnlab.lab.formulas.tabulate import Request, Table

# The parameters of a function are options that only its signature knows, --help among them.
SETTINGS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
PICTURES = (".png", ".pdf", ".svg")
SHOWN_COLUMNS = 9
SHOWN_ROWS = 200

HELP = """attnlab theory                   all theory functions, with their status
attnlab theory aim               those of one system
attnlab theory aim.mmse --help   its formula, parameters, source and an example
attnlab theory aim.mmse --alpha 0.05:0.2:0.01 --rho 0.5 --tokens 2

values    0.1        one value
          1,2,5      a list
          0:1:0.1    from 0 to 1 in steps of 0.1, both ends included
          1:100:n12  12 values at equal distances
          1:100:x12  12 values at equal ratios
          [1,0,0]    an array; [[1,0],[0,2]] is a matrix
          Several lists or ranges make a grid.
output    --csv [FILE]      a table; without FILE it is printed
          --json [FILE]     the same as JSON
          --plot FILE       a picture: .png, .pdf or .svg
          --show RESULT     which result is drawn
          --max-points N    largest grid (default 10000)
          --module FILE     your Python file; it calls lab.add"""


@dataclass(frozen=True)
class Order:
    """What was typed: a name, parameters as text, and where the answer goes (``"-"`` is the terminal)."""

    name: str
    help: bool
    given: dict[str, str]
    csv: str
    json: str
    plot: str
    show: str
    max_points: int
    module: str = ""


def theory(words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
    """Compute any theory function over ranges and grids.

    Example: `attnlab theory aim.mmse --alpha 0.05:0.2:0.01 --rho 0.5 --plot mmse.png`. Alone it lists them all.
    """
    from attnlab.common.systems import systems
    from attnlab.lab.formulas.formula import formula, formulas
    from attnlab.lab.formulas.tabulate import request, tabulate

    with usage():
        order = parse(words or [])
        load_modules([Path(file) for file in order.module.split(",") if file])
        if order.help and not order.name:
            console.print(HELP, markup=False, highlight=False)
        # own is no system and has the functions that the user added
        elif not order.name or order.name in (*systems(), "own"):
            _list({k: f for k, f in formulas().items() if k.startswith(order.name)})
        elif order.help:
            _explain(formula(order.name))
        else:
            asked = request(formula(order.name), order.given, max_points=order.max_points)
            check_outputs(order, asked)
            deliver(order, tabulate(asked))


def parse(words: list[str]) -> Order:
    """Split the words; a word after ``--name`` is its value unless it begins with ``--`` too.

    >>> parse(["aim.mmse", "--alpha", "0.1", "--csv"]).given
    {'alpha': '0.1'}
    """
    # a name comes first; options may stand alone, as --help does
    name = words[0] if words and not words[0].startswith("-") else ""
    found: dict[str, str] = {}
    rest = words[bool(name) :]
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if not option.startswith("--"):
            raise ValueError(f"expected --parameter value, got {option!r}; see 'attnlab theory --help'")
        # dashes as in other options: --q-hat is the parameter q_hat
        key = option.removeprefix("--").replace("-", "_")
        if key in found:
            raise ValueError(f"--{key} is given twice; several values are a list: --{key} 1,2")
        # two dashes end an option without value; one dash begins a negative number
        if not equals and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        if not value and key not in ("csv", "json", "help"):
            raise ValueError(f"--{key} needs a value")
        # an option without value goes to the terminal; of --help it is only asked whether it is there
        found[key] = value or "-"
    help_, csv, json, plot, show, most, module = (
        found.pop(k, "") for k in ("help", "csv", "json", "plot", "show", "max_points", "module")
    )
    if most and not most.isdigit():
        raise ValueError(f"--max-points must be an integer >= 1, got {most!r}")
    if csv == json == "-":
        raise ValueError("only one of --csv and --json can go to the terminal; give the other a file")
    return Order(name, bool(help_), found, csv, json, plot, show, int(most or 10_000), module)


def check_outputs(order: Order, asked: Request) -> None:
    """Refuse what could not be written or drawn before anything is computed."""
    for option, file in {"csv": order.csv, "json": order.json, "plot": order.plot}.items():
        if file in ("", "-"):
            continue
        path = Path(file)
        # a new file needs a folder that can be written, an old one its own permission
        target = path if path.exists() else path.parent
        if path.is_dir() or not target.exists() or not os.access(target, os.W_OK):
            raise ValueError(f"--{option} cannot be written: {file}")
    if order.plot:
        from attnlab.lab.formulas.curves import check

        check(asked)
        if Path(order.plot).suffix not in PICTURES:
            raise ValueError(f"--plot takes a file that ends in {', '.join(PICTURES)}, got {order.plot}")
    elif order.show:
        raise ValueError("--show chooses what --plot draws; give --plot FILE too")


def deliver(order: Order, table: Table) -> None:
    """Write or print the answer; doubts go to the error stream, so that a pipe stays clean."""
    if order.plot:
        from attnlab.common.drawing import style
        from attnlab.lab.formulas.curves import chosen, curves

        chosen(table, order.show)
        with style():
            curves(table, order.show).savefig(order.plot)
    for file, text in ((order.csv, table.to_csv), (order.json, table.to_json)):
        if file == "-":
            sys.stdout.write(text())
        elif file:
            Path(file).write_text(text())
    if "-" not in (order.csv, order.json):
        _show(table)
        for file in filter(None, (order.csv, order.json, order.plot)):
            console.print(f"written: {file}", markup=False, highlight=False, soft_wrap=True)
    for note in table.notes:
        Console(stderr=True, emoji=False).print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)


def _list(found: dict[str, Formula]) -> None:
    table = Grid(title="theory", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("function", "status", ""):
        table.add_column(heading, no_wrap=heading != "")
    for name, formula in found.items():
        table.add_row(f"[bold]{name}", formula.status, escape(formula.summary))
    console.print(table)
    console.print("\nattnlab theory NAME --help shows the formula, the parameters and an example", highlight=False)


def _explain(formula: Formula) -> None:
    console.print(f"[bold]{formula.name}[/]  ({formula.status})\n")
    # the terminal breaks paragraphs; lists and formulas keep their lines
    blocks = [b if re.search(r"^\s|^-{3}| : ", b, re.M) else b.replace("\n", " ") for b in formula.text.split("\n\n")]
    console.print("\n\n".join(blocks), "", markup=False, highlight=False, sep="\n")
    table = Grid(box=None, padding=(0, 2, 0, 0))
    for heading in ("parameter", "takes", "default"):
        table.add_column(heading)
    for parameter in formula.parameters:
        table.add_row(f"--{parameter.name}", _takes(parameter), _default(parameter))
    console.print(table, "")
    if formula.beyond:
        console.print(f"{formula.beyond[0]} is a Python object: no command line can give it, call this from Python.")
        return
    # a shell would take the brackets of an array for a pattern of file names
    words = " ".join(f"--{k} {v!r}" if "[" in v else f"--{k} {v}" for k, v in formula.example().items())
    console.print(f"example: attnlab theory {formula.name} {words}", markup=False, highlight=False, soft_wrap=True)


def _takes(parameter: Parameter) -> str:
    words = {
        "number": "numbers",
        "integer": "integers",
        "flag": "true or false",
        "text": "a name",
        "array": "numbers, or an array [1,0.5]",
        "tuple": "an array [1,2]",
        "beyond": "a Python object: not from a command line",
    }
    return escape(words.get(parameter.kind, parameter.kind) + (", or none" if parameter.none else ""))


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "required"
    return f"{parameter.default:.6g}" if isinstance(parameter.default, float) else escape(str(parameter.default))


def _show(table: Table) -> None:
    """On a terminal: what was varied and the results; a single point as a list of names and values."""
    from attnlab.lab.formulas.tabulate import spread

    asked = table.request
    rows = [spread(row) for row in table.rows]
    # arrays among the parameters have columns name[i]
    fixed = [name for name in rows[0] if name.split("[")[0] in asked.axes and name not in asked.varied]
    if fixed:
        console.print(", ".join(f"{k} = {_number(rows[0][k])}" for k in fixed), markup=False, highlight=False)
    names = [name for name in dict.fromkeys(k for row in rows for k in row) if name not in fixed]
    if all(row.get("status", asked.formula.status) == asked.formula.status for row in rows):
        names = [name for name in names if name != "status"]  # the last line says it once
    if asked.varied:
        shown, lines = names[:SHOWN_COLUMNS], rows[:SHOWN_ROWS]
        grid = Grid(*map(escape, shown), box=None, padding=(0, 2, 0, 0))
        for column in grid.columns:
            column.justify, column.no_wrap = "right", True  # digits below each other, and no number in two lines
        cells = [[row.get(name, "") for name in shown] for row in lines]
    else:
        # a single point has its results below each other, where there is room for more
        shown, lines = names[: 3 * SHOWN_COLUMNS], rows
        grid = Grid(box=None, padding=(0, 2, 0, 0), show_header=False)
        cells = [[name, rows[0][name]] for name in shown]
    for line in cells:
        # brackets of an array are markup to rich
        grid.add_row(*(escape(_number(cell)) for cell in line))
    console.print(grid)
    left = {"rows": len(rows) - len(lines), "results": len(names) - len(shown)}
    if any(left.values()):
        more = ", ".join(f"{count} more {what}" for what, count in left.items() if count)
        console.print(f"… {more}: --csv or --json has them all", markup=False, highlight=False)
    origin = f"status: {asked.formula.status_text}.  source: {asked.formula.source}."
    console.print(origin, style="dim", markup=False, highlight=False)


def _number(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)
