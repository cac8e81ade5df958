"""One specification: identity, seeds and columns come from it alone."""

import dataclasses
import itertools

import numpy as np
import pytest
from own_things import Echo, Shrinking
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from attnlab import lab, mha, rfa, slr
from attnlab.common.adapters import FlattenTokens
from attnlab.common.figure import Figure
from attnlab.common.prediction import Prediction
from attnlab.common.reference import Reference
from attnlab.common.stopping import ended
from attnlab.lab import registry
from attnlab.lab.contests.readings import ReadOut
from attnlab.lab.request import run_spec, spec
from attnlab.lab.spec import Seeds, Spec, Trials

TASK = slr.Task(d=6, L=3)
ROW = {"task": "slr.Task", "task.d": 6, "task.L": 3, "learner": "slr.LinearPredictor", "n_train": 20, "n_test": 50}


class Slow(Shrinking):
    """Says that it did not converge."""

    def fit(self, X, y):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            ended(self, converged=False, reason="max_iter reached", n_iter=7)
        return super().fit(X, y)


def test_all_parameters_are_columns_defaults_too():
    columns = Spec(TASK, slr.LinearPredictor(), 20).columns()
    for field in dataclasses.fields(TASK):
        assert f"task.{field.name}" in columns
    assert columns["learner.ridge"] == slr.LinearPredictor().ridge
    assert (columns["task"], columns["learner"]) == ("slr.Task", "slr.LinearPredictor")


def test_another_default_is_another_cell():
    class Sturdy(slr.LinearPredictor):
        def __init__(self, ridge=0.5):
            super().__init__(ridge)

    Sturdy.__name__, Sturdy.__module__ = "LinearPredictor", slr.LinearPredictor.__module__
    old, new = (Spec(TASK, learner(), 20).cell("x") for learner in (slr.LinearPredictor, Sturdy))
    assert old.params["learner"] == new.params["learner"]
    assert old.id != new.id


def test_a_name_a_type_and_an_object_are_the_same_cell():
    asked = [
        ROW,
        {**ROW, "task": slr.Task, "learner": slr.LinearPredictor},
        {"task": TASK, "learner": slr.LinearPredictor(), "n_train": 20, "n_test": 50},
    ]
    assert len({spec(point).cell("x").id for point in asked}) == 1


def test_learners_and_sizes_share_the_truth_and_replicates_do_not():
    first = Spec(TASK, slr.LinearPredictor(), 20)
    assert Spec(TASK, slr.NullPredictor(), 500).seeds == first.seeds
    others = [Spec(TASK, first.learner, 20, replicate=1), Spec(TASK, first.learner, 20, stream=2)]
    others.append(Spec(slr.Task(d=6, L=4), first.learner, 20))
    numbers = [number for other in (first, *others) for number in other.seeds]
    assert len(set(numbers)) == len(numbers) == 4 * len(Seeds._fields)


def test_a_record_can_be_made_again_by_hand():
    record = Spec(TASK, slr.SoftmaxAttention(), 40, 30).run()
    task = dataclasses.replace(TASK, seed=record["seed.plant"])
    learner = slr.SoftmaxAttention(random_state=record["seed.learner"]).fit(*task.sample(40, record["seed.data"]))
    X, y = task.sample(30, record["seed.test"])
    assert record["mse"] == pytest.approx(np.mean((learner.predict(X) - y) ** 2), rel=1e-9)


def test_a_seed_of_the_users_keeps_one_truth():
    kept = [Spec(slr.Task(d=6, L=3, seed=5), slr.NullPredictor(), 20, replicate=i).build()[0] for i in (0, 1)]
    assert kept[0] == kept[1]
    assert spec({**ROW, "task.seed": 0}).build()[0].seed == 0
    assert spec(ROW).build()[0].seed == spec(ROW).seeds.plant
    assert Spec(ReadOut(mha.Task(3, 2, 1)), Shrinking(), 20).build()[0].task.seed != 0


def test_convergence_travels_and_silence_is_not_success():
    assert Spec(Echo(), Slow(), 20).run()["converged"] is False
    assert Spec(Echo(), Slow(), 20).run()["stop_reason"] == "max_iter reached"
    assert Spec(Echo(), make_pipeline(FlattenTokens(), Ridge()), 20).run()["converged"] is None
    searched = GridSearchCV(slr.LinearPredictor(), {"ridge": [0.1, 1.0]}, cv=3)
    assert Spec(TASK, searched, 30).run()["converged"] in (True, None)


def test_a_pipeline_shows_the_parameters_of_its_steps():
    columns = Spec(Echo(), make_pipeline(FlattenTokens(), Ridge(alpha=3.0)), 20).columns()
    assert columns["learner.steps"] == ["flattentokens", "ridge"]
    assert (columns["learner.steps.ridge"], columns["learner.steps.ridge.alpha"]) == ("sklearn.Ridge", 3.0)


