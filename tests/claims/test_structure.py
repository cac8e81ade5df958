"""What every claim of every system must have, whatever it measures."""

import re

import pytest

from attnlab import lab
from attnlab.common.statistics import Statistic

CLAIMS = [(figure, claim) for figure in lab.figures().values() for claim in figure.claims]
AFTER_A_LOOK = re.compile(r"\bseen\b|prototype|first look|pilot run|earlier (runs|simulations)|simulations made before")


def test_ids_are_unique_and_name_their_system():
    ids = [claim.id for _, claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert all(claim.id.split(".")[0] == figure.name.split(".")[0] for figure, claim in CLAIMS)


@pytest.mark.parametrize("claim", [claim for _, claim in CLAIMS], ids=lambda claim: claim.id)
def test_a_claim_says_what_it_measures_and_why(claim):
    assert isinstance(claim.statistic, Statistic)
    assert "<lambda>" not in str(claim.statistic)
    assert " object at " not in str(claim.statistic)
    assert claim.source
    assert claim.because
    # a verdict other than *holds* that was predicted needs its reason
    assert claim.note or set(claim.registered.values()) <= {"holds"}


def after_a_look(claim):
    """Where a number from other data was registered before the figure ran, the claim says so."""
    return AFTER_A_LOOK.search(claim.because) and "before the figures were run" not in claim.because


@pytest.mark.parametrize("claim", [c for _, c in CLAIMS if after_a_look(c)], ids=lambda claim: claim.id)
def test_what_was_fixed_after_a_look_is_exploratory(claim):
    assert claim.kind == "exploratory"
