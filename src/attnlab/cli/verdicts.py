"""What a run found, on a terminal: verdicts by paper, what differs from the record, failed cells, the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from attnlab.cli.terminal import console, say
from attnlab.common.words import many

if TYPE_CHECKING:
    from attnlab.common.claim import Verdict
    from attnlab.lab.runner import Result

# Failed cells that are listed.
SHOWN = 20
# Columns of a terminal from which each part of a verdict has a column of the table.
WIDE = 120


def show(results: list[Result], *, recorded: bool, not_measured: int = 0) -> None:
    """The ledger: what differs from the registered verdicts first, every claim by paper, the counts, failed cells.

    ``not_measured`` counts the claims of figures that were skipped.
    """
    from attnlab.lab import ledger

    verdicts = [verdict for result in results for verdict in result.verdicts]
    changed = [verdict for verdict in verdicts if recorded and not verdict.as_registered]
    for title, group in {
        "differs from the registered verdict": changed,
        **ledger.by_paper((v.claim, v) for v in verdicts),
    }.items():
        if group:
            console.print(_table(title, group, recorded=recorded))
    if verdicts:
        differ = "1 differs" if len(changed) == 1 else f"{len(changed) or 'none'} differ"
        differing = f"; {differ} from the registered verdict" if recorded else ""
        statuses = [*(v.status for v in verdicts), *["not measured"] * not_measured]
        say(f"{ledger.tally(statuses)}{differing}")
    for result in results:
        if result.figure.unjudged:
            say(f"{result.figure.name}: no claim is judged; {result.figure.unjudged}")
        if result.old:
            say(f"{result.figure.name}: {result.old} of {result.count} cells are from other code")
    failed = [cell for result in results for cell in result.failed]
    for cell in failed[:SHOWN]:
        # the last line of a traceback says what happened
        last = cell.error.strip().splitlines()[-1]
        say(f"failed: {cell.figure} {cell.id[:12]} {cell.params}: {last}")
    if len(failed) > SHOWN:
        say(f"and {many(len(failed) - SHOWN, 'more failed cell')}")


def _table(title: str, verdicts: list[Verdict], *, recorded: bool) -> Table:
    from rich.markup import escape

    from attnlab.lab import ledger

    wide = console.width >= WIDE
    value = "value [95 %]" if wide else "value [95 %]\nholds if"
    # on a narrow terminal the parts of a verdict share cells, and lines keep the claims apart
    table = Table(title=title, title_justify="left", expand=True, show_lines=not wide)
    for heading in ("claim", "verdict", value, "holds if", "sentence") if wide else ("verdict", "claim", value):
        table.add_column(escape(heading), no_wrap=wide and heading == "claim")
    colors = {"holds": "green", "fails": "red", "undecided": "yellow", "not measured": "dim"}
    for verdict in verdicts:
        status = f"[{colors[verdict.status]}]{verdict.status}[/]"
        if recorded and not verdict.as_registered:
            status += f" (registered: {verdict.registered})"
        text = "\n".join([verdict.claim.says, *filter(None, (verdict.reason, ledger.decided_by(verdict)))])
        name, says = escape(verdict.claim.id), escape(text)
        value, holds = escape(ledger.interval(verdict)), escape(str(verdict.claim.holds))
        row = (name, status, value, holds, says) if wide else (status, f"[bold]{name}[/]\n{says}", f"{value}\n{holds}")
        table.add_row(*row)
    return table


def exit_code(results: list[Result], *, recorded: bool) -> int:
    """0 when all cells are there and, where a record applies, no verdict is the opposite of the registered one."""
    broken = any(result.failed or result.missing for result in results)
    surprising = recorded and any(v.contradicts for result in results for v in result.verdicts)
    return int(broken or surprising)
