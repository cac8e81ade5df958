"""Results as DataFrames and as a notebook shows them."""

import sys

import pytest
from toy_figures import FIGURE

from attnlab import lab
from attnlab.lab.errors import UsageError


@pytest.fixture(scope="module")
def result():
    return lab.run(FIGURE)


def test_the_table_of_a_figure_is_a_frame(result, tmp_path):
    lab.report([result], tmp_path)
    table = lab.load(tmp_path / "toy.mean.csv")
    assert set(table["kind"]) == {"points", "line"}
    simulated = table[table["source"] == "simulation"]
    assert simulated["x"].tolist() == [10, 100, 1000]
    assert (simulated["low"] < simulated["high"]).all()


def test_records_are_a_frame_with_parameters_and_results(result):
    frame = result.to_pandas()
    assert len(frame) == len(result.records) == 12
    assert {"n", "seed", "error", "code", "version"} <= set(frame.columns)


def test_a_notebook_shows_verdicts_and_picture(result):
    page = result._repr_html_()
    assert "<td>toy.1</td><td>holds</td>" in page
    assert 'src="data:image/png;base64,' in page
    assert repr(result) == "<toy.mean, quick scale, 12 cells: toy.1 holds>"


def test_without_pandas_the_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"attnlab\[pandas\]"):
        result.to_pandas()
