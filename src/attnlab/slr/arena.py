"""What this system brings to the arena: two laws of tokens, trained attention, and linear regression.

Each learner takes the best of five settings of its knob, by cross-validation on the training examples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from attnlab.common.adapters import Calibrated, FlattenOutputs, FlattenTokens, ScaleTokens
from attnlab.common.arena import FOLDS, STARTS, Entry, Forms
from attnlab.slr.learners.attention import SoftmaxAttention
from attnlab.slr.learners.erf_attention import SingleLocationAttention
from attnlab.slr.learners.predictors import LinearPredictor
from attnlab.slr.task import Task

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
SHRINKAGES = (1e-4, 1e-2, 0.1, 1.0, 100.0)
TEMPERATURES = (0.025, 0.05, 0.1, 0.2, 0.4)

_MAX = {"d": 16, "L": 4, "law": "max", "gamma": 1.0, "nu": float("inf"), "noise_std": 0.1}
TASKS = {
    "slr.spiked": Entry(Task, {"d": 24, "L": 5, "noise_std": 0.1}, {"d": 40}),
    "slr.max": Entry(Task, _MAX, {"d": 40}),
}


def tuned(estimator: Any, values: tuple[float, ...], *knobs: str) -> Any:
    """A learner on scaled tokens, its outputs calibrated; its knobs take the value that validates best."""
    model = make_pipeline(ScaleTokens(None), Calibrated(estimator))
    grid = [{f"calibrated__estimator__{knob}": [value] for knob in knobs} for value in values]
    return GridSearchCV(model, grid, cv=FOLDS, error_score="raise")


def _erf(task: Any, n: int) -> Any:
    options = {"step": 0.02, "n_steps": 600, "batch_size": 64, "penalty_mean": 10.0, "n_starts": STARTS}
    return tuned(SingleLocationAttention(**options), TEMPERATURES, "lam")


def _softmax(task: Any, n: int) -> Any:
    return tuned(SoftmaxAttention(n_starts=STARTS), PENALTIES, "ridge_k", "ridge_v")


def _linear(task: Any, n: int) -> Any:
    return tuned(LinearPredictor(), SHRINKAGES, "ridge")


def _linear_layer(task: Any, n: int) -> Any:
    # RidgeCV penalises |beta|^2 without the factor n that LinearPredictor has.
    return make_pipeline(FlattenTokens(), FlattenOutputs(RidgeCV(n * np.array(SHRINKAGES))))


# Theory of attention does not know the calibration of outputs; that of ridge regression does not need to.
LEARNERS = {
    "erf": Forms(_erf, theory=False),
    "softmax": Forms(_softmax, theory=False),
    "linear": Forms(_linear, _linear_layer),
}
