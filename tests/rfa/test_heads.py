import numpy as np
import pytest

from attnlab.rfa import Task, theory


@pytest.mark.parametrize(("model", "size"), [("rfa", "n_heads"), ("rfmlp", "width")])
@pytest.mark.parametrize("excess", [0.1, 1.0])
def test_from_the_heads_needed_on_the_error_is_near_the_limit(model, size, excess):
    task, n = Task("corr_power", q=1, d=8, n_keys=8), 300
    needed = theory.heads_needed(task, n, excess, model)
    assert needed.converged
    limit = theory.learning_curve(task, n, model).value
    at = needed.value * np.array([1.0, 1.5, 4.0, 100.0])
    beyond = theory.learning_curve(task, n, model, **{size: at}).value / limit
    assert (np.abs(beyond - 1) <= excess * (1 + 1e-6)).all()
    before = theory.learning_curve(task, n, model, **{size: needed.value - 1}).value / limit
    assert abs(before - 1) > excess


def test_heads_needed_broadcast_and_grow_with_the_sample():
    needed = theory.heads_needed(Task("key_power", p=2), [128, 512, 2048])
    assert needed.shape == (3,)
    assert (np.diff(needed.value) > 0).all()


def test_a_target_that_no_number_of_heads_learns_needs_few():
    # a constant error of order one: already the null predictor is near the limit
    task = Task("key_power", p=3, d=64, n_keys=4, noise_std=10.0)
    assert theory.heads_needed(task, 10, excess=3.0, ridge=1.0).value == 1


@pytest.mark.parametrize(("model", "units", "features"), [("rfa", 30, 510), ("rfmlp", 400, 400)])
def test_the_peak_is_where_samples_match_features(model, units, features):
    task = Task("corr_power", q=1)
    peak = theory.interpolation_peak(task, units, model, ridge=1e-9)
    assert peak.detail["interior"]
    assert peak.detail["n"] == pytest.approx(features, rel=0.12)
    size = {"n_heads" if model == "rfa" else "width": units}
    around = theory.learning_curve(task, peak.detail["n"] * np.array([0.7, 1.4]), model, 1e-9, **size)
    assert (around.value < peak.value).all()


def test_a_ridge_lowers_the_peak():
    heights = [theory.interpolation_peak(Task("corr_power", q=1), 30, ridge=r).value for r in (1e-9, 1e-6, 1e-4)]
    assert heights[0] > heights[1] > heights[2]


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="excess must be"):
        theory.heads_needed(Task(), 100, excess=0)
    with pytest.raises(ValueError, match="n_heads must be"):
        theory.interpolation_peak(Task(), 0)
    with pytest.raises(ValueError, match="model must be one of"):
        theory.interpolation_peak(Task(), 10, "patch")
