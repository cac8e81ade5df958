"""Stated times of figures come from measured cells."""

import dataclasses
import importlib
import json
from pathlib import Path

import pytest
from toy_figures import FIGURE

from attnlab.common.systems import systems
from attnlab.lab import durations, registry

DATA = Path(__file__).parents[2] / "docs" / "data"


def is_measured(name, scale):
    return isinstance(durations.stated().get(name, {}).get(scale), int | float)


@pytest.fixture
def renewed(tmp_path, monkeypatch):
    """What the file of a system says after a ledger was brought in, from what it said before."""

    def bring(before, seconds):
        file, ledger = tmp_path / "durations.json", tmp_path / "claims.json"
        file.write_text(json.dumps({"slr.manifold": before}))
        ledger.write_text(json.dumps({"scale": "paper", "figures": {"slr.manifold": {"1": {"seconds": seconds}}}}))
        monkeypatch.setattr(durations, "own_files", lambda name: {"slr": file})
        durations.stated.cache_clear()
        durations.main(str(ledger))
        return json.loads(file.read_text())["slr.manifold"]

    yield bring
    durations.stated.cache_clear()


def test_the_seconds_of_a_ledger_become_minutes_on_two_cores(renewed):
    assert renewed({"quick": 0.1, "paper": "about 9"}, 240) == {"quick": 0.1, "paper": 2.0}
    assert renewed({}, 0) == {"paper": durations.SHORTEST}


def test_a_measured_time_is_replaced_by_a_shorter_one_only(renewed):
    assert renewed({"paper": 1.5}, 240) == {"paper": 1.5}
    assert renewed({"paper": 2.5}, 240) == {"paper": 2.0}


@pytest.mark.parametrize("runs", [{"2": {"seconds": 5}}, {"1": {"seconds": 5, "devices": ["NVIDIA H200", "cpu"]}}])
def test_a_confirmation_and_a_run_on_an_accelerator_say_nothing_of_two_cores(runs):
    assert durations.on_two_cores(runs) is None


def test_stated_times_are_not_above_those_of_the_ledgers():
    for scale in ("quick", "paper"):
        ledger = json.loads((DATA / f"claims_{scale}.json").read_text())
        for name, runs in ledger["figures"].items():
            if (limit := durations.on_two_cores(runs)) is not None:
                assert durations.stated()[name][scale] <= limit + 0.005, name


def test_every_figure_that_runs_without_extras_states_a_measured_time():
    figures = registry.figures()
    missing = [n for n, f in figures.items() if not f.requires and not is_measured(n, "quick")]
    assert not missing
    assert figures["mha.hard"].minutes["quick"] == durations.stated()["mha.hard"]["quick"]


def test_a_file_replaces_what_a_figure_states_and_an_estimate_says_so(monkeypatch):
    assert durations.with_stated(FIGURE).minutes == {}
    file = {FIGURE.name: {"quick": 0.5, "paper": "about 90"}}
    monkeypatch.setattr(durations, "stated", lambda: file)
    own = dataclasses.replace(FIGURE, minutes={"quick": 7.0, "other": 3.0})
    assert durations.with_stated(own).minutes == {"quick": 0.5, "paper": 90.0, "other": 3.0}
    assert is_measured(FIGURE.name, "quick")
    assert not is_measured(FIGURE.name, "paper")


def test_no_figure_states_a_time_that_its_system_states():
    rooms = [importlib.import_module(f"{package}.figures") for package in systems().values()]
    assert not [figure.name for room in rooms for figure in room.FIGURES if figure.minutes]
