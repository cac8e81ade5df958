"""Every public learner of every system is saved, loaded, and predicts the same numbers."""

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from attnlab.aim import Adam
from attnlab.lab import registry
from attnlab.persist import load, save

# One small problem for each system, and what its learners need beyond their defaults to be quick on it.
TASKS: dict[str, dict[str, Any]] = {
    "rfa": {"d": 4, "n_keys": 3},
    "mha": {"d": 4, "k": 2, "n_heads": 1},
    "slr": {"d": 6, "L": 3},
    "aim": {"d": 12},
}
SAMPLES = {"rfa": 60, "mha": 400, "slr": 80, "aim": 60}
SETTINGS: dict[str, dict[str, Any]] = {
    "rfa.RandomFeatureAttention": {"n_heads": 20, "bias": "moment", "ridge": [1e-3, 1e-1]},
    "rfa.RandomFeatureMLP": {"width": 50},
    "rfa.PatchRandomFeatures": {"width": 50},
    "rfa.RFAStack": {"n_heads": 20},
    "mha.QueryLearner": {"d": 4},
    "mha.GradientLearner": {"n_starts": 1, "max_iter": 20},
    "mha.AttentionLearner": {"n_heads": 1, "random_state": 0},
    "mha.SculptingLearner": {"n_heads": 1, "random_state": 0},
    "slr.SingleLocationAttention": {"n_steps": 20, "random_state": 0},
    "aim.AMP": {"max_iter": 5},
    "aim.DeepAMP": {"max_iter": 5},
    "aim.OnlineSGD": {"width": 6, "batch_size": 10, "random_state": 0},
    "aim.GradientDescent": {"width": 6, "n_starts": 2, "optimizer": Adam(n_steps=20), "random_state": 0},
}


def learners_of(system: str) -> dict[str, type]:
    package = registry.system(system)
    public = {f"{system}.{name}": getattr(package, name) for name in package.__all__}
    classes = {name: item for name, item in public.items() if inspect.isclass(item)}
    # a transformer has nothing to predict
    return {n: item for n, item in classes.items() if issubclass(item, BaseEstimator) and hasattr(item, "predict")}


def fit(name: str, learner: type, package: Any, task: Any, X: np.ndarray, y: np.ndarray) -> BaseEstimator:
    settings = SETTINGS.get(name, {})
    if "task" in inspect.signature(learner).parameters:
        settings = settings | {"task": task}
    if name == "mha.QueryLearner":
        return learner(**settings).fit(lambda tokens: package.attention(tokens, task.Theta, task.W))
    with warnings.catch_warnings():
        # A few iterations are enough to have something to save.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if name == "rfa.RandomFeatureSelfAttention":  # an output for each token
            y = X.sum(axis=2)
        return learner(**settings).fit(X, y)


@pytest.mark.parametrize("system", sorted(TASKS))
def test_every_learner_predicts_the_same_after_loading(system, tmp_path):
    package = registry.system(system)
    task = package.Task(**TASKS[system])
    X, y = task.sample(SAMPLES[system], seed=1)
    learners = learners_of(system)
    assert learners
    for name, learner in learners.items():
        fitted = fit(name, learner, package, task, X, y)
        save(fitted, path := tmp_path / f"{name}.npz")
        again = load(path)
        assert type(again) is learner, name
        assert vars(again).keys() == {k for k in vars(fitted) if not k.startswith("_")}, name
        assert np.array_equal(again.predict(X[:7]), fitted.predict(X[:7])), name
        outputs = y if fitted.predict(X[:1]).ndim == y.ndim else X.sum(axis=2)
        assert again.score(X, outputs) == fitted.score(X, outputs), name
