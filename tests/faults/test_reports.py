"""Bad cells and bad requests: one clear line, a failed row at most, and no lost work."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from attnlab import lab
from attnlab.cli import app
from attnlab.common.drawing import panels
from attnlab.common.figure import Figure, Grid
from attnlab.lab.errors import LabError, StoreUnwritable, UsageError
from attnlab.lab.page import report
from attnlab.lab.spec import Trials
from attnlab.lab.sweep import read

UNSTORABLE = {
    "object": lambda: object(),
    "objects": lambda: np.array([object()]),
    "set": lambda: {1, 2},
    "deep": lambda: _deep(),
    "exit": lambda: (_ for _ in ()).throw(SystemExit(3)),
    "surrogate": lambda: (_ for _ in ()).throw(ValueError("\ud800")),
    "marker": lambda: {"__array__": "a0"},
}


def _deep():
    found = []
    for _ in range(5000):
        found = [found]
    return found


def run_cell(params, seed):
    return {"y": 1.0, "value": UNSTORABLE[params["kind"]]() if params["kind"] in UNSTORABLE else params["kind"]}


def draw(records):
    return panels()[0]


def figure(**changes):
    grid = Grid({"kind": ["fine", *UNSTORABLE]})
    return dataclasses.replace(
        Figure("toy.bad", "Bad", "none", "Nothing.", {"quick": [grid]}, run_cell, draw), **changes
    )


def test_what_cannot_be_stored_is_a_failed_row_and_the_others_go_on(tmp_path, tried):
    result = lab.run(figure(), store=tmp_path / "s.sqlite")
    assert len(result.records) == 1
    assert len(result.failed) == len(UNSTORABLE)
    assert all(cell.error for cell in result.failed)
    tried(
        "records that cannot be stored (objects, endless nesting, SystemExit...)",
        f"{len(UNSTORABLE)} of {len(UNSTORABLE)} failed rows; the others go on",
    )


def arrays_cell(params, seed):
    return {"file": np.arange(3.0), "args": np.eye(2), "inside": {"file": np.ones(1)}, "allow_pickle": np.zeros(2)}


def test_arrays_may_have_any_name():
    result = lab.run(figure(run=arrays_cell, scales={"quick": [Grid({})]}))
    (row,) = result.records
    assert np.array_equal(row["file"], np.arange(3.0))
    assert np.array_equal(row["inside"]["file"], np.ones(1))
    assert np.array_equal(row["allow_pickle"], np.zeros(2))


def broken_drawing(records):
    canvas, ((plot,),) = panels()
    plot.set(xlabel=r"$\frac{1}$")
    return canvas


def test_a_drawing_that_fails_costs_the_picture_only(tmp_path, caplog):
    result = lab.run(figure(draw=broken_drawing))
    page = report([result], tmp_path / "out")
    (message,) = [record.getMessage() for record in caplog.records if "cannot be drawn" in record.getMessage()]
    assert "toy.bad cannot be drawn" in message
    assert "\n" not in message
    assert "cannot be drawn" in page.read_text()


def test_a_deleted_picture_is_drawn_again(tmp_path):
    result = lab.run(figure())
    report([result], tmp_path)
    for kind in ("png", "csv"):
        (tmp_path / f"toy.bad.{kind}").unlink()
        report([result], tmp_path)
        assert (tmp_path / f"toy.bad.{kind}").exists()


def test_an_export_that_cannot_be_written_is_one_line(tmp_path):
    path = tmp_path / "s.sqlite"
    lab.run(figure(), store=path)
    for options in (["--csv", str(tmp_path)], ["--csv", str(tmp_path / "no" / "t.csv")], ["--parquet", str(tmp_path)]):
        result = CliRunner().invoke(app, ["store", "export", str(path), *options])
        assert isinstance(result.exception, StoreUnwritable), result.output
        assert "\n" not in str(result.exception)


SWEEP = """
name = "t"
n_train = {n_train}
n_test = 20
[task]
name = "slr.Task"
d = 4
L = 2
[[learner]]
name = "slr.LinearPredictor"
{extra}
"""


def sweep_file(path, n_train="[10, 20]", extra=""):
    file = path / "t.toml"
    file.write_text(SWEEP.format(n_train=n_train, extra=extra))
    return file


@pytest.mark.parametrize("n_train", ["[]", "[true]", '"5"', "true", "[0]", "5.0", '["5"]'])
def test_a_wrong_size_is_refused_by_name(tmp_path, n_train):
    with pytest.raises(UsageError, match="n_train"):
        read(sweep_file(tmp_path, n_train))


@pytest.mark.parametrize("extra", ["ridge = []", "seeds = 5"])
def test_an_empty_axis_or_unknown_parameter_is_refused(tmp_path, extra):
    with pytest.raises(UsageError, match=r"ridge|seeds"):
        read(sweep_file(tmp_path, extra=extra))


def test_a_file_that_nests_three_thousand_deep_is_refused(tmp_path):
    file = tmp_path / "t.toml"
    file.write_text("x = " + "[" * 3000 + "]" * 3000)
    with pytest.raises(UsageError, match="nests"):
        read(file)
    with pytest.raises(UsageError):
        CliRunner().invoke(app, ["run", "slr.manifold", "--set", f"d={'[' * 3000}"], catch_exceptions=False)


def test_an_axis_of_one_learner_only_is_drawn_from_what_there_is(tmp_path):
    extra = 'ridge = [0.1, 1.0, 10.0]\n[[learner]]\nname = "slr.OraclePredictor"\n'
    result = lab.run(read(sweep_file(tmp_path, extra=extra))[0], store=tmp_path / "s.sqlite")
    assert not result.failed
    assert result.draw().axes
    assert report([result], tmp_path / "out").exists()
    assert (tmp_path / "out" / "sweep.t.png").exists()


@pytest.mark.parametrize("seeds", [1_000_000_000, 300_000])
def test_a_grid_beyond_the_limit_is_refused_before_it_is_built(tmp_path, monkeypatch, seeds):
    file = tmp_path / "t.toml"
    file.write_text(f"seeds = {seeds}\n" + sweep_file(tmp_path).read_text())
    for kind, name in ((Grid, "points"), (Grid, "cells"), (Trials, "cells")):
        monkeypatch.setattr(kind, name, lambda *arguments: pytest.fail("built"))
    with pytest.raises((UsageError, LabError), match=rf"{2 * seeds} cells, more than --max-cells"):
        CliRunner().invoke(app, ["run", str(file)], catch_exceptions=False)


@pytest.mark.parametrize(("seeds", "most"), [(1_000_000_000, 2000), (500_000, 10**6)])
def test_a_sweep_of_any_size_is_counted_within_a_second(tmp_path, seeds, most):
    """CPU seconds of a new process until the number of cells is refused or accepted."""
    file = tmp_path / "t.toml"
    file.write_text(f"seeds = {seeds}\n" + sweep_file(tmp_path).read_text())
    program = (
        "import sys, time\nfrom attnlab import cli\nfrom attnlab.lab.sweep import read\n"
        "def accept(name, size):\n    print(size <= int(sys.argv[2]), time.process_time(), *sys.modules)\n"
        "    sys.exit()\n"
        "read(sys.argv[1], accept=accept)"
    )
    command = [sys.executable, "-c", program, str(file), str(most)]
    accepted, seconds, *modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert accepted == str(2 * seeds <= most)
    assert float(seconds) < 1
    assert not {"sklearn", "matplotlib", "jax"} & set(modules)


def test_a_sweep_is_read_with_the_systems_it_names(tmp_path):
    """Importing all of them would take longer than reading a sweep of any size."""
    program = "import sys; from attnlab.lab.sweep import read; read(sys.argv[1]); print(*sys.modules)"
    command = [sys.executable, "-c", program, str(sweep_file(tmp_path))]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "attnlab.slr.task" in modules
    assert not [name for name in modules if name.startswith(("attnlab.aim.", "attnlab.mha.", "attnlab.rfa."))]
