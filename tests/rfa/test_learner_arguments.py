import numpy as np
import pytest
from rfa_learners import DOUBLE, LEARNERS, NAMES, SMALL
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from attnlab.common.compute import Compute
from attnlab.rfa import (
    AttentionKernelRidge,
    NormBall,
    RandomFeatureAttention,
    RandomFeatureMLP,
    RandomFeatureSelfAttention,
    RFAStack,
)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (RandomFeatureAttention(n_heads=0), "n_heads must be an integer >= 1, got 0"),
        (RandomFeatureAttention(ridge=-1.0), "ridge must be"),
        (RandomFeatureAttention(ridge=[]), "empty"),
        (RandomFeatureAttention(bias=np.eye(3)), r"bias must have shape \(4, 4\), got \(3, 3\)"),
        (RandomFeatureAttention(bias="identiy"), "did you mean 'identity'"),
        (RandomFeatureAttention(activation="rellu"), "did you mean 'relu'"),
        (RandomFeatureAttention(solver="magic"), "solver must be one of"),
        (RandomFeatureAttention(loss="hinge"), "loss must be one of"),
        (RandomFeatureAttention(compute="gpu"), "compute must be a Compute"),
        (AttentionKernelRidge(compute=Compute(memory=1e9)), "compute.memory is not supported by AttentionKernelRidge"),
        (RandomFeatureAttention(2, ridge=0.0, solver="cg"), "singular at ridge=0 with 10 features for 120 examples"),
        (RandomFeatureMLP(width=0), "width must be"),
        (AttentionKernelRidge("softmax"), "kernel must be one of"),
        (RFAStack(0), "n_layers must be"),
    ],
)
def test_bad_parameters_are_named(learner, message, data):
    with pytest.raises((ValueError, TypeError), match=message):
        learner.fit(*data)


def test_bad_data_is_named(data):
    X, y = data
    model = RandomFeatureAttention(**SMALL)
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.fit(np.where(X > 0.5, np.nan, X), y)
    with pytest.raises(ValueError, match="y must have shape"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="X must have shape"):
        model.fit(X[0], y)
    with pytest.raises(ValueError, match="tokens of width d=4"):
        model.fit(X, y).predict(X[..., :3])
    with pytest.raises(ValueError, match=r"y in \{-1, \+1\}"):
        RandomFeatureAttention(**SMALL, loss="logistic").fit(X, y)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="scores overflow"):
        RandomFeatureAttention(**SMALL, activation="exp").fit(100 * X, y)
    with pytest.raises(ValueError, match="self-attention needs y"):
        RandomFeatureSelfAttention(**SMALL).fit(X, y)


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_fitted_attributes_can_be_saved(learner, data):
    from dataclasses import is_dataclass

    model = clone(learner).fit(*data)
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            assert (
                value is None or isinstance(value, np.ndarray | int | float | str | list | dict) or is_dataclass(value)
            )


def test_how_a_fit_ended_is_said(data, monkeypatch):
    from attnlab.rfa.solvers import cg, erm

    X, y = data
    closed = RandomFeatureAttention(**SMALL).fit(X, y)
    assert (closed.converged_, closed.n_iter_, closed.stop_reason_) == (True, 1, "closed form")
    huber = RandomFeatureAttention(**SMALL, loss="huber", ridge=1e-4).fit(X, 100 * y)
    assert (huber.converged_, huber.stop_reason_) == (True, "tolerance reached")
    monkeypatch.setattr(erm, "_step_size", lambda *a: 0.0)
    with pytest.warns(ConvergenceWarning, match="line search failed"):
        failed = RandomFeatureAttention(**SMALL, loss="huber", ridge=1e-4).fit(X, 100 * y)
    assert not failed.converged_
    monkeypatch.setattr(cg, "MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        short = RandomFeatureAttention(200, solver="cg", ridge=1e-9, random_state=0).fit(X, y)
    assert (short.converged_, short.n_iter_) == (False, 1)


def test_the_ridge_that_was_used_is_kept(data):
    X, y = data
    assert RandomFeatureAttention(**SMALL, ridge=1e-3).fit(X, y).ridge_ == 1e-3
    # Newton's method has a smallest ridge
    assert RandomFeatureAttention(**SMALL, ridge=0.0, loss="huber").fit(X, y).ridge_ > 0
    ball = RandomFeatureAttention(**SMALL, ridge=NormBall(1.0), compute=DOUBLE).fit(X, 10 * y)
    penalised = RandomFeatureAttention(**SMALL, ridge=ball.ridge_, compute=DOUBLE).fit(X, 10 * y)
    np.testing.assert_allclose(penalised.predict(X), ball.predict(X), atol=1e-8)


def test_learners_are_not_told_the_law():
    assert all(learner.needs == () for learner in LEARNERS)


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_no_constructor_has_more_than_ten_parameters(learner):
    assert len(learner.get_params(deep=False)) <= 10
