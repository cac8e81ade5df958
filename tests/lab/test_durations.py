"""Stated times of figures come from measured cells."""

import pytest
from toy_figures import FIGURE

from attnlab import lab
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
    missing = [name for name, figure in figures.items() if not figure.requires and name not in durations.measured()]
    assert not missing
    assert figures["mha.hard"].minutes["quick"] == durations.measured()["mha.hard"]["quick"]
