"""The tables of the documentation, written from stored results between the marks of each page.

A page is prose with blocks ``<!-- begin NAME -->`` ... ``<!-- end NAME -->``; only what is between the marks changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from attnlab.lab import durations
from benchmarks import picture, scaling
from benchmarks.machine import LIBRARIES
from benchmarks.results import Results
from benchmarks.rows import Row, short

GPU_FILE, CORE_FILE = Path("data/bench_gpu.json"), Path("data/bench_core.json")
PICTURE_FILE = Path("images/performance.png")
SCALING_PAGE = "scaling.md"
ABSENT = "*Not measured yet.*"
MARK = re.compile(r"<!-- begin ([\w-]+) -->\n(.*?)<!-- end \1 -->", flags=re.DOTALL)


def check(page: Path) -> None:
    """Refuse a page without blocks before anything is measured."""
    if not page.is_file():
        raise ValueError(f"there is no page {page}: give one with blocks such as <!-- begin cpu --> <!-- end cpu -->")
    names = [name for name, _ in MARK.findall(page.read_text())]
    if not names:
        raise ValueError(f"{page} has no block <!-- begin NAME --> <!-- end NAME --> to write into")
    if unknown := set(names) - set(BLOCKS):
        raise ValueError(f"{page} has the unknown block {sorted(unknown)[0]!r}; known are {', '.join(BLOCKS)}")


def write(page: Path, cpu: Results) -> None:
    """Renew the blocks of the page, of the scaling page beside it, and the picture.

    Results of a GPU and of one core are taken from ``data/bench_gpu.json`` and ``data/bench_core.json`` beside it,
    where they are there.
    """
    gpu, core = (
        Results.read(file) if (file := page.parent / name).exists() else None for name in (GPU_FILE, CORE_FILE)
    )
    picture.save(cpu, page.parent / PICTURE_FILE, gpu)
    for path in (page, page.with_name(SCALING_PAGE)):
        if path.exists():
            path.write_text(render(path.read_text(), cpu, gpu, core))


def render(text: str, cpu: Results, gpu: Results | None, core: Results | None = None) -> str:
    """The text with every block renewed."""

    def renewed(block: re.Match[str]) -> str:
        return f"<!-- begin {block[1]} -->\n\n{BLOCKS[block[1]](cpu, gpu, core).strip()}\n\n<!-- end {block[1]} -->"

    return MARK.sub(renewed, text)


def table(headings: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    headings = list(headings)
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def machine_block(results: Results | None) -> str:
    """What the numbers were measured on."""
    if results is None:
        return ABSENT
    versions = {name: results.machine[name] for name in ("python", *LIBRARIES) if name in results.machine}
    shown = {key: str(value) for key, value in results.machine.items() if key not in versions}
    shown["versions"] = ", ".join(f"{name} {number}" for name, number in versions.items())
    return table(("measured on", ""), shown.items())


def rows_block(results: Results | None, *, growth: bool = True) -> str:
    """All rows part by part, with or without the growths."""
    if results is None:
        return ABSENT
    texts = []
    for part, rows in results.rows.items():
        lines = [_cells(row) for row in rows if growth or row.kind != "growth"]
        if part in results.failed:
            texts.append(f"### {part}\n\nThis part failed: `{results.failed[part].strip().splitlines()[-1]}`")
        elif lines:
            known = [f"{results.seconds[part]:.0f} s"] if part in results.seconds else []
            known += [results.days[part]] if part in results.days else []
            took = f" ({', '.join(known)})" if known else ""
            texts.append(f"### {part}{took}\n\n" + table(("what", "measured", "target", "", "what was run"), lines))
    return "\n\n".join(texts) or ABSENT


def _cells(row: Row) -> list[str]:
    mark = {True: "met", False: "**missed**", None: ""}[row.met]
    extra = [row.detail]
    if row.compile is not None and row.compile >= 0.05:
        extra.append(f"compile {row.compile:.1f} s apart")
    if row.memory is not None:
        extra.append(f"peak {row.memory / 1e6:.0f} MB")
    return [row.name, f"{row.text} {row.unit}".strip(), row.goal, mark, "; ".join(filter(None, extra))]


def growth_block(results: Results | None) -> str:
    """Measured exponents beside those of theory."""
    rows = [row for row in results.all_rows() if row.kind == "growth"] if results else []
    if not rows:
        return ABSENT
    lines = [
        [
            row.name,
            row.text,
            row.target if row.theory is None else short(row.theory),
            row.detail,
        ]
        for row in rows
    ]
    return table(("time of", "exponent", "theory", "what was run"), lines)


def missed_block(results: Results | None) -> str:
    """Each target that is not met, with the reason."""
    if results is None:
        return ABSENT
    missed = [row for row in results.all_rows() if row.met is False]
    if not missed:
        return "Every target with a number is met in this run."
    lines = [
        f"- **{row.name}**: {row.text} {row.unit}, target {row.target}. {row.note or row.detail}" for row in missed
    ]
    return "\n".join(lines)


def paper_block(stated: Mapping[str, Mapping[str, float | str]] | None = None) -> str:
    """How long paper scale takes, figure by figure and in all: minutes on two cores, from the runs behind the ledger.

    An estimate is a figure that has not been run there; it stands apart and is in no total of what was measured.
    """
    stated = durations.stated() if stated is None else stated
    times = {name: minutes["paper"] for name, minutes in stated.items() if "paper" in minutes}
    measured = {name: float(minutes) for name, minutes in times.items() if not isinstance(minutes, str)}
    guessed = {name: minutes for name, minutes in times.items() if isinstance(minutes, str)}
    guess = sum(float(minutes.removeprefix(durations.ABOUT)) for minutes in guessed.values())
    longest = max(measured, key=lambda name: measured[name], default="")
    total = f"{len(measured)} figures measured, {sum(measured.values()) / 60:.1f} h in all"
    if longest:
        total += f", the longest `{longest}` with {measured[longest]:.0f} min"
    if guessed:
        total += f"; {len(guessed)} not measured yet, by estimate {guess / 60:.1f} h more"
    lines = [[f"`{name}`", f"{minutes:.2f}", "measured"] for name, minutes in _longest_first(measured)]
    lines += [[f"`{name}`", str(minutes), "estimate"] for name, minutes in sorted(guessed.items())]
    return f"{total}.\n\n" + table(("figure", "minutes", ""), lines)


def _longest_first(times: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(times.items(), key=lambda item: (-item[1], item[0]))


BLOCKS: dict[str, Callable[[Results, Results | None, Results | None], Any]] = {
    "machine": lambda cpu, gpu, core: machine_block(cpu),
    "cpu": lambda cpu, gpu, core: rows_block(cpu, growth=False),
    "growth": lambda cpu, gpu, core: growth_block(cpu),
    "missed": lambda cpu, gpu, core: missed_block(cpu),
    "gpu-machine": lambda cpu, gpu, core: machine_block(gpu),
    "gpu": lambda cpu, gpu, core: rows_block(gpu),
    "gpu-missed": lambda cpu, gpu, core: missed_block(gpu),
    "core-machine": lambda cpu, gpu, core: machine_block(core),
    "core": lambda cpu, gpu, core: rows_block(core),
    "paper": lambda cpu, gpu, core: paper_block(),
    "scaling-rates": lambda cpu, gpu, core: scaling.rates_table(gpu, table),
    "scaling-amp": lambda cpu, gpu, core: scaling.amp_table(gpu, table),
    "scaling-rfa": lambda cpu, gpu, core: scaling.rfa_table(gpu, table),
}
