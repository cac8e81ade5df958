import numpy as np
import pytest

from attnlab.rfa import AttentionKernelRidge, RandomFeatureAttention, Task, theory
from attnlab.rfa.activations import Relu

# Twice the largest n, the least that a prediction takes; the default starts at 512.
SIZE = 256


def make(target, power, d=16, n_keys=16, **options):
    return Task(target, d=d, n_keys=n_keys, **{"q" if target == "corr_power" else "p": power}, **options)


# A name has a known spectrum; the same heads as an object do not, and their equations are solved on the sample.
@pytest.mark.parametrize(("model", "kind"), [("rfa", "rfa"), ("rfa", Relu()), ("rfmlp", "rfmlp")])
@pytest.mark.parametrize(("target", "power", "noise"), [("key_power", 2, 0.0), ("corr_power", 1, 0.02)])
def test_a_sampled_kernel_gives_the_curve_of_the_exact_spectrum(model, kind, target, power, noise):
    task, sizes = make(target, power, 6, 4, noise_std=noise), [32, 64, 128]
    sampled, exact = (
        theory.sampled_learning_curve(task, sizes, kind, size=SIZE),
        theory.learning_curve(task, sizes, model),
    )
    assert sampled.converged.all()
    # the spread of three samples is itself uncertain; five per cent for samples of 256 examples
    assert (np.abs(sampled.value - exact.value) < 4 * sampled.error + 0.05 * exact.value).all()


def test_the_curve_with_a_bias_is_that_of_the_exact_kernel():
    sizes, runs = [64, 128], []
    for seed in range(4):
        task = make("corr_power", 1, 6, 4, seed=seed)
        (X, y), (X_test, f) = task.sample(128, seed=seed), task.sample(256, seed=100 + seed)
        path = AttentionKernelRidge("brfa").predict_path(X, y, X_test, sizes)
        runs.append(np.mean((path - f) ** 2, axis=1) / task.variance)
    predicted = theory.sampled_learning_curve(task, sizes, "brfa", size=SIZE)
    # four standard errors of the runs, three of the prediction, and fifteen per cent for the approximation
    spread = 4 * np.std(runs, axis=0, ddof=1) / 2 + 3 * predicted.error
    assert (np.abs(predicted.value - np.mean(runs, axis=0)) < spread + 0.15 * predicted.value).all()
    assert (predicted.value < theory.learning_curve(task, sizes, "rfa").value).all()


def test_a_sampled_curve_says_where_it_ends():
    task = make("key_power", 2, 4, 3)
    curve = theory.sampled_learning_curve(task, [20, 60], size=64)
    assert curve.converged.tolist() == [True, False]
    through = theory.learning_curve(task, 20, "brfa", n_heads=9).value
    assert through == theory.sampled_learning_curve(task, 20, units=9).value
    assert isinstance(theory.sampled_learning_curve(Task("softmax", d=4, n_keys=3), 20, size=64).value, float)
    with pytest.raises(ValueError, match="width is not a parameter of model='brfa'"):
        theory.learning_curve(task, 10, "brfa", width=10)
    with pytest.raises(ValueError, match="n and units must be >= 1"):
        theory.sampled_learning_curve(task, 10, units=0)


@pytest.mark.parametrize(
    ("model", "kind", "size", "units"),
    [("rfa", "rfa", "n_heads", 20), ("rfa", Relu(), "n_heads", 20), ("rfmlp", "rfmlp", "width", 100)],
)
def test_finitely_many_units_of_a_sampled_kernel_are_those_of_the_exact_spectrum(model, kind, size, units):
    # at n = 128 both are beside their peak, where the error is three times that of infinitely many units
    task, sizes = make("corr_power", 1, 6, 4, noise_std=0.01), [64, 128]
    sampled = theory.sampled_learning_curve(task, sizes, kind, units=units, size=SIZE)
    exact = theory.learning_curve(task, sizes, model, tail="features", **{size: units})
    assert (np.abs(sampled.value - exact.value) < 4 * sampled.error + 0.03 * exact.value).all()
    assert exact.value[1] > 2 * theory.learning_curve(task, 128, model).value


@pytest.mark.parametrize(("kind", "n", "heads"), [("brfa", 100, [10, 12, 16]), (Relu(), 60, [3, 5, 8])])
def test_features_that_are_fewer_than_examples_have_a_prediction(kind, n, heads):
    # 70 features for 100 examples, 21 for 60: a class of features is full, and the ridge that is looked for is small
    curve = theory.sampled_learning_curve(make("corr_power", 1, 6, 4), n, kind, units=heads, size=SIZE)
    assert curve.converged.all()


def test_the_equations_of_a_sample_have_the_solution_of_the_spectrum():
    task, heads = make("corr_power", 1, 6, 4), [10, 30, 300]
    known, searched = (theory.sampled_learning_curve(task, 100, k, units=heads, size=SIZE) for k in ("rfa", Relu()))
    # the labels are the same, only the traces of the sample fluctuate
    np.testing.assert_allclose(searched.value, known.value, rtol=0.02)


def test_many_heads_are_the_limit_of_the_sampled_curve():
    task = make("corr_power", 1, 4, 3)
    many, limit = (theory.sampled_learning_curve(task, 30, units=units, size=64).value for units in (1e9, None))
    assert many == pytest.approx(limit, rel=1e-4)


def with_bias(d, n_keys, n, heads, seeds, size=None):
    """Prediction over the mean of a few runs of biased heads on an odd correlation."""
    found = []
    for m in heads:
        runs = []
        for seed in range(seeds):
            task = make("corr_power", 1, d, n_keys, seed=seed)
            (X, y), (X_test, f) = task.sample(n, seed=seed), task.sample(1000, seed=100 + seed)
            learner = RandomFeatureAttention(m, bias="identity", random_state=seed).fit(X, y)
            runs.append(np.mean((learner.predict(X_test) - f) ** 2) / task.variance)
        found.append(theory.sampled_learning_curve(task, n, units=m, size=size).value / np.mean(runs))
    return np.array(found)


def test_finitely_many_biased_heads_follow_the_prediction():
    found = with_bias(6, 4, 100, [10, 50, 300], seeds=5, size=SIZE)
    assert (found > 0.55).all(), found
    assert (found < 1.25).all(), found


@pytest.mark.slow
def test_finitely_many_biased_heads_follow_the_prediction_through_the_peak():
    found = with_bias(8, 8, 256, [10, 30, 60, 100, 300, 1000], seeds=6)
    assert (found > 0.55).all(), found
    assert (found < 1.25).all(), found
    assert 0.75 < np.exp(np.log(found).mean()) < 1.1