def test_large_arrays_enter_by_their_content():
    def planted(scale):
        task = mha.Task(5, 2, 1, planted=(scale * np.ones((1, 5, 5)), np.ones((1, 5, 5))))
        return Spec(task, mha.MomentLearner(), 20).cell("x").id

    assert planted(1.0) == planted(1.0) != planted(2.0)


def target(query, keys):
    return query[:, 0]


def test_functions_enter_by_their_name():
    columns = Spec(rfa.Task(target=target), rfa.AttentionKernelRidge(), 20).columns()
    assert any(value == f"{__name__}:target" for value in columns.values())
    with pytest.raises(TypeError, match="must have a name that another process can find"):
        Spec(rfa.Task(target=lambda query, keys: query[:, 0]), rfa.AttentionKernelRidge(), 20).columns()


def test_the_code_of_what_is_inside_counts():
    inside = Spec(Echo(), make_pipeline(FlattenTokens(), Shrinking()), 20)
    other = Spec(Echo(), make_pipeline(FlattenTokens(), Slow()), 20)
    assert inside.code != other.code
    assert inside.code == Spec(Echo(), make_pipeline(FlattenTokens(), Shrinking(c=2.0)), 99).code


def test_a_prediction_brings_its_error_and_whether_it_converged(monkeypatch):
    def error(task, learner, n):
        return Prediction(0.5, error=0.1, status="asymptotic", converged=False)

    monkeypatch.setattr(registry, "references", lambda: [Reference("theory", Echo, "asymptotic", error, Shrinking)])
    record = Spec(Echo(), Shrinking(), 20).run()
    assert (record["theory.theory"], record["theory.theory.error"]) == (0.5, 0.1)
    assert record["theory.theory.converged"] is False


def test_the_same_spec_gives_the_same_numbers_in_every_experiment(tmp_path):
    point = {"task": Echo(), "learner": Shrinking(), "n_train": 64, "n_test": 1000}
    alone = spec(point).run()
    planned = lab.plan(Echo(), 0.05, learners=[Shrinking()], seeds=1).records.where(n_train=64)
    assert planned.rows[0]["mse"] == alone["mse"]
    diagram = lab.phase_diagram(
        lab.Axis("learner.c", 10.0, 20.0),
        lab.Axis("n_train", 64, 128, whole=True),
        task=Echo,
        learner=Shrinking,
        start=(1, 1),
        depth=0,
        seeds=1,
    )
    assert diagram.records.where(**{"n_train": 64, "learner.c": 10.0}).rows[0]["mse"] == alone["mse"]


def test_a_grid_of_specs_is_a_grid():
    grid = Trials({**ROW, "n_train": [10, 20]}, seeds=2)
    assert [point["n_train"] for point in grid.points()] == [10, 20, 10, 20]
    assert type(grid.changed({"task.d": 8})) is Trials


REQUEST = {"task": "slr.Task", "task.d": 4, "task.L": 2, "learner": "slr.LinearPredictor", "n_test": 10}


def test_replicates_made_from_what_they_share_are_those_of_their_specs():
    grid = Trials({**REQUEST, "learner.ridge": [0.1, 1.0], "n_train": [5, 6]}, seeds=3)
    cells = list(toy_figure([grid]).cells("quick", stream=2))
    assert len({cell.id for cell in cells}) == len(cells) == 12
    for cell in cells:
        own = cell.run
        alone = dataclasses.replace(own, labels=dict(own.labels))
        whole = alone.cell("toy.trials")
        assert (cell.id, cell.code, cell.params) == (whole.id, whole.code, whole.params)
        assert own.seeds == alone.seeds
    assert len({cell.run.seeds for cell in cells}) == 3  # one for each replicate, the same for all settings


@pytest.mark.parametrize("many", [1, 10**6])
def test_settings_that_two_grids_share_are_one_cell_whatever_the_size(monkeypatch, many):
    monkeypatch.setattr("attnlab.common.figure.MANY", many)
    grids = [
        Trials({**REQUEST, "n_train": [5, 6]}, seeds=4),
        Trials({**REQUEST, "n_train": [6, 7]}, seeds=2),
        Trials({**REQUEST, "learner.ridge": 0.5, "n_train": 6}, seeds=2),
    ]
    cells = toy_figure(grids).cells("quick")
    assert len(cells) == len({cell.id for cell in cells}) == 4 + 4 + 2 + 2
    assert len(toy_figure(grids[1:]).cells("quick")) == 6


def test_a_setting_is_described_once_for_a_million_replicates(monkeypatch):
    described = []
    columns = Spec.columns
    monkeypatch.setattr(Spec, "columns", lambda self: described.append(self) or columns(self))
    cells = toy_figure([Trials({**REQUEST, "n_train": 5}, seeds=10**6)]).cells("quick")
    assert len(cells) == 10**6
    assert len({cell.id for cell in itertools.islice(cells, 1000)}) == 1000
    assert len(described) <= 2  # once for the length, once for the cells


def toy_figure(grids):
    return Figure("toy.trials", "", "", "", {"quick": grids}, run_spec, lambda records: None, shape=["n_train"])
