"""The arena: equal data, honest blanks, and users' own tasks and learners."""

import dataclasses
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from attnlab import aim, lab
from attnlab.common.arena import query
from attnlab.lab import own
from attnlab.lab.contests.contest import contest
from attnlab.lab.contests.entrants import arena_tasks
from attnlab.lab.contests.memory import measured
from attnlab.lab.spec import Spec


@pytest.fixture(autouse=True)
def _nothing_of_ones_own(monkeypatch):
    monkeypatch.setattr(own, "things", own.nothing())


class Mean(RegressorMixin, BaseEstimator):
    takes = "both"

    def fit(self, X, y):
        self.mean_ = y.mean(axis=0)
        return self

    def predict(self, X):
        return np.broadcast_to(self.mean_, (len(X), *np.shape(self.mean_)))


class Broken(Mean):
    def fit(self, X, y):
        raise ArithmeticError("it broke")


class Checksum(Mean):
    """Its only parameter is the sum of the examples it was given."""

    def fit(self, X, y):
        self.mean_ = float(X.sum() + y.sum())
        self.ridge_ = "a name that learners of the library use for something else"
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@dataclass(frozen=True)
class FirstToken:
    d: int = 3
    tokens: int = 2

    def sample(self, n, seed=0):
        X = np.random.default_rng(seed).standard_normal((n, self.tokens, self.d))
        return X, X[:, 0].sum(axis=1)


def test_all_learners_of_a_task_see_the_same_examples():
    class Same(Checksum):
        pass

    lab.add(Checksum), lab.add(Same)
    comparison = lab.arena(["slr.max", "aim.weight"], ["own.Checksum", "own.Same"], n=[5, 9], seeds=2)
    records = comparison.result.records
    for task in ("slr.max", "aim.weight"):
        first, second = (records.where(task=task, learner=name).column("mse") for name in ("own.Checksum", "own.Same"))
        assert np.array_equal(first, second)
        assert len(set(first)) == 4


def test_the_null_predictor_has_relative_error_one_on_every_task():
    lab.add(Mean)
    comparison = lab.arena(learners=["own.Mean"], n=[50], seeds=1)
    assert {row["task"] for row in comparison.result.records} == set(arena_tasks("quick"))
    assert np.allclose(comparison.result.records.column("relative_error"), 1)


def test_your_own_task_meets_the_library():
    lab.add(FirstToken), lab.add(Mean)
    comparison = lab.arena(["own.FirstToken"], ["linear", "own.Mean"], n=[600], seeds=2)
    # noiseless and linear; the mean of y is off by its standard error, 1/n of the variance
    assert comparison.error("own.FirstToken", "linear").value < 3 / 600
    assert comparison.error("own.FirstToken", "own.Mean").value == pytest.approx(1)


