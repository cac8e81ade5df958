"""Figures of attention-indexed models: every claim comes out as recorded."""

import pytest

from attnlab.aim.figures import FIGURES
from attnlab.common.records import Records

THEORY_ONLY = ("aim.hardmax_small_width",)


def verdicts(figure, scale="quick"):
    records = Records.of({**cell.params, **cell()} for cell in figure.cells(scale))
    assert figure.draw(records).axes
    return figure.decide(records, scale)


def test_claims_have_ids_of_their_own():
    ids = [claim.id for figure in FIGURES for claim in figure.claims]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("aim.") for name in ids)


@pytest.mark.parametrize("figure", [f for f in FIGURES if f.name in THEORY_ONLY], ids=lambda f: f.name)
def test_theory_claims_come_out_as_registered(figure):
    assert all(verdict.as_registered for verdict in verdicts(figure))


@pytest.mark.slow
@pytest.mark.parametrize("figure", [f for f in FIGURES if f.name not in THEORY_ONLY], ids=lambda f: f.name)
def test_claims_come_out_as_registered(figure):
    for verdict in verdicts(figure):
        assert verdict.as_registered, (verdict.claim.id, verdict.status, verdict.estimate)
