import numpy as np
import pytest

from attnlab.rfa import RandomFeatureAttention, RandomFeatureMLP, Task, theory


def make(target, power, d=16, n_keys=16, **options):
    return Task(target, d=d, n_keys=n_keys, **{"q" if target == "corr_power" else "p": power}, **options)


# model, target, power, d, N, n, heads or units, noise
SETTINGS = [
    ("rfa", "key_power", 1, 8, 8, 128, 50, 0.0),
    ("rfa", "key_power", 2, 8, 8, 256, 30, 0.0),
    ("rfa", "key_power", 2, 8, 4, 512, 200, 0.3),
    ("rfa", "key_power", 1, 12, 4, 256, 100, 0.3),
    ("rfa", "query_power", 1, 8, 8, 256, 100, 0.0),
    ("rfa", "query_power", 2, 8, 8, 512, 200, 0.3),
    ("rfa", "corr_power", 1, 8, 4, 512, 60, 0.0),
    ("rfa", "corr_power", 1, 8, 8, 256, 300, 0.3),
    ("rfmlp", "key_power", 1, 8, 8, 256, 1000, 0.0),
    ("rfmlp", "key_power", 2, 8, 4, 256, 400, 0.3),
]


MORE = [
    ("rfa", "key_power", 3, 12, 6, 512, 100, 0.0),
    ("rfa", "key_power", 4, 8, 16, 512, 300, 0.0),
    ("rfa", "key_power", 2, 16, 4, 1024, 300, 0.3),
    ("rfa", "query_power", 2, 16, 8, 1024, 300, 0.0),
    ("rfa", "query_power", 1, 16, 32, 512, 30, 0.3),
    ("rfa", "corr_power", 2, 8, 8, 1024, 200, 0.0),
    ("rfa", "corr_power", 1, 16, 8, 1024, 1000, 0.3),
    ("rfmlp", "corr_power", 1, 8, 4, 1024, 4000, 0.0),
    ("rfmlp", "query_power", 1, 16, 8, 512, 1000, 0.3),
    ("rfmlp", "key_power", 2, 16, 2, 1024, 3000, 0.0),
]


def ratios(settings, seeds):
    """Prediction over the mean of a few runs, with the relative standard error of the runs."""
    found = []
    for model, target, power, d, n_keys, n, units, noise in settings:
        predicted = theory.learning_curve(
            make(target, power, d, n_keys, noise_std=noise),
            n,
            model,
            **{"n_heads" if model == "rfa" else "width": units},
        )
        runs = []
        for seed in range(seeds):
            task = make(target, power, d, n_keys, noise_std=noise, seed=seed)
            X, y = task.sample(n, seed=seed)
            test = task.sample(1000, seed=1000 + seed)[0]
            learner = (RandomFeatureAttention if model == "rfa" else RandomFeatureMLP)(units, random_state=seed)
            runs.append(np.mean((learner.fit(X, y).predict(test) - task.truth(test)) ** 2) / task.variance)
        found.append(float(predicted) / np.mean(runs))
    return np.array(found)


def test_simulations_follow_the_prediction():
    found = ratios(SETTINGS, seeds=3)
    assert (found > 0.55).all(), found
    assert (found < 1.25).all(), found
    assert 0.75 < np.exp(np.log(found).mean()) < 1.1


@pytest.mark.slow
def test_simulations_follow_the_prediction_at_more_settings():
    found = ratios([*SETTINGS, *MORE], seeds=6)
    assert (found > 0.55).all(), found
    assert (found < 1.25).all(), found
    assert 0.75 < np.exp(np.log(found).mean()) < 1.1
