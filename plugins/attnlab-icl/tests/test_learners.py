"""Solvers agree, errors are exact, baselines are right, the scikit-learn contract holds."""

import numpy as np
import pytest
from attnlab_icl import (
    DiscreteMMSE,
    LinearAttention,
    NullPredictor,
    RidgeInContext,
    Task,
    exact_error,
    features,
    theory,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from attnlab.common.compute import Compute

TASK = Task(d=20, l=40, k=20, noise_std=0.3)


# the dual problem of tau = 10 has 4000 unknowns: once
@pytest.mark.parametrize(
    ("tau", "ridge", "solvers"),
    [
        (0.5, 1e-6, ("gram",)),
        (0.5, 1e-2, ("gram",)),
        (2, 1e-6, ("gram", "cg")),
        (2, 1e-2, ("gram", "cg")),
        (10, 1e-6, ("gram", "cg")),
    ],
)
def test_solvers_agree(tau, ridge, solvers):
    data = TASK.features(int(tau * 400), 1)
    dual = LinearAttention(ridge, "dual").fit_features(*data)
    for solver in solvers:
        other = LinearAttention(ridge, solver).fit_features(*data)
        assert np.abs(other.gamma_ - dual.gamma_).max() < 1e-8 * np.abs(dual.gamma_).max()
        assert other.train_error_ == pytest.approx(dual.train_error_, rel=1e-6)


def test_the_minimum_of_the_loss():
    query, context, y = TASK.features(300, 1)
    layer = LinearAttention(0.1).fit_features(query, context, y)
    residual = y - np.vecdot(query @ layer.gamma_, context)
    gradient = (query.T * residual) @ context - 300 / 20 * 0.1 * layer.gamma_
    assert np.abs(gradient).max() < 1e-10 * np.abs(query.T @ context).max()


def test_exact_error_is_the_monte_carlo_error():
    layer = LinearAttention(0.01).fit(*TASK.sample(2000, 1))
    for tasks in ("new", "pretraining"):
        X, y = TASK.sample(20_000, 2, tasks)
        squares = (layer.predict(X) - y) ** 2
        assert abs(squares.mean() - exact_error(layer, TASK, tasks)) < 4 * squares.std() / np.sqrt(20_000)


def test_blocks_in_any_order_give_one_fit():
    X, y = TASK.sample(1500, 1)
    parts = LinearAttention(0.01)
    for rows in np.array_split(np.random.default_rng(0).permutation(1500), 4):
        parts.partial_fit(X[rows], y[rows])
    whole = LinearAttention(0.01, "gram").fit(X, y)
    np.testing.assert_allclose(parts.gamma_, whole.gamma_, atol=1e-10)
    assert parts.train_error_ == pytest.approx(whole.train_error_, rel=1e-9)


def test_least_norm_without_ridge():
    query, context, y = TASK.features(100, 1)
    free = LinearAttention(0.0).fit_features(query, context, y)
    assert free.train_error_ < 1e-20
    small = LinearAttention(1e-9).fit_features(query, context, y)
    np.testing.assert_allclose(free.gamma_, small.gamma_, atol=1e-4 * np.abs(free.gamma_).max())


def test_generalised_cross_validation_estimates_the_error_on_pretraining_tasks():
    task = Task(d=40, l=80, k=20, noise_std=0.1**0.5)
    layer = LinearAttention(0.1).fit_features(*task.features(800, 1))
    assert layer.gcv_ / exact_error(layer, task, "pretraining") == pytest.approx(1, abs=0.2)
    assert exact_error(layer, task, "new") / layer.gcv_ > 1.4


@pytest.mark.parametrize("ridge", [1e-5, 0.1])
def test_the_layer_is_the_same_without_cross_validation(ridge):
    data = TASK.features(70, 1)
    whole, alone = (LinearAttention(ridge, gcv=gcv).fit_features(*data) for gcv in (True, False))
    assert alone.gcv_ is None
    assert (alone.n_iter_ > 1) == (ridge == 0.1)  # by conjugate gradients
    np.testing.assert_allclose(alone.gamma_, whole.gamma_, atol=1e-8 * np.abs(whole.gamma_).max())


@pytest.mark.parametrize("tau", [0.5, 2.0])
def test_simulation_meets_the_finite_size_theory(tau):
    d = 32
    ratios = []
    for seed in range(8):
        task = Task(d=d, l=10 * d, k=d // 2, seed=seed)
        n = int(tau * d * d)
        layer = LinearAttention(1e-6).fit_features(*task.features(n, seed))
        ratios.append(exact_error(layer, task) / float(theory.finite_size_errors(task, n, 1e-6)))
    # three standard errors, and the O(1/d) that the equivalent leaves
    assert abs(np.mean(ratios) - 1) < 3 * np.std(ratios, ddof=1) / np.sqrt(8) + 4 / d


@pytest.mark.slow
@pytest.mark.parametrize(("kappa", "mean", "sem"), [(0.2, 0.9259, 0.0036), (1, 0.1757, 0.0015), (8, 0.0038, 0.0001)])
def test_published_runs_lie_on_the_finite_size_theory(kappa, mean, sem):
    """d = 64, 20 runs of arXiv:2405.11751 (k is kappa d rounded down); the spread of our mean over tasks is added."""
    values = [
        theory.finite_size_errors(Task(d=64, l=640, k=int(kappa * 64), seed=s), 10 * 64**2, 1e-6).detail["g_task"]
        for s in range(100)
    ]
    assert abs(np.mean(values) - mean) < 2.5 * np.hypot(sem, np.std(values) / 10)


def test_conjugate_gradients_say_when_they_have_not_converged():
    with pytest.warns(ConvergenceWarning, match="residual"):
        layer = LinearAttention(1e-6, "cg", max_iter=3).fit_features(*TASK.features(800, 1))
    assert not layer.converged_
    assert layer.n_iter_ == 3


def test_discrete_mmse():
    task = Task(d=8, l=40, k=5, noise_std=0.1)
    X, y = task.sample(300, 1)
    learner = DiscreteMMSE(task.W, task.noise_std).fit(X, y)
    assert np.mean((learner.predict(X) - y) ** 2) == pytest.approx(0.01, rel=0.3)  # the noise alone
    one = DiscreteMMSE(task.W[:1], 0.1).fit(X, y)
    np.testing.assert_allclose(one.task_estimate(X), np.broadcast_to(task.W[0], (300, 8)))


def test_discrete_mmse_without_overflow():
    rng = np.random.default_rng(0)
    W = 1e3 * rng.standard_normal((10_000, 4))
    X, y = Task(d=4, l=6).sample(3)
    assert np.isfinite(DiscreteMMSE(W, 1e-3).fit(X, y).predict(X)).all()


def test_discrete_mmse_without_noise_takes_the_task_itself():
    task = Task(d=6, l=8, k=4, noise_std=0.0)
    X, y = task.sample(50, 2)
    np.testing.assert_allclose(DiscreteMMSE(task.W, 0.0).fit(X, y).predict(X), y, atol=1e-12)


@pytest.mark.parametrize("l", [3, 12])
def test_ridge_in_context_is_the_normal_equations(l):
    X, y = Task(d=6, l=l, noise_std=0.4).sample(5)
    learner = RidgeInContext(noise_std=0.4).fit(X, y)
    for context, estimate in zip(X, learner.task_estimate(X), strict=True):
        x, labels = context[:-1, :-1], context[:-1, -1]
        np.testing.assert_allclose(estimate, np.linalg.solve(x.T @ x + 0.16 * np.eye(6), x.T @ labels), rtol=1e-10)


def test_ridge_in_context_meets_its_theory():
    task = Task(d=64, l=128, noise_std=0.1**0.5)
    learner = RidgeInContext(noise_std=task.noise_std)
    errors = [task.rho + learner.excess(task, 100, seed) for seed in range(8)]
    # four standard errors and the O(1/d) of a finite context
    assert abs(np.mean(errors) - float(theory.ridge_error(2, 0.1))) < 4 * np.std(errors) / np.sqrt(8) + 0.2 / 64


def test_the_averaged_error_is_the_measured_one():
    learner = RidgeInContext(noise_std=TASK.noise_std)
    X, y = TASK.sample(20_000, 1, "new")
    squares = (learner.fit(X, y).predict(X) - y) ** 2
    assert abs(TASK.rho + learner.excess(TASK, 2000, 2) - squares.mean()) < 4 * squares.std() / np.sqrt(20_000) + 0.01


def test_the_null_predictor():
    X, y = TASK.sample(20_000, 1)
    assert np.mean((NullPredictor().fit(X, y).predict(X) - y) ** 2) == pytest.approx(1 + TASK.rho, rel=0.05)


def test_the_scikit_learn_contract():
    X, y = Task(d=4, l=10, k=4).sample(120, 1)
    search = GridSearchCV(LinearAttention(), {"ridge": [1e-3, 1e-1]}, cv=3).fit(X, y)
    assert search.best_params_["ridge"] in (1e-3, 1e-1)
    for learner in (
        LinearAttention(0.2, "gram"),
        RidgeInContext(noise_std=0.1),
        DiscreteMMSE(np.eye(4), 0.1),
        NullPredictor(),
    ):
        copy = clone(learner)
        assert set(copy.get_params()) == set(learner.get_params())
        copy.fit(X, y)
        assert copy.converged_
        assert copy.stop_reason_ == "closed form"


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (LinearAttention(ridge=-1), "ridge"),
        (LinearAttention(solver="lu"), "solver"),
        (LinearAttention(solver="cg", tol=0), "tol"),
        (LinearAttention(compute=Compute(dtype="float32")), "compute.dtype"),
        (LinearAttention(solver="dual", compute=Compute(device="gpu")), "device"),
        (RidgeInContext(), "noise_std"),
        (DiscreteMMSE(), "W"),
        (DiscreteMMSE(np.eye(3), 0.1), "W must have shape"),
    ],
)
def test_wrong_parameters_are_refused(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(*Task(d=4, l=5, k=2).sample(10))


def test_wrong_arrays_are_refused():
    X, y = Task(d=4, l=5).sample(10)
    with pytest.raises(ValueError, match="y must have shape"):
        LinearAttention().fit(X, y[:-1])
    with pytest.raises(ValueError, match="dimension"):
        LinearAttention().fit(X, y).predict(Task(d=5, l=5).sample(2)[0])
    with pytest.raises(ValueError, match="NaN"):
        features(np.full_like(X, np.nan))


def test_the_gram_matrix_has_a_limit():
    data = Task(d=200, l=5).features(3)
    with pytest.raises(ValueError, match="'cg' or 'dual'"):
        LinearAttention(solver="gram").fit_features(*data)