def test_an_edited_learner_is_computed_anew(tmp_path):
    lab.add(Mean)
    before = contest(["slr.max"], ["own.Mean"]).figure.cells("quick")[0]
    own.things["learner"]["own.Mean"] = Checksum  # the same name, other code
    after = contest(["slr.max"], ["own.Mean"]).figure.cells("quick")[0]
    assert before.code != after.code
    assert before.seed.entropy == after.seed.entropy


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"tasks": ["rfa.key_powr"]}, "did you mean 'rfa.key_power'"),
        ({"learners": ["kernal"]}, "did you mean 'kernel'"),
        ({"n": [1]}, "n must be an integer >= 2"),
        ({"seeds": 0}, "seeds must be an integer >= 1"),
        ({"scale": "quik"}, "did you mean 'quick'"),
        ({"tasks": ["mha.layer"], "learners": ["AMP"]}, "no learner can take any of these tasks .*not a tied head"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_runs(monkeypatch, request_, message):
    monkeypatch.setattr("attnlab.lab.engine.serial.compute", lambda cell: pytest.fail("computed"))
    with pytest.raises(ValueError, match=message):
        lab.arena(**request_)


def test_each_task_says_where_its_query_is():
    queries = {name: query(task) for name, (task, _) in arena_tasks("quick").items()}
    assert queries["rfa.key_power"] == "given"
    assert queries["aim.weight"] == "first"
    assert queries["slr.max"] == queries["mha.layer"] == "none"


def test_who_cannot_take_a_task_declines_with_a_reason():
    declined = contest(["aim.layer", "mha.layer"]).declined
    assert declined["aim.layer", "moments", 960] == "needs d ≤ 16"
    assert declined["aim.layer", "race", 60] == "needs n ≥ 288"
    assert declined["mha.layer", "AMP", 480] == "not a tied head"
    assert declined["mha.layer", "kernel", 480] == "one output per sequence"
    assert ("aim.layer", "AMP", 60) not in declined


def test_who_fails_is_shown_as_failed_and_the_others_go_on():
    lab.add(Mean), lab.add(Broken)
    comparison = lab.arena(["slr.max", "mha.layer"], ["own.Mean", "own.Broken", "AMP"], n=[20], seeds=2)
    status = {(row["task"], row["learner"]): row["status"] for row in comparison.table}
    assert status["slr.max", "own.Broken"] == "failed"
    assert status["slr.max", "own.Mean"] == "done"
    assert status["mha.layer", "AMP"] == "declined"
    assert "it broke" in comparison.result.failed[0].error
    texts = {text.get_text() for axes in comparison.draw().axes for text in axes.texts}
    assert {"failed", "1.000\n±0.000"} <= texts


def test_predictions_of_a_wrong_shape_fail_instead_of_broadcasting():
    class Column(Mean):
        def predict(self, X):
            return np.zeros((len(X), 1))

    lab.add(Column)
    comparison = lab.arena(["slr.max"], ["own.Column"], n=[20], seeds=1)
    assert "predictions must have shape (2000,), got (2000, 1)" in comparison.result.failed[0].error


def test_a_store_makes_the_second_run_compute_nothing_and_hold_no_times(tmp_path, monkeypatch):
    first = lab.arena(["slr.max"], ["linear"], n=[30], seeds=2, store=tmp_path / "s.sqlite")
    monkeypatch.setattr("attnlab.lab.engine.serial.compute", lambda cell: pytest.fail("computed again"))
    second = lab.arena(["slr.max"], ["linear"], n=[30], seeds=2, store=tmp_path / "s.sqlite")
    assert first.result.records == second.result.records
    assert not {"seconds", "memory"} & set(first.result.records.rows[0])
    assert first.table.rows[0]["seconds"] > 0


def test_one_attention_weight_is_as_hard_as_one_linear_measurement():
    # one index difference per sequence: the state evolution of one token with a linear output
    for alpha in (0.1, 0.25, 0.4):
        half = float(aim.theory.mmse(alpha / 2, 0.5, tokens=2))
        assert half == pytest.approx(float(aim.theory.mmse(alpha, 0.5, tokens=1, channel="linear")), abs=1e-6)
    task, _ = arena_tasks("quick")["aim.weight"]
    spec = Spec(task, Mean(), round(0.25 * task.d**2))
    references = spec.theory(task, Mean())
    error = float(aim.theory.mmse(0.125, 0.5, tokens=2))
    assert references["theory.Bayes"] == pytest.approx(float(aim.theory.generalization_error(error, 0.5)) / 4)


def test_theory_of_a_tuned_learner_is_that_of_its_chosen_ridge():
    comparison = lab.arena(["rfa.key_power", "slr.spiked"], ["kernel", "linear"], n=[256], seeds=2)
    for task, learner in (("rfa.key_power", "kernel"), ("slr.spiked", "linear")):
        (row,) = [r for r in comparison.table if (r["task"], r["learner"]) == (task, learner)]
        # two seeds of 256 examples scatter by a few per cent; the theory is asymptotic
        assert row["relative_error"] == pytest.approx(row["theory"], rel=0.2)


def test_the_report_holds_heat_map_curves_costs_and_the_table(tmp_path):
    lab.add(Mean)
    comparison = lab.arena(["slr.max", "mha.noisy"], ["linear", "own.Mean"], n=[20, 40], seeds=2)
    comparison = dataclasses.replace(comparison, memory={"linear": 3.0, "own.Mean": 1.0})
    page = comparison.report(tmp_path)
    assert all(name in page.read_text() for name in ("arena.curves", "arena.cost"))
    lines = (tmp_path / "arena_table.csv").read_text().splitlines()
    assert len(lines) == 1 + len(comparison.table)
    assert (tmp_path / "arena_scalar.csv").read_text().splitlines()[0] == "learner,slr.max"
    assert len(comparison.curves().axes) == 2
    assert comparison.result.draw().axes


def test_peak_memory_counts_what_a_cell_allocates(tmp_path):
    class Hungry(Mean):
        def fit(self, X, y):
            self.food_ = np.ones((80, 2**17)).sum()  # 80 MB, then gone
            return super().fit(X, y)

    lab.add(Hungry)
    comparison = lab.arena(["slr.max"], ["own.Hungry"], n=[20], seeds=1)
    memory = measured(comparison, tmp_path).memory["own.Hungry"]
    assert 75 < memory < 160
    assert measured(comparison, tmp_path).memory["own.Hungry"] == memory  # kept, not measured again


OWN_FILE = """
from sklearn.base import BaseEstimator, RegressorMixin
from attnlab import lab

@lab.add
class Zero(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.fitted_ = True
        return self
    def predict(self, X):
        return 0 * X[:, 0, 0]
"""


def command(*arguments):
    program = str(Path(sys.executable).with_name("attnlab"))
    return subprocess.run([program, "arena", *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_file_of_ones_own_enters_at_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(OWN_FILE)
    where = ["--store", tmp_path / "s.sqlite", "--out", tmp_path / "report", "--module", tmp_path / "mine.py"]
    what = ["--tasks", "slr.max", "--learners", "own.Zero,linear", "--n", "50", "--seeds", "2", "--workers", "2"]
    result = command(*what, *where)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "own.Zero" in result.stdout
    assert (tmp_path / "report" / "arena.cost.png").stat().st_size > 0
    again = command(*what, *where)
    assert "cells to compute" not in again.stdout


def test_the_command_line_refuses_wrong_names_in_one_line(tmp_path):
    result = command("--learners", "kernal", "--store", tmp_path / "s.sqlite")
    assert result.returncode == 2
    assert "did you mean 'kernel'" in result.stderr.replace("\n", " ")
    assert not (tmp_path / "s.sqlite").exists()


@pytest.mark.slow
def test_message_passing_on_the_layer_follows_its_bayes_error():
    n = round(0.1 * arena_tasks("paper")["aim.layer"].task.d ** 2)
    comparison = lab.arena(["aim.layer"], ["AMP"], n=[n], seeds=4, scale="paper")
    (row,) = [row for row in comparison.table if row["status"] == "reference"]
    error = comparison.error("aim.layer", "AMP")
    # d = 48: finite-size shifts of the estimation error are 2/d at d = 60, 120, 240 (tests/aim), 4 % of the null here
    assert abs(error.value - row["relative_error"]) < (error.high - error.low) / 2 + 0.04
