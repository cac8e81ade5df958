"""Registering claims, confirming them on fresh seeds, and spending time on those that are undecided."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli import options
from attnlab.cli.jobs import Job, choose_engine, compute, parse_shard, usage
from attnlab.cli.terminal import console, print_table, say

if TYPE_CHECKING:
    from attnlab.common.figure import Figure
    from attnlab.lab.runner import Result

claims_app = typer.Typer(
    no_args_is_help=True, help="Register claims before they are measured.\n\nExample: `attnlab claims check`"
)


@claims_app.command()
def register() -> None:
    """Write the claims of each system, statistic, threshold and date, to the file in its package.

    Example: `attnlab claims register`
    """
    from attnlab.lab import registry
    from attnlab.lab.claims import registration

    changed = registration.register(registry.figures().values())
    # new ones on one line; a changed claim has one of its own, with what changed
    new = [id for id, what in changed.items() if what == "is not registered"]
    if new:
        console.print(f"new: {', '.join(new)}", highlight=False)
    for id, what in changed.items():
        if id not in new:
            console.print(f"{id} {what}", highlight=False)
    console.print(f"registered claims: {len(changed) or 'no'} entries changed", highlight=False)


@claims_app.command()
def check(
    measured: Annotated[
        Path | None, typer.Option(help="A ledger in which every claim must be current.", metavar="FILE")
    ] = None,
) -> None:
    """List claims that are not as registered, or not measured.

    Example: `attnlab claims check`. `--measured docs/data/claims_paper.json` also lists those without a value of the
    present claim and code.
    """
    from attnlab.lab import registry
    from attnlab.lab.claims import registration

    figures = list(registry.figures().values())
    problems = registration.differences(figures, registration.read())
    if measured is not None:
        problems |= _not_measured(figures, measured)
    for id, what in problems.items():
        console.print(f"{id} {what}", highlight=False)
    console.print(f"{len(problems) or 'no'} problems in {sum(len(f.claims) for f in figures)} claims", highlight=False)
    raise typer.Exit(int(bool(problems)))


def _not_measured(figures: Sequence[Figure], file: Path) -> dict[str, str]:
    """The claims that a ledger's file does not hold as they and the code stand."""
    import json

    from attnlab.lab import ledger

    with usage():
        if not file.exists():
            raise ValueError(f"there is no ledger at {file}")
    data = json.loads(file.read_text())
    entries = ledger.current(figures, data)
    found: dict[str, str] = {}
    for figure in figures:
        # stream 1, the first measurement; a confirmation alone is none
        made = data.get("figures", {}).get(figure.name, {}).get("1", {})
        # in the form in which the ledger keeps them
        code = sorted({cell.code for cell in figure.cells(data["scale"])})
        for claim in figure.claims:
            if entries.get(claim.id, {}).get("status", "not measured") == "not measured":
                found[claim.id] = f"is not measured at {data['scale']} scale"
            elif made.get("code") != code:
                found[claim.id] = f"was measured at {data['scale']} scale by another version of the code"
    return found


