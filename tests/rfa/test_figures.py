import pytest
from matplotlib.figure import Figure as Canvas

from attnlab.common.records import Records
from attnlab.rfa.figures import FIGURES

# Smallest settings that still run every line of a figure.
SMALL = {
    "rfa.keys": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 128, "n_test": 40, "seeds": 2},
    "rfa.correlations": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 128, "n_test": 40, "seeds": 2},
    "rfa.rotation": {"heads": 8, "d": 6, "n_keys": 3, "n": 64, "n_test": 40, "seeds": 2},
    "rfa.staircase": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 128, "n_test": 40, "seeds": 2},
    "rfa.heads": {"d": 6, "n_keys": 3, "n": 64, "n_test": 40, "heads": [8, 16, 0], "seeds": 1},
    "rfa.bias-scale": {"heads": 8, "d": 6, "n_keys": 3, "n": 64, "n_test": 40, "seeds": 1},
    "rfa.scores": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 64, "n_test": 40, "seeds": 1},
    "rfa.key-count": {"heads": 8, "d": 6, "n": 64, "n_test": 40, "seeds": 1},
    "rfa.dimension": {"heads": 8, "d": [4, 8], "n_keys": 3, "n": 64, "n_test": 40, "seeds": 1},
    "rfa.complexity": {"d": [16, 32, 64]},
}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_a_small_run_is_drawn_and_decided(figure):
    small = figure.changed("quick", SMALL[figure.name])
    records = Records.of({**cell.params, **cell()} for cell in small.cells("quick"))
    assert isinstance(small.draw(records), Canvas)
    verdicts = small.decide(records, "quick")
    assert len(verdicts) == len(figure.claims) > 0


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_every_claim_says_where_its_threshold_comes_from(figure):
    assert set(figure.scales) == {"quick", "paper"}
    for claim in figure.claims:
        assert claim.because
        assert claim.note or all(status == "holds" for status in claim.expect.values())


def test_claims_have_unique_names():
    names = [claim.id for figure in FIGURES for claim in figure.claims]
    assert len(names) == len(set(names))


def test_a_cell_depends_on_its_parameters_and_seed_only():
    figure = next(f for f in FIGURES if f.name == "rfa.staircase").changed("quick", SMALL["rfa.staircase"])
    first, second = figure.cells("quick")
    assert first() == first()
    assert first() != second()
