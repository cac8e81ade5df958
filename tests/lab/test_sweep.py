import pytest

from attnlab import lab
from attnlab.lab.errors import UsageError
from attnlab.lab.sweep import read

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
