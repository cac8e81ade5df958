"""What a user adds, in a file or as an installed package, works like attnlab's own."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from typer.testing import CliRunner

from attnlab import lab, persist, rfa
from attnlab.cli import app
from attnlab.common.reference import Reference
from attnlab.common.systems import GROUP
from attnlab.lab import own, registry
from attnlab.lab.describe import name_of
from attnlab.lab.own import load
from attnlab.lab.request import spec

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULE = ["--module", str(EXAMPLES / "own.py")]


@pytest.fixture(autouse=True)
def _nothing_of_ones_own(monkeypatch):
    monkeypatch.setattr(own, "things", own.nothing())


def attnlab(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_file_adds_one_thing_of_every_kind():
    load(EXAMPLES / "own.py")
    assert all(own.things.values())
    assert set(own.things) == set(own.KINDS)


def test_a_figure_of_ones_own_is_reproduced_judged_and_reported(tmp_path):
    places = ["--store", tmp_path / "s.sqlite", "--out", tmp_path / "report"]
    printed = attnlab("reproduce", "own.linear", *MODULE, *places, "--quiet")
    assert "2 hold, 0 fail" in printed
    page = (tmp_path / "report" / "index.html").read_text()
    assert all(text in page for text in ("own.exact", "own.noise", "Least squares follows its exact risk"))
    assert (tmp_path / "report" / "own.linear.png").stat().st_size > 0
    own.things = own.nothing()
    assert "2 hold, 0 fail" in attnlab("report", "own", *MODULE, *places)
    own.things = own.nothing()
    again = attnlab("run", "own.linear", "--set", "task.d=4", *MODULE, *places, "--quiet")
    assert "own.linear: 60 cells" in again


def test_lists_and_theory_show_what_is_added():
    printed = attnlab("list", *MODULE)
    assert all(name in printed for name in ("own.linear", "own.Linear", "own.LeastSquares"))
    own.things = own.nothing()
    assert "0.26" in attnlab("theory", "own.risk", "--n", "200", *MODULE)


def test_a_part_of_a_law_is_named_in_a_request(tmp_path):
    load(EXAMPLES / "own.py")
    point = {"task": "rfa.Task", "task.target": "own.third_key", "learner": "rfa.AttentionKernelRidge", "n_train": 30}
    X, y = spec(point).build()[0].sample(5, 0)
    assert np.allclose(y, X[:, 3, 0])
    with pytest.raises(ValueError, match=r"did you mean 'own\.third_key'"):
        spec({**point, "task.target": "own.third_kay"})


def test_a_part_takes_parameters_in_a_table():
    @lab.add
    @dataclass(frozen=True)
    class Scaled:
        gain: float = 1.0

    assert own.part({"name": "own.Scaled", "gain": 2.0}).gain == 2.0
    assert own.part("own.Scaled").gain == 1.0
    assert own.part({"rest": 1}) == {"rest": 1}


def test_a_reference_stands_beside_and_plans():
    load(EXAMPLES / "own.py")
    found = lab.plan("own.Linear", 0.25, learners=["own.LeastSquares"], seeds=6)
    (need,) = found.needs
    assert need.theory.status == "exact"
    # the sizes are some tens: the interval over six seeds, and one size of the bisection
    assert need.measured.low / 1.1 <= need.theory.n <= need.measured.high * 1.1


def test_a_learner_of_ones_own_is_saved_once_it_is_added(tmp_path):
    load(EXAMPLES / "own.py")
    task = own.things["task"]["own.Linear"]()
    X, y = task.sample(50)
    learner = own.things["learner"]["own.LeastSquares"]().fit(X, y)
    persist.save(learner, tmp_path / "mine.npz")
    assert np.array_equal(persist.load(tmp_path / "mine.npz").predict(X), learner.predict(X))
    own.things["learner"].clear()
    with pytest.raises(persist.BadFile, match=r"own\.LeastSquares.*add the class with lab\.add"):
        persist.load(tmp_path / "mine.npz")
    with pytest.raises(TypeError, match=r"lab\.add"):
        persist.save(learner, tmp_path / "other.npz")


@pytest.mark.parametrize("item", [3, "word", object(), [BaseEstimator]])
def test_what_has_no_place_in_the_lab_is_refused(item):
    with pytest.raises(TypeError, match=r"lab\.add takes a task"):
        lab.add(item)


def test_a_claim_needs_a_figure_and_nothing_else_has_one():
    load(EXAMPLES / "own.py")
    _, claim = own.things["claim"]["own.exact"]
    with pytest.raises(ValueError, match="figure="):
        lab.add(claim)
    with pytest.raises(ValueError, match="figure="):
        lab.add(Reference("x", rfa.Task, "exact", lambda task, learner, n: 0.0), figure="own.linear")


def test_a_claim_of_ones_own_joins_a_figure_of_a_system():
    load(EXAMPLES / "own.py")
    _, claim = own.things["claim"]["own.exact"]
    lab.add(claim, figure="slr.manifold")
    (figure,) = registry.select(["slr.manifold"])
    assert claim in figure.claims


def test_a_figure_cannot_take_the_name_of_another():
    load(EXAMPLES / "own.py")
    figure = own.things["figure"]["own.linear"]
    own.things["figure"] = {"slr.manifold": figure}
    with pytest.raises(ValueError, match=r"the name of another: slr\.manifold"):
        registry.select(["slr"])


PACKAGE = EXAMPLES / "pool_system"
USE = """
import sys
from typer.testing import CliRunner
import attnlab
from attnlab import lab, persist, pool
from attnlab.cli import app
from attnlab.lab.describe import name_of

def attnlab_(*words):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output

out = sys.argv[1]
places = ["--store", out + "/s.sqlite", "--out", out + "/report"]
assert "pool.risk" in attnlab_("list")
printed = attnlab_("reproduce", "pool", *places, "--quiet")
assert "1 hold, 0 fail" in printed, printed
assert "pool.exact" in open(out + "/report/index.html").read()
assert "0.29878" in attnlab_("theory", "pool.risk", "--n", "50", "--d", "8")
assert name_of(pool.Task) == "pool.Task"
(need,) = lab.plan(pool.Task(d=8), 0.25, seeds=4).needs
assert need.theory is not None and need.reached
X, y = pool.Task(d=4).sample(40)
learner = pool.PooledLeastSquares().fit(X, y)
persist.save(learner, out + "/pool.npz")
assert (persist.load(out + "/pool.npz").predict(X) == learner.predict(X)).all()
print("all found")
"""


def test_a_whole_system_is_an_installed_package_and_touches_no_file_of_attnlab(tmp_path):
    # what an installer writes beside the package
    info = tmp_path / "site" / "attnlab_pool-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: attnlab-pool\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[attnlab.systems]\npool = attnlab_pool\n")
    (tmp_path / "site" / "attnlab_pool").symlink_to(PACKAGE / "attnlab_pool")
    paths = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
    command = [sys.executable, "-c", paths + USE, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "all found" in result.stdout, result.stderr + result.stdout


def test_the_entry_point_of_the_example_is_the_one_that_attnlab_reads():
    import tomllib

    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][GROUP] == {"pool": "attnlab_pool"}


def test_names_say_where_a_class_is_from():
    assert name_of(rfa.Task) == "rfa.Task"
    assert name_of(BaseEstimator) == "sklearn.BaseEstimator"
    assert name_of(type("Mine", (), {"__module__": "somewhere"})) == "own.Mine"
