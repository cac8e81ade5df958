"""The command line as a user types it: most commands in this process, which saves the start, some in their own."""

import contextlib
import dataclasses
import io
import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import distributed
import pytest
import typer
from rich.console import Console
from toy_figures import FIGURE
from typer import rich_utils

from attnlab import cli, lab
from attnlab.cli import verdicts
from attnlab.common.figure import Figure
from attnlab.lab.claims import registration
from attnlab.lab.durations import DRAWING

ATTNLAB = Path(sys.executable).with_name("attnlab")


def process(*arguments, cwd=None):
    command = [str(ATTNLAB), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


def attnlab(*arguments, cwd="."):
    """What the command prints and its exit code; signals and logging of the tests are left as they are."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["attnlab", *map(str, arguments)]),
        mock.patch.object(cli, "end_on_signals"),
        mock.patch.object(logging.getLogger("attnlab"), "handlers", []),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    return subprocess.CompletedProcess(arguments, ended.value.code or 0, out.getvalue(), err.getvalue())


def cli_commands():
    """Names of all commands, with those of the groups."""
    for name, command in typer.main.get_command(cli.app).commands.items():
        yield from (f"{name} {inner}" for inner in getattr(command, "commands", {}))
        yield name


def test_the_module_is_the_command():
    asked = [sys.executable, "-m", "attnlab", "--version"]
    result = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert result.stdout == attnlab("--version").stdout == "0.1.0\n"


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """One real figure, run once."""
    folder = tmp_path_factory.mktemp("cli")
    result = attnlab("reproduce", "slr.manifold", "--store", folder / "s.sqlite", "--out", folder / "report")
    assert result.returncode == 0, result.stderr + result.stdout
    return folder, result.stdout


def test_reproduce_prints_the_verdict_and_the_report(reproduced):
    folder, output = reproduced
    assert "slr.manifold" in output
    assert "holds" in output
    assert str(folder / "report" / "index.html") in output.replace("\n", "")
    for kind in ("png", "pdf", "svg", "csv", "toml"):
        assert (folder / "report" / f"slr.manifold.{kind}").stat().st_size > 0
    claims = json.loads((folder / "report" / "claims.json").read_text())
    assert "slr.manifold" in {claim["id"] for claim in claims}
    assert all(claim["status"] == claim["registered"] == "holds" for claim in claims)


def test_reproduce_ends_with_the_ledger_by_paper_and_its_tally(reproduced):
    _, output = reproduced
    assert "Attention layers provably solve single-location regression (arXiv:2410.01537)" in output
    last = "4 claims: 4 hold, 0 fail, 0 undecided, 0 not measured; none differ from the registered verdict"
    assert output.splitlines()[-2] == last


def test_the_time_of_every_figure_is_told_before_it_starts(tmp_path):
    told = attnlab("reproduce", "slr", "--scale", "paper", "--dry-run", cwd=tmp_path).stdout
    assert re.search(r"slr.manifold: 3 cells, about \d+ s\n", told)
    assert re.search(r"\d+ cells of \d+ figures to compute, about [\d.]+ min on two cores\n$", told)


def test_a_dry_run_counts_what_the_store_lacks(reproduced):
    folder, _ = reproduced
    result = attnlab("reproduce", "slr.manifold", "--store", folder / "s.sqlite", "--dry-run", cwd=folder)
    assert result.stdout.endswith("every cell is in the store\n")


def test_the_ledger_alone_is_written_as_json(reproduced, tmp_path):
    folder, _ = reproduced
    result = attnlab("report", "--store", folder / "s.sqlite", "--ledger", tmp_path / "claims.json")
    assert result.returncode == 0, result.stderr
    content = json.loads((tmp_path / "claims.json").read_text())
    assert content["scale"] == "quick"
    assert {"slr.manifold", "slr.signs"} <= {entry["id"] for entry in content["claims"]}
    assert content["figures"]["slr.manifold"]["1"]["versions"][0]["attnlab"]


def test_confirm_runs_fresh_seeds_and_writes_both_verdicts(reproduced, tmp_path):
    folder, _ = reproduced
    result = attnlab("confirm", "slr.manifold", "--store", folder / "s.sqlite", "--ledger", tmp_path / "claims.json")
    assert result.returncode == 0, result.stderr + result.stdout
    assert "fresh seeds, 4 claims: " in result.stdout
    assert "of 4 claims that held, " in result.stdout
    entries = {e["id"]: e for e in json.loads((tmp_path / "claims.json").read_text())["claims"]}
    assert entries["slr.signs"]["value"] != entries["slr.signs"]["confirmation"]["value"]
    # what reproduce shows is not touched
    again = attnlab("report", "slr.manifold", "--store", folder / "s.sqlite", "--ledger", tmp_path / "first.json")
    assert again.returncode == 0
    first = {e["id"]: e for e in json.loads((tmp_path / "first.json").read_text())["claims"]}
    assert first["slr.signs"]["value"] == entries["slr.signs"]["value"]


def test_what_is_not_registered_is_not_confirmed(tmp_path, monkeypatch):
    monkeypatch.setattr(registration, "own_files", lambda name: {"slr": tmp_path / "none.toml"})
    result = attnlab("confirm", "slr.manifold", cwd=tmp_path)
    assert result.returncode == 2
    assert "only registered claims can be confirmed: slr.manifold is not registered" in result.stderr


def test_the_same_command_again_computes_nothing(reproduced):
    folder, _ = reproduced
    before = (folder / "report" / "slr.manifold.png").stat().st_mtime_ns
    result = process("reproduce", "slr.manifold", "--store", folder / "s.sqlite", "--out", folder / "report")
    assert result.returncode == 0
    assert "cells to compute" not in result.stdout
    assert (folder / "report" / "slr.manifold.png").stat().st_mtime_ns == before


def test_the_toml_beside_a_figure_runs_it_again(reproduced):
    folder, _ = reproduced
    result = attnlab(
        "run", folder / "report" / "slr.manifold.toml", "--store", folder / "s.sqlite", "--out", folder / "r2"
    )
    assert result.returncode == 0, result.stderr
    assert "cells to compute" not in result.stdout


def test_store_commands(reproduced, tmp_path):
    folder, _ = reproduced
    assert "slr.manifold" in attnlab("store", "info", folder / "s.sqlite").stdout
    assert attnlab("store", "verify", folder / "s.sqlite").returncode == 0
    exported = attnlab("store", "export", folder / "s.sqlite", "--csv", tmp_path / "t.csv")
    assert exported.returncode == 0
    assert (tmp_path / "t.csv").read_text().startswith("cell,figure,")
    assert attnlab("store", "merge", tmp_path / "m.sqlite", folder / "s.sqlite").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "slr.manifol"], "did you mean 'slr.manifold'"),
        (["reproduce", "slrr"], "did you mean 'slr'"),
        (["reproduce", "slr", "--scale", "papr"], "scale must be one of 'quick', 'paper'"),
        (["reproduce", "slr.manifold", "--shard", "5/4"], "shard must be i/n"),
        (["reproduce", "slr.manifold", "--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "only one of"),
        (["reproduce", "slr.manifold", "--scheduler", "tls://127.0.0.1:1"], "goes with a tls:// scheduler"),
        (["reproduce", "slr.manifold", "--scheduler", "tls://127.0.0.1:1", "--tls", "a,b,c"], "not there: a"),
        (["run", "slr.manifold", "--set", "dd=3"], "did you mean 'd'"),
        (["run", "slr.manifold", "--set", "d"], "--set takes name=value"),
        (["run", "slr.manifold", "--set", "d=abc"], "d must be a whole number, got 'abc'"),
        (["show", "slr"], "show takes a figure"),
        (["run", "slr.manifold", "--set", "seeds=5000", "--max-cells", "10"], "add --yes"),
        (["run", "absent.toml"], "cannot read absent.toml"),
        (["store", "info", "absent.sqlite"], "no store at absent.sqlite"),
        (["store", "export", "absent.sqlite"], "--csv FILE or --parquet FILE"),
    ],
)
def test_wrong_requests_end_with_one_line_and_code_2(arguments, message, tmp_path):
    result = attnlab(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_a_scheduler_that_is_not_there_is_said_in_one_line(tmp_path, monkeypatch):
    connect = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda *a, **options: connect(*a, **{**options, "timeout": "1s"}))
    result = attnlab("reproduce", "slr.manifold", "--scheduler", "tcp://127.0.0.1:9", cwd=tmp_path)
    assert result.returncode == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in result.stderr


def test_the_slurm_dry_run_prints_the_job_script(tmp_path):
    (tmp_path / "slurm.toml").write_text(
        'jobs = 4\ncores = 8\nmemory = "16GB"\nqueue = "long"\nwalltime = "02:00:00"\n'
    )
    result = attnlab("reproduce", "slr.manifold", "--slurm", "slurm.toml", "--dry-run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "#SBATCH -p long" in result.stdout
    assert "#SBATCH --cpus-per-task=8" in result.stdout
    (tmp_path / "slurm.toml").write_text("jobs = 4\n")
    assert "must set 'cores'" in attnlab("reproduce", "--slurm", "slurm.toml", cwd=tmp_path).stderr


def test_naming_a_figure_renews_it_in_the_report_of_an_earlier_run(reproduced):
    folder, _ = reproduced
    result = attnlab("reproduce", "rfa.complexity", "--store", folder / "s.sqlite", "--out", folder / "report")
    assert result.returncode == 0, result.stderr + result.stdout
    page = (folder / "report" / "index.html").read_text()
    assert 'id="slr.manifold"' in page
    assert 'id="rfa.complexity"' in page
    assert {claim["id"] for claim in json.loads((folder / "report" / "claims.json").read_text())} >= {
        "slr.manifold",
        "rfa.complexity-growth",
    }


def test_a_figure_without_its_extra_leaves_the_report_as_it_was(reproduced, monkeypatch):
    folder, _ = reproduced
    page = folder / "report" / "index.html"
    before = re.findall(r'<section class="figure[^>]* id="([^"]+)"', page.read_text())
    monkeypatch.setattr(Figure, "missing_extra", lambda figure: "nlp" if figure.name == "slr.probing" else None)
    result = attnlab("reproduce", "slr.probing", "--store", folder / "s.sqlite", "--out", folder / "report")
    assert result.returncode == 0, result.stderr + result.stdout
    assert "skipped slr.probing: it needs the extra, pip install 'attnlab[nlp]'" in result.stdout
    assert re.findall(r'<section class="figure[^>]* id="([^"]+)"', page.read_text()) == before != []


def test_only_fast_takes_the_systems_in_turn():
    figures = [
        dataclasses.replace(FIGURE, name=f"{system}.{i}", minutes={"quick": minutes})
        for system, times in {"aim": [0.1, 0.1, 0.1], "slr": [0.2, 0.3], "mha": [5.0]}.items()
        for i, minutes in enumerate(times)
    ]
    assert [f.name for f in cli.jobs.fastest(figures, "quick", 0.45 + 3 * DRAWING)] == ["aim.0", "aim.1", "slr.0"]


def test_changed_settings_show_numbers_and_no_verdict(tmp_path):
    result = attnlab("run", "slr.manifold", "--set", "n_steps=400", "--set", "d=20", "--out", "run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr + result.stdout
    assert "no claim is judged; n_steps and d changed" in result.stdout
    assert json.loads((tmp_path / "run" / "claims.json").read_text()) == []


def test_show_describes_a_figure():
    result = attnlab("show", "slr.manifold")
    assert result.returncode == 0, result.stderr
    for words in ("n_steps", "20000", "3 cells", "slr.invariant", "attnlab run slr.manifold --set NAME=VALUE"):
        assert words in result.stdout


@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["lst"]], ids=" ".join)
def test_no_color_means_no_escape_codes(arguments, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = process(*arguments)
    assert "\x1b" not in result.stdout + result.stderr != ""


@pytest.mark.parametrize("command", ["", *sorted(name for name in cli_commands() if not name.startswith("bench "))])
def test_the_help_fits_80_columns(command, monkeypatch):
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", 80)
    shown = attnlab(*command.split(), "--help").stdout
    assert not re.search(r"<(bool|list|str|int|float)", shown)
    assert max(map(len, shown.splitlines())) <= 80
    # no sentence is cut, and no column of help is so narrow that a sentence takes many lines
    assert "…" not in shown
    assert len(shown.splitlines()) < 75


@pytest.mark.parametrize("width", [80, 160])
def test_a_table_of_verdicts_can_be_read_at_any_width(width, monkeypatch):
    (verdict,) = lab.run(FIGURE).verdicts
    long = dataclasses.replace(verdict, claim=dataclasses.replace(verdict.claim, says="a sentence of many words " * 4))
    console = Console(width=width, record=True, file=io.StringIO())
    monkeypatch.setattr(verdicts, "console", console)
    console.print(verdicts._table("A paper", [long], recorded=False))
    shown = console.export_text().splitlines()
    assert max(map(len, shown)) <= width
    # a hundred characters of a sentence take a few lines and not ten
    assert sum("words" in line for line in shown) <= 4


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("re", {"reproduce", "report"}), ("reproduce slr.ma", {"slr.manifold"}), ("plan aim.T", {"aim.Task"})],
)
def test_tab_completes_commands_and_names(typed, offered, monkeypatch):
    words = f"attnlab {typed}"
    monkeypatch.setenv("_ATTNLAB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert set(process().stdout.split()) == offered


@pytest.mark.parametrize("typed", ["lst", "stor info", "store inf", "claims chek", "reproduce --scal paper"])
def test_a_typing_error_is_answered_with_a_suggestion(typed):
    result = attnlab(*typed.split())
    assert result.returncode == 2
    assert "Did you mean" in result.stderr or "Possible options: --scale" in result.stderr


def test_windows_is_refused_with_one_sentence(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match=r"^attnlab: the command line needs .* on Windows run it inside WSL$"):
        cli.main()


def test_explore_finds_the_store_of_reproduce(reproduced, tmp_path):
    folder, _ = reproduced
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "attnlab.sqlite").symlink_to(folder / "s.sqlite")
    (tmp_path / "results" / "attnlab.sqlite.arrays").symlink_to(folder / "s.sqlite.arrays")
    result = attnlab("explore", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^[1-9]\d* stored points? from results/attnlab.sqlite$", result.stdout, re.MULTILINE)
