import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from attnlab import lab
from attnlab.lab.errors import UsageError
from attnlab.lab.sweep import read
from attnlab.lab.toml import to_toml

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("sweep_*.toml"))

SWEEP = """
name = "linear-or-not"
n_train = [50, 200]
n_test = 200
seeds = 2

[task]
name = "slr.Task"
d = 6
L = [2, 4]

[[learner]]
name = "slr.LinearPredictor"

[[learner]]
name = "slr.NullPredictor"
"""


def write(tmp_path, text):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return path


def test_a_sweep_runs_every_learner_on_the_same_data(tmp_path):
    figure, scale = read(write(tmp_path, SWEEP))
    assert len(figure.cells(scale)) == 2 * 2 * 2 * 2
    result = lab.run(figure, scale)
    null = result.records.where(learner="slr.NullPredictor")
    # the null predictor says the mean of its training data at best: its error is the scale, up to sampling noise
    assert all(abs(row["relative_error"] - 1) < 0.2 for row in null)
    assert result.draw().axes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_train =", "n_trian =", "n_trian"),
        ("slr.Task", "slr.Tsk", "did you mean 'slr.Task'"),
        ("slr.LinearPredictor", "slr.LinearPredictr", "did you mean 'slr.LinearPredictor'"),
        ("d = 6", "dd = 6", "did you mean 'd'"),
        ("d = 6", "d = -6", "d must be"),
        ("seeds = 2", "seeds = 0", "seeds"),
        ("n_train = [50, 200]", "n_train = [50, 0]", "n_train"),
        ("n_train = [50, 200]", "", "give n_train or alpha"),
        ("n_train = [50, 200]", "alpha = [0.1, 0.2]", "does not know what alpha means"),
        (
            'name = "slr.LinearPredictor"',
            'name = "slr.LinearPredictor"\nridge = [0.1, -1.0]',
            "ridge must be a number in",
        ),
        ('name = "slr.LinearPredictor"', 'name = "aim.GradientDescent"', "aim.GradientDescent needs width to be set"),
        ('name = "linear-or-not"', 'name = "../etc"', "name"),
        ("[task]", "[task", "is not TOML"),
    ],
)
def test_a_wrong_sweep_is_refused_before_anything_runs(tmp_path, old, new, message):
    assert old in SWEEP
    with pytest.raises(UsageError, match=message):
        read(write(tmp_path, SWEEP.replace(old, new, 1)))


def test_a_figure_with_knobs_is_read(tmp_path):
    figure, scale = read(write(tmp_path, 'figure = "slr.manifold"\n[set]\nd = 100\nseeds = 2\n'))
    assert {cell.params["d"] for cell in figure.cells(scale)} == {100}
    with pytest.raises(UsageError, match="did you mean"):
        read(write(tmp_path, 'figure = "slr.manifold"\n[set]\ndd = 100\n'))


def test_theory_stands_beside_in_columns(tmp_path):
    result = lab.run(*read(write(tmp_path, SWEEP)))
    row = next(r for r in result.records if (r["learner"], r["task.L"]) == ("slr.LinearPredictor", 4))
    assert row["theory.null"] == pytest.approx(0.5)
    assert row["theory.Bayes"] < row["theory.best linear"] < row["theory.theory"]
    lines = [
        line for line in result.draw().axes[0].get_lines() if line.get_linestyle() == "-" and len(line.get_xdata())
    ]
    assert lines


def test_several_tasks_make_one_sweep(tmp_path):
    text = SWEEP.replace("[task]", "[[task]]").replace(
        "[[learner]]", '[[task]]\nname = "slr.Task"\nd = 9\nL = 2\nlaw = "max"\ngamma = 1.0\n\n[[learner]]', 1
    )
    figure, scale = read(write(tmp_path, text))
    assert len(figure.cells(scale)) == (2 + 1) * 2 * 2 * 2
    assert {cell.params["task.d"] for cell in figure.cells(scale)} == {6, 9}
    labels = lab.run(figure, scale).draw().axes[0].get_legend_handles_labels()[1]
    assert any("on slr.Task" in label for label in labels)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_request_of_a_sweep_runs_the_same_cells_again(path, tmp_path):
    figure, scale = read(path)
    again, _ = read(write(tmp_path, to_toml(figure, scale)))
    assert [cell.id for cell in again.cells(scale)] == [cell.id for cell in figure.cells(scale)]


def test_the_request_of_a_changed_sweep_has_the_change(tmp_path):
    figure, scale = read(write(tmp_path, SWEEP))
    changed = figure.changed(scale, {"seeds": 5, "task.d": 7})
    content = tomllib.loads(to_toml(changed, scale))
    assert content["seeds"] == 5
    assert content["task"][0]["d"] == 7


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_worked_example_runs_and_agrees_with_theory(path, tmp_path):
    attnlab = Path(sys.executable).with_name("attnlab")
    places = ["--store", str(tmp_path / "s.sqlite"), "--out", str(tmp_path / "out"), "--quiet"]
    subprocess.run([attnlab, "run", str(path), *places], check=True, timeout=300)
    figure, scale = read(path)
    records = lab.run(figure, scale, store=tmp_path / "s.sqlite").records
    spoken = [row for row in records if "theory.theory" in row]
    assert spoken
    # finite size, three seeds, and errors that pass through zero at a threshold: within a factor on average
    ratio = [row["mse"] / row["theory.theory"] for row in spoken if row["theory.theory"] > 0.05 * row["null"]]
    assert 0.8 < np.median(ratio) < 1.25
    assert re.search("theory", (tmp_path / "out" / f"{figure.name}.csv").read_text())
