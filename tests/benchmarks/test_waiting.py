"""What the bench of waiting times measures."""

from benchmarks import session, waiting


def test_a_command_is_timed_with_its_process_and_leaves_no_trace(tmp_path):
    seconds, cpu = waiting.spent(["--version"], str(tmp_path))
    assert seconds > 0
    assert cpu > 0
    assert list(tmp_path.iterdir()) == []


def test_it_is_part_of_the_bench():
    assert {"waiting", "bounds"} <= set(session.choose(""))
