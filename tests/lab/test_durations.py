"""Stated times of figures come from measured cells."""

import dataclasses
import importlib

import pytest
from toy_figures import FIGURE

from attnlab import lab
from attnlab.common.systems import systems
from attnlab.lab import durations, registry
from attnlab.lab.store import Store


def test_the_minutes_of_a_figure_are_those_of_its_cells_on_two_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(durations, "SHORTEST", 0.0)
    lab.run(FIGURE, store=tmp_path / "s.sqlite")
    with Store(tmp_path / "s.sqlite") as store:
        seconds = sum(row.seconds for row in store.rows(FIGURE.name))
        assert durations.minutes(FIGURE, "quick", store) == pytest.approx(seconds / 120, abs=0.005)
        assert durations.minutes(registry.figures()["slr.manifold"], "quick", store) is None


def test_every_figure_that_runs_without_extras_states_a_measured_time():
    figures = registry.figures()
    missing = [n for n, f in figures.items() if not f.requires and not durations.is_measured(n, "quick")]
    assert not missing
    assert figures["mha.hard"].minutes["quick"] == durations.stated()["mha.hard"]["quick"]


def test_a_file_replaces_what_a_figure_states_and_an_estimate_says_so(monkeypatch):
    assert durations.with_stated(FIGURE).minutes == {}
    file = {FIGURE.name: {"quick": 0.5, "paper": "about 90"}}
    monkeypatch.setattr(durations, "stated", lambda: file)
    own = dataclasses.replace(FIGURE, minutes={"quick": 7.0, "other": 3.0})
    assert durations.with_stated(own).minutes == {"quick": 0.5, "paper": 90.0, "other": 3.0}
    assert durations.is_measured(FIGURE.name, "quick")
    assert not durations.is_measured(FIGURE.name, "paper")


def test_no_figure_states_a_time_that_its_system_states():
    rooms = [importlib.import_module(f"{package}.figures") for package in systems().values()]
    assert not [figure.name for room in rooms for figure in room.FIGURES if figure.minutes]
