"""Exact or heuristic: the table of every theory function, in Markdown, from the docstrings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from attnlab.lab.formulas.formula import STATUSES, Formula


def markdown(formulas: Iterable[Formula]) -> str:
    """One table per system: function, status, and what it is with its source."""
    found = list(formulas)
    count = Counter(formula.status for formula in found)
    lines = [f"{len(found)} functions: " + ", ".join(f"{count[status]} {status}" for status in STATUSES) + "."]
    for system in dict.fromkeys(formula.name.split(".")[0] for formula in found):
        lines += ["", f"## {system}", "", "| function | status | what it is |", "|---|---|---|"]
        lines += [_row(formula) for formula in found if formula.name.split(".")[0] == system]
    return "\n".join(lines) + "\n"


def _row(formula: Formula) -> str:
    system, *rest = formula.name.split(".")
    target = f"attnlab.{system}.theory.{rest[0]}" if len(rest) == 1 else f"attnlab.{formula.name}"
    link = f"{{py:func}}`{'.'.join(rest)} <{target}>`"
    says = (
        f"{markup(formula.opening)}.<br><small>{markup(formula.status_text)}. Source: {markup(formula.source)}.</small>"
    )
    return f"| {link} | **{formula.status}** | {says} |"


def markup(text: str) -> str:
    r"""Restructured text as Markdown inside a table: formulas between dollars, everything else for itself.

    >>> print(markup(r"Risk :math:`\|k\|` of (k*, v*), ``lam`` as in :func:`~attnlab.slr.theory.risk`"))
    Risk $\Vert k\Vert $ of (k\*, v\*), `lam` as in `risk`
    """
    pieces = re.split(r"(:math:`[^`]*`|``[^`]*``|:\w+:`[^`]*`)", text)
    return "".join(map(_piece, pieces))


def _piece(piece: str) -> str:
    if piece.startswith(":math:"):
        formula = piece.removeprefix(":math:`").rstrip("`").replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        return f"${formula}$"
    if piece.startswith("``"):
        return f"`{piece.strip('`')}`"
    if piece.startswith(":") and piece.endswith("`"):
        return f"`{piece.split('`')[1].split('.')[-1]}`"
    return re.sub(r"([|<>_$*])", r"\\\1", piece)
