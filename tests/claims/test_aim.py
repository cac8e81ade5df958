"""Figures of attention-indexed models: every claim comes out as recorded."""

import pytest

from attnlab.aim.figures import FIGURES
from attnlab.common.records import Records

THEORY_ONLY = ("aim.hardmax_small_width",)


def verdicts(figure, scale="quick"):
    records = Records.of({**cell.params, **cell()} for cell in figure.cells(scale))
    assert figure.draw(records).axes
    return figure.decide(records, scale)


@pytest.mark.parametrize("figure", [f for f in FIGURES if f.name in THEORY_ONLY], ids=lambda f: f.name)
def test_theory_claims_come_out_as_registered(figure):
    assert all(verdict.as_registered for verdict in verdicts(figure))
