"""``attnlab theory`` as typed."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.cli.theory import parse
from attnlab.lab.errors import UsageError
from attnlab.lab.formulas.formula import formulas

ALL = {name: formula for name, formula in formulas().items() if not formula.beyond}
# long iterations or compiled programs: seconds each
SLOW = {
    "aim.deep_state_evolution",
    "aim.deep_strength",
    "aim.layer_strengths",
    "aim.weak_recovery_time",
    "rfa.sampled_learning_curve",
    "slr.erm_state_evolution",
    "slr.gradient_descent",
    "slr.hard_phase",
    "smi.positional_semantic",
}


def attnlab(*words):
    return CliRunner().invoke(app, ["theory", *map(str, words)])


def typed(formula):
    return [word for name, value in formula.example().items() for word in (f"--{name}", value)]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in ALL])
def test_every_theory_function_answers_its_own_example(name):
    result = attnlab(name, *typed(ALL[name]), "--json")
    assert result.exit_code == 0, result.exception
    answer = json.loads(result.stdout)
    assert answer["formula"] == name
    assert answer["status"] == ALL[name].status
    assert len(answer["rows"]) == 1


def test_alone_it_lists_every_function_with_its_status():
    lines = attnlab().stdout.splitlines()
    for name, formula in formulas().items():
        assert any(line.split()[:2] == [name, formula.status] for line in lines), name
    of_one = attnlab("mha").stdout
    assert "mha.cramer_rao" in of_one
    assert "aim.mmse" not in of_one


@pytest.mark.parametrize("name", ["aim.mmse", "rfa.complexity", "slr.gradient_descent"])
def test_help_shows_parameters_formula_source_and_an_example_that_works(name):
    shown = attnlab(name, "--help").stdout
    assert all(f"--{parameter.name}" in shown for parameter in ALL[name].parameters)
    assert ALL[name].source.split(";")[0][:40] in " ".join(shown.split())
    example = shown.split("example: attnlab theory ")[1].strip()
    assert example == " ".join([name, *typed(ALL[name])]).replace("[", "'[").replace("]", "]'")


def test_what_a_command_line_cannot_give_is_said_in_its_help():
    assert "call this from Python" in attnlab("rfa.dimension_free_cost", "--help").stdout


def test_the_command_itself_has_help():
    shown = attnlab("--help").stdout
    assert "1:100:x12" in shown
    assert "--max-points" in shown


def test_the_table_says_what_was_varied_and_the_status():
    shown = attnlab("aim.mmse", "--alpha", "0.05:0.2:0.05", "--rho", "0.5").stdout
    assert "rho = 0.5" in shown
    assert shown.count("\n ") == 4
    assert "status: asymptotic" in shown


def test_csv_and_json_go_to_files_or_to_the_terminal(tmp_path):
    request = ["aim.mmse", "--alpha=0.05:0.2:0.05", "--rho", "0.5"]
    printed = list(csv.DictReader(io.StringIO(attnlab(*request, "--csv").stdout)))
    result = attnlab(*request, "--csv", tmp_path / "m.csv", "--json", tmp_path / "m.json")
    assert result.exit_code == 0
    assert list(csv.DictReader(io.StringIO((tmp_path / "m.csv").read_text()))) == printed
    rows = json.loads((tmp_path / "m.json").read_text())["rows"]
    assert [row["value"] for row in rows] == [float(row["value"]) for row in printed]
    assert {row["status"] for row in printed} == {"asymptotic"}


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_a_picture_is_written(kind, tmp_path):
    file = tmp_path / f"m.{kind}"
    result = attnlab("aim.recovery_threshold", "--rho", "0.1:2:n20", "--tokens", "2,3", "--plot", file)
    assert result.exit_code == 0, result.exception
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["aim.mms"], "did you mean 'aim.mmse'"),
        (["aim.mmse", "--alhpa", "1"], "did you mean 'alpha'"),
        (["aim.mmse", "--alpha", "0.1", "--rho", "-1"], r"rho must be a number in \(0, inf\), got -1.0"),
        (["aim.mmse", "--alpha", "0.1", "--rho", "1", "--channel", "sofmax"], "did you mean 'softmax'"),
        (["rfa.beta", "--r", "inf", "--s", "1"], "--r takes integers, got 'inf'"),
        (["rfa.beta", "--r", "1", "--s", "0:-nan:1"], "--s takes a number, a list"),
        (["aim.mmse", "--alpha", "0:inf:0.1", "--rho", "1"], "--alpha takes ranges with finite ends"),
        (["aim.mmse", "alpha", "1"], "expected --parameter value"),
        (["aim.mmse", "--alpha"], "--alpha needs a value"),
        (["aim.mmse", "--alpha", "1", "--alpha", "2"], "given twice"),
        (["aim.mmse", "--alpha", "0:1:0.01", "--rho", "1", "--max-points", "5"], "101 points"),
        (["aim.mmse", "--alpha", "1", "--rho", "1", "--max-points", "-5"], "--max-points must be"),
        (["aim.mmse", "--alpha", "1", "--rho", "1", "--csv", "absent/m.csv"], "--csv cannot be written: absent"),
        (["aim.mmse", "--alpha", "1,2", "--rho", "1", "--plot", "m.gif"], "ends in .png, .pdf, .svg"),
        (["aim.mmse", "--alpha", "1", "--rho", "1", "--plot", "m.png"], "--plot needs one or two"),
        (["aim.mmse", "--alpha", "1", "--rho", "1", "--show", "value"], "--show chooses"),
        (["aim.mmse", "--alpha", "1", "--rho", "1", "--csv", "--json"], "only one of --csv and --json"),
    ],
)
def test_a_wrong_request_says_what_is_allowed_and_computes_nothing(words, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said):
        CliRunner().invoke(app, ["theory", *words], catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_negative_numbers_are_values():
    assert parse(["slr.risk", "--kappa", "-0.5", "--n-steps=3"]).given == {"kappa": "-0.5", "n_steps": "3"}


def test_in_a_process_of_its_own_a_wrong_range_is_one_line_and_code_2():
    command = [Path(sys.executable).with_name("attnlab"), "theory", "aim.mmse", "--alpha", "1:2", "--rho", "1"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "start:end:step" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
