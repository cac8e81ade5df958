"""Every figure of every system, run at quick scale: each verdict is the registered one, and the picture is drawn."""

import pytest

from attnlab import lab
from attnlab.lab import ledger


@pytest.mark.slow
@pytest.mark.parametrize("figure", lab.figures().values(), ids=lambda figure: figure.name)
def test_a_figure_decides_as_registered(figure, tmp_path):
    if extra := figure.missing_extra():
        pytest.skip(f"needs the extra {extra}")
    result = lab.run(figure)
    assert not result.failed
    wrong = [f"{v.claim.id}: {v.status}, {ledger.interval(v)}" for v in result.verdicts if not v.as_registered]
    assert not wrong
    result.draw().savefig(tmp_path / "picture.png", dpi=20)
