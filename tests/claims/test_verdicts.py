"""Every figure of every system, run at quick scale: no verdict is the opposite of the registered one."""

import pytest

from attnlab import lab
from attnlab.lab import ledger


@pytest.mark.slow
@pytest.mark.parametrize("figure", lab.figures().values(), ids=lambda figure: figure.name)
def test_a_figure_does_not_contradict_what_is_registered(figure, tmp_path):
    if extra := figure.missing_extra():
        pytest.skip(f"needs the extra {extra}")
    result = lab.run(figure)
    assert not result.failed
    wrong = [f"{v.claim.id}: {v.status}, {ledger.interval(v)}" for v in result.verdicts if v.contradicts]
    absent = [v.claim.id for v in result.verdicts if v.status == "not measured" != v.registered]
    assert not absent
    assert not wrong
    result.draw().savefig(tmp_path / "picture.png", dpi=20)