def confirm(
    names: options.Names = None,
    scale: options.Scale = "quick",
    workers: options.Workers = 0,
    scheduler: options.Scheduler = "",
    tls: options.Tls = "",
    slurm: options.Slurm = None,
    shard: options.ShardText = "",
    store: options.StorePath = options.DEFAULT_STORE,
    ledger_file: Annotated[
        Path,
        typer.Option("--ledger", help="File of verdicts.", metavar="FILE", rich_help_panel=options.FILES),
    ] = Path("results/claims.json"),
    retry_failed: options.RetryFailed = False,
    keep_old: options.KeepOld = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure registered claims on fresh random numbers.

    No other command uses these seeds. The first verdicts are read from the same store, or from the ledger, and written
    beside the confirmations. A stopped command continues. Example: `attnlab confirm slr --workers 2`
    """
    from attnlab.common.validation import one_of
    from attnlab.lab import ledger, registry
    from attnlab.lab.claims import confirmation
    from attnlab.lab.runner import collect
    from attnlab.lab.store import Store

    with usage():
        one_of("scale", scale, ["quick", "paper"])
        figures = [figure for figure in registry.select(names or []) if figure.missing_extra() is None]
        # before anything is computed: a claim that changed after a look cannot be confirmed
        _refuse_unregistered(figures)
        engine = choose_engine(workers, scheduler, tls, slurm, False)
        # no page and no folder: what is confirmed goes to the ledger
        job = Job(engine, store, Path(), parse_shard(shard), False, retry_failed, quiet, False, True, keep_old)
    # this stream alone makes the numbers fresh; no other command sets it
    job = replace(job, stream=confirmation.CONFIRMATION)
    with Store(store, writable=True) as opened:
        compute(figures, scale, job, opened)
        if job.shard:
            say(f"this part is in {store}; merge the parts with 'attnlab store merge'")
            return
        fresh = [collect(figure, scale, opened, keep_old=keep_old, stream=job.stream) for figure in figures]
        first = [collect(figure, scale, opened, keep_old=keep_old) for figure in figures]
    ledger_file.parent.mkdir(parents=True, exist_ok=True)
    # What the ledger knows of a claim stays where the store has no earlier result of the present code.
    ledger.write([result for result in first if result.count], scale, ledger_file, fresh)
    entries = [entry for entry in ledger.current(figures, ledger.read(ledger_file)).values() if "confirmation" in entry]
    _show(entries)
    console.print(f"ledger: {ledger_file}", soft_wrap=True)
    # *undecided* on fresh seeds is a lack of replicates; only the opposite verdict is a failure
    lost = any((entry["status"], entry["confirmation"]["status"]) == ("holds", "fails") for entry in entries)
    raise typer.Exit(int(lost or any(result.failed or result.missing for result in fresh)))


def _refuse_unregistered(figures: Sequence[Figure]) -> None:
    from attnlab.lab.claims import registration

    found = registration.differences(figures, registration.read())
    if found:
        id, what = next(iter(found.items()))
        rest = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise ValueError(f"only registered claims can be confirmed: {id} {what}{rest}; see 'attnlab claims register'")


def _show(entries: Sequence[Mapping[str, Any]]) -> None:
    from rich.markup import escape

    from attnlab.lab import ledger
    from attnlab.lab.claims.confirmation import comparison, summary

    headings = ("claim", "first [95 %]", "fresh seeds [95 %]", "holds if", "says")
    numbers = [(ledger.measured_number(e), ledger.measured_number(e["confirmation"])) for e in entries]
    rows = [(e["id"], *pair, e["holds_if"], comparison(e)) for e, pair in zip(entries, numbers, strict=True)]
    print_table("verdict and confirmation", map(escape, headings), (map(escape, row) for row in rows), expand=True)
    console.print(f"fresh seeds, {ledger.tally(e['confirmation']['status'] for e in entries)}", highlight=False)
    console.print(summary(entries), highlight=False)


def spend(results: list[Result], scale: str, job: Job, minutes: float, cores: int) -> list[Result]:
    """Add replicates to undecided claims, cheapest first, until the time is spent; the results with more of them."""
    from attnlab.lab.claims import deciding
    from attnlab.lab.runner import collect
    from attnlab.lab.store import Store

    by_name = {result.figure.name: result for result in results}
    end = time.monotonic() + 60 * minutes
    with Store(job.store, writable=True) as store:
        while wanted := deciding.proposals(by_name.values()):
            chosen = wanted[0]
            left = end - time.monotonic()
            # the cheapest first: if it does not fit, none does
            if chosen.seconds / cores > left:
                needed = f"{chosen.claim} would take about {chosen.seconds / cores / 60:.1f} min"
                console.print(f"{max(left, 0) / 60:.1f} min are left; the nearest, {needed}", highlight=False)
                break
            figure = deciding.enlarged(chosen.figure, scale, chosen.factor)
            console.print(f"{chosen.claim}: {chosen.factor:.1f} times the replicates of {figure.name}", highlight=False)
            compute([figure], scale, job, store)
            # marked even if it now holds: it was extended after a look
            by_name[figure.name] = deciding.marked(collect(figure, scale, store, keep_old=job.keep_old))
    return [by_name[result.figure.name] for result in results]
