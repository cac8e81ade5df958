"""Long theory calls speak, short ones and those of batch jobs do not."""

import time

import pytest

from attnlab.common import patience


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(patience, "SILENCE", 0.05)
    monkeypatch.setattr(patience, "TICK", 0.02)
    monkeypatch.setattr(patience, "interactive", lambda: True)
    monkeypatch.setattr(patience, "_watcher", None)


def test_a_long_call_shows_its_name_and_its_seconds_and_is_wiped_away(impatient, capsys):
    with patience.announced("aim.theory.mmse"), patience.announced("a part of it"):
        time.sleep(0.4)
    time.sleep(0.3)
    shown = capsys.readouterr().err
    assert "aim.theory.mmse is computing, 0 s" in shown
    assert "a part of it" not in shown
    assert shown.endswith(" \r")


def test_a_short_call_says_nothing(impatient, capsys):
    with patience.announced("aim.theory.mmse"):
        pass
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_batch_job_says_nothing(capsys, monkeypatch):
    monkeypatch.setattr(patience, "SILENCE", 0.0)
    monkeypatch.setattr(patience, "interactive", lambda: False)
    with patience.announced("aim.theory.mmse"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
