"""What the bench of waiting times measures."""

import pytest

from benchmarks import session, waiting


def test_a_command_is_timed_with_its_process_and_leaves_no_trace(tmp_path):
    seconds, cpu = waiting.spent(["--version"], str(tmp_path))
    assert seconds > 0
    assert cpu > 0
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_fails_is_not_a_fast_one(tmp_path):
    with pytest.raises(RuntimeError, match=r"reproduce nothing\.here failed: .*nothing\.here"):
        waiting.spent(["reproduce", "nothing.here"], str(tmp_path))


def test_it_is_part_of_the_bench():
    assert {"waiting", "bounds"} <= set(session.choose(""))
