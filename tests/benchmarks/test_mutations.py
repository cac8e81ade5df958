"""The mutation checks: their targets exist, their changes are changes."""

import ast

import pytest

from benchmarks import mutations


@pytest.mark.parametrize("target", mutations.TARGETS, ids=lambda target: target.function)
def test_a_target_can_be_changed_and_has_tests(target):
    found = list(mutations.mutants(target))
    assert found
    function = mutations.function_of(ast.parse((mutations.ROOT / target.file).read_text()), target.function)
    assert all(mutant.source != mutations.plain(function) for mutant in found)
    assert len({mutant.source for mutant in found}) == len(found)
    assert all((mutations.ROOT / test).exists() for test in target.tests)


def test_a_few_changes_are_spread_over_the_function():
    found = list(mutations.mutants(next(t for t in mutations.TARGETS if t.function == "empirical_bernstein")))
    few = mutations.spread(found, 5)
    assert len(few) == 5
    assert few[0] == found[0]
    assert [found.index(mutant) for mutant in few] == sorted({found.index(mutant) for mutant in few})
    assert mutations.spread(found, 10_000) == found


def test_the_page_names_what_was_not_noticed():
    target = mutations.TARGETS[0]
    first, second = list(mutations.mutants(target))[:2]
    kept = {"what": "a bound", "run": "today", "outcomes": mutations.entries([(first, False), (second, True)])}
    text = mutations.page({target.name: kept})
    assert "Of 2 changes 1 made a test fail." in text
    assert "| 2 | 1 | today |" in text
    assert f"| {second.line} | `{second.change}` |" in text
    assert f"| {first.line} | `{first.change}` |" not in text
    assert f"Not run yet: `{mutations.TARGETS[1].name}`, " in text
