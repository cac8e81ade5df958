import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from attnlab.common.records import Records
from attnlab.common.seeds import seed_sequence
from attnlab.rfa.backend import Blas
from attnlab.rfa.figures import FIGURES
from attnlab.rfa.figures.learning import run
from attnlab.rfa.figures.learning_claims import sample_ratio
from attnlab.rfa.figures.theory_claims import theory_claims
from attnlab.rfa.task import Task
from attnlab.rfa.theory import learning_curve, sampled

# Smallest settings that still run every line of a figure.
SMALL = {
    "rfa.keys": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 128, "n_test": 40, "seeds": 2},
    "rfa.correlations": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 128, "n_test": 40, "seeds": 2},
    "rfa.rotation": {"heads": 8, "d": 6, "n_keys": 3, "n": 64, "n_test": 40, "seeds": 2},
    "rfa.staircase": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 128, "n_test": 40, "seeds": 2},
    "rfa.heads": {"d": 6, "n_keys": 3, "n": 64, "n_test": 40, "heads": [8, 16, 0], "seeds": 1},
    "rfa.heads_needed": {"d": 8, "n_keys": 3, "n": [16, 32], "n_test": 40, "excess": 1.0, "seeds": 2},
    "rfa.bias-scale": {"heads": 8, "d": 6, "n_keys": 3, "n": 64, "n_test": 40, "seeds": 1},
    "rfa.scores": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 64, "n_test": 40, "seeds": 1},
    "rfa.key-count": {"heads": 8, "d": 6, "n": 64, "n_test": 40, "seeds": 1},
    "rfa.dimension": {"heads": 8, "d": [4, 8], "n_keys": 3, "n": 64, "n_test": 40, "seeds": 1},
    "rfa.complexity": {"d": [16, 32, 64]},
    "rfa.bounds": {"heads": 8, "d": 6, "n_keys": 3, "n_max": 128, "n_test": 40, "seeds": 2},
}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_a_small_run_is_drawn_and_decided(figure, monkeypatch):
    # Samples that are as small as the runs stand for the population.
    monkeypatch.setattr(sampled, "SMALLEST", 128)
    small = figure.changed("quick", SMALL[figure.name])
    records = Records.of({**cell.params, **cell()} for cell in small.cells("quick"))
    assert isinstance(small.draw(records), Canvas)
    verdicts = figure.decide(records, "quick")
    # what a small run lacks is a setting, never a column or a number
    absent = [v for v in verdicts if v.estimate is None]
    assert not [v.reason for v in absent if not v.reason.startswith("no data: no finished cell")]
    assert all(np.isfinite(v.estimate.value) for v in verdicts if v not in absent)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_every_claim_says_where_its_threshold_comes_from(figure):
    assert set(figure.scales) == {"quick", "paper"}
    for claim in figure.claims:
        assert claim.because
        assert claim.note or all(status == "holds" for status in claim.registered.values())


def test_claims_have_unique_names():
    names = [claim.id for figure in FIGURES for claim in figure.claims]
    assert len(names) == len(set(names))


def test_a_cell_depends_on_its_parameters_and_seed_only():
    figure = next(f for f in FIGURES if f.name == "rfa.staircase").changed("quick", SMALL["rfa.staircase"])
    first, second = figure.cells("quick")
    assert first() == first()
    assert first() != second()


def test_all_targets_and_sizes_of_a_cell_share_one_gram_matrix(monkeypatch):
    updates, add_gram = [], Blas.add_gram
    monkeypatch.setattr(Blas, "add_gram", lambda *a: updates.append(a[1].shape) or add_gram(*a))
    settings = {"model": "rfa", "heads": 300, "d": 4, "n_keys": 3, "n_max": 256, "n_test": 20}
    rows = run(("f1_p1", "f1_p2", "f2_q1"), settings, seed_sequence(0))["rows"]
    assert len(rows) == 9
    # one update of the largest Gram matrix for each block of heads, whatever the targets and sample sizes
    assert updates == [(256, 256)] * 3


def test_theory_of_a_cell_is_that_of_its_own_settings():
    settings = {"model": "rfmlp", "heads": 7, "d": 4, "n_keys": 3, "n_max": 64, "n_test": 20}
    for knob, other in {"heads": 9, "d": 5, "n_keys": 4}.items():
        one, two = (run(("f1_p2",), p, seed_sequence(0))["rows"][0] for p in (settings, {**settings, knob: other}))
        assert one["theory"] != two["theory"]
    expected = learning_curve(Task("key_power", p=2, d=4, n_keys=3), 64, "rfmlp", width=35, tail="features")
    row = run(("f1_p2",), settings, seed_sequence(0))["rows"][0]
    assert row["theory"] == pytest.approx(expected.value)
    assert "theory" not in run(("softmax_g1",), settings, seed_sequence(0))["rows"][0]


def test_finite_heads_are_judged_at_every_setting():
    rows = [
        {"target": t, "n": n, "heads": 10, "seed": s, "error": e * (1 + 0.001 * s), "theory": 0.1}
        for (t, n, e) in (("a", 1, 0.1), ("b", 1, 0.12), ("b", 2, 0.09))
        for s in range(5)
    ]
    every, whole = theory_claims("x", "here", "target", "n")
    records = Records.of(rows)
    assert every.decide(records, "quick").status == whole.decide(records, "quick").status == "holds"
    outside = [{**row, "theory": 0.2} if row["target"] == "a" else row for row in rows]
    assert every.decide(Records.of(outside), "quick").status == "fails"
    low = [{**row, "theory": 0.05} for row in rows]
    assert whole.decide(Records.of(low), "quick").status == "fails"


def test_samples_for_equal_error_are_read_off_the_curve_and_bounded_by_the_grid():
    rows = [{"target": "f1_p1", "model": "rfa", "n": 256, "error": 0.01, "seed": 0}]
    rows += [
        {"target": "f1_p1", "model": "rfmlp", "n": n, "error": e, "seed": 0} for n, e in ((256, 1.0), (1024, 1e-4))
    ]
    # half way on logarithmic axes
    assert sample_ratio(Records.of(rows)) == pytest.approx(2.0)
    rows[-1]["error"] = 0.5
    assert sample_ratio(Records.of(rows)) == pytest.approx(4.0)
