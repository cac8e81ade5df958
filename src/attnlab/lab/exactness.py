"""Exact or heuristic: the table of every theory function, in Markdown, from the docstrings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from attnlab.lab.formula import STATUSES, Formula


def markdown(formulas: Iterable[Formula]) -> str:
    """One table per system: function, what it is, status, source."""
    found = list(formulas)
    count = Counter(formula.status for formula in found)
    lines = [f"{len(found)} functions: " + ", ".join(f"{count[status]} {status}" for status in STATUSES) + "."]
    for system in dict.fromkeys(formula.name.split(".")[0] for formula in found):
        lines += ["", f"## {system}", "", "| function | what it is | status | source |", "|---|---|---|---|"]
        lines += [_row(formula) for formula in found if formula.name.split(".")[0] == system]
    return "\n".join(lines) + "\n"


def _row(formula: Formula) -> str:
    system, *rest = formula.name.split(".")
    target = f"attnlab.{system}.theory.{rest[0]}" if len(rest) == 1 else f"attnlab.{formula.name}"
    status = formula.status_text.replace(formula.status, f"**{formula.status}**", 1)
    link = f"{{py:func}}`{'.'.join(rest)} <{target}>`"
    return f"| {link} | {markup(formula.opening)} | {markup(status, bold=True)} | {markup(formula.source)} |"


def markup(text: str, *, bold: bool = False) -> str:
    r"""Restructured text as Markdown inside a table: formulas between dollars, everything else for itself.

    >>> print(markup(r"Risk :math:`\|k\|` of (k*, v*), ``lam`` as in :func:`~attnlab.slr.theory.risk`"))
    Risk $\Vert k\Vert $ of (k\*, v\*), `lam` as in `risk`
    """
    pieces = re.split(r"(:math:`[^`]*`|``[^`]*``|:\w+:`[^`]*`)", text)
    return "".join(_piece(piece, bold) for piece in pieces)


def _piece(piece: str, bold: bool) -> str:
    if piece.startswith(":math:"):
        formula = piece.removeprefix(":math:`").rstrip("`").replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        return f"${formula}$"
    if piece.startswith("``"):
        return f"`{piece.strip('`')}`"
    if piece.startswith(":") and piece.endswith("`"):
        return f"`{piece.split('`')[1].split('.')[-1]}`"
    return re.sub(r"([|<>_$])" if bold else r"([|<>_$*])", r"\\\1", piece)
