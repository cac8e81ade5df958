import numpy as np
import pytest
from rfa_learners import DOUBLE, LEARNERS, NAMES, SMALL
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from attnlab.common.compute import Compute
from attnlab.rfa import (
    AttentionKernelRidge,
    NormBall,
    PatchRandomFeatures,
    PositionalEncoding,
    RandomFeatureAttention,
    RandomFeatureMLP,
    RandomFeatureSelfAttention,
    RFAStack,
)
from attnlab.rfa.features import BLOCK


@parametrize_with_checks(
    [
        RandomFeatureAttention(n_heads=10, n_tokens=1, compute=DOUBLE, random_state=0),
        RandomFeatureMLP(width=50, n_tokens=1, compute=DOUBLE, random_state=0),
        PatchRandomFeatures(width=50, n_tokens=1, compute=DOUBLE, random_state=0),
        AttentionKernelRidge(n_tokens=1, compute=DOUBLE),
        RFAStack(n_heads=10, width=2, inner_heads=4, n_tokens=1, compute=DOUBLE, random_state=0),
        RandomFeatureSelfAttention(n_heads=10, n_tokens=1, compute=DOUBLE, random_state=0),
        PositionalEncoding(n_tokens=1),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_supervised_y_2d": "y (n, 1) is one output of one token, not a column to be flattened"}
        if isinstance(estimator, RandomFeatureSelfAttention)
        else {}
    ),
)
def test_scikit_learn_contract_in_the_flat_form(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_fit_predict_clone_and_search_on_token_arrays(learner, data):
    X, y = data
    model = clone(learner).fit(X, y)
    assert model.predict(X).shape == y.shape
    # more features than examples and a tiny ridge: the fit nearly interpolates
    assert model.score(X, y) > 0.9
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))
    assert len(cross_val_score(learner, X, y, cv=3)) == 3
    search = GridSearchCV(learner, {"ridge": [1e-6, 1e3]}, cv=2).fit(X, y)
    assert search.best_params_ == {"ridge": 1e-6}


def test_flat_and_token_forms_agree(data):
    X, y = data
    tokens = RandomFeatureAttention(**SMALL).fit(X, y).predict(X)
    flat = RandomFeatureAttention(**SMALL, n_tokens=4).fit(X.reshape(120, -1), y).predict(X.reshape(120, -1))
    np.testing.assert_array_equal(tokens, flat)


@pytest.mark.parametrize("solver", ["dual", "streamed", "cg"])
def test_solvers_agree(data, solver):
    X, y = data
    reference = RandomFeatureAttention(**SMALL, solver="primal", compute=DOUBLE).fit(X, y).predict(X)
    model = RandomFeatureAttention(**SMALL, solver=solver, compute=DOUBLE).fit(X, y)
    # direct solvers to rounding; conjugate gradients to their tolerance 1e-7 amplified by the conditioning
    np.testing.assert_allclose(model.predict(X), reference, atol=1e-4 if solver == "cg" else 1e-10)
    assert model.converged_


@pytest.mark.parametrize("solver", ["primal", "dual", "streamed", "cg"])
def test_an_accelerator_gives_the_same_predictions(data, solver, monkeypatch):
    from attnlab.rfa.accelerator import Accelerator
    from attnlab.rfa.learners import features

    X, y = data
    reference = RandomFeatureAttention(**SMALL, solver=solver, ridge=1e-4).fit(X, y).predict(X)
    # the code of the GPU on JAX's CPU device
    monkeypatch.setattr(features, "backend", lambda machine: Accelerator.first("cpu"))
    ours = RandomFeatureAttention(**SMALL, solver=solver, ridge=1e-4).fit(X, y).predict(X)
    np.testing.assert_allclose(ours, reference, atol=1e-4 * np.abs(y).max())


def test_single_precision_is_enough(data):
    X, y = data
    double = RandomFeatureAttention(n_heads=300, random_state=0, compute=DOUBLE).fit(X, y).predict(X)
    single = RandomFeatureAttention(n_heads=300, random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(single, double, atol=1e-4 * np.abs(y).max())


def test_vector_outputs_equal_separate_fits_from_one_factorisation(data, monkeypatch):
    X, y = data
    Y = np.stack([y, y**2, np.sin(40 * y)], axis=1)
    from attnlab.rfa import backend

    calls = []
    solve = backend.solve_shifted
    monkeypatch.setattr(backend, "solve_shifted", lambda *a: calls.append(1) or solve(*a))
    together = RandomFeatureAttention(**SMALL, compute=DOUBLE).fit(X, Y).predict(X)
    assert len(calls) == 1
    for k in range(3):
        alone = RandomFeatureAttention(**SMALL, compute=DOUBLE).fit(X, Y[:, k]).predict(X)
        np.testing.assert_allclose(together[:, k], alone, atol=1e-10)


def test_self_attention_is_equivariant(data):
    X, _ = data
    y = np.einsum("nid,njd,nj->ni", X, X, X[..., 0])
    model = RandomFeatureSelfAttention(n_heads=300, random_state=0).fit(X, y)
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(model.predict(X[:, order]), model.predict(X)[:, order], atol=1e-5)
    assert model.score(X, y) > 0.9


def test_predictions_do_not_depend_on_the_order_of_keys(data):
    X, y = data
    model = RandomFeatureAttention(**SMALL).fit(X, y)
    np.testing.assert_allclose(model.predict(X[:, [0, 3, 1, 2]]), model.predict(X), atol=1e-4 * np.abs(y).max())


def test_values_by_head_give_the_same_function(data):
    X, y = data
    model = RandomFeatureAttention(n_heads=BLOCK + 4, random_state=0, compute=DOUBLE).fit(X, y)
    V, heads = model.values_[..., 0] / np.sqrt(BLOCK + 4), model._feature_map()
    W = np.concatenate([heads.heads(i) for i in range(2)]).astype(float)
    Xt = np.concatenate([X, np.ones((120, 4, 1))], axis=2)
    scores = np.maximum(np.einsum("na,mab,nib->nmi", Xt[:, 0], W, Xt[:, 1:]), 0)
    f = np.einsum("nmi,nid,md->n", scores, Xt[:, 1:], V, optimize=True) / 3
    np.testing.assert_allclose(f, model.predict(X), atol=1e-9)


def test_ridge_is_chosen_by_leave_one_out(data):
    X, y = data
    noisy = y + 0.1 * np.random.default_rng(0).standard_normal(len(y))
    model = RandomFeatureAttention(**SMALL, ridge=[1e-8, 1e-4, 1e-2, 1.0]).fit(X, noisy)
    assert model.ridge_ == model.path_.ridges[np.argmin(model.path_.loo)]
    same = RandomFeatureAttention(**SMALL, ridge=model.ridge_).fit(X, noisy)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-4)


def test_norm_bound_is_respected_and_losses_fit(data):
    X, y = data
    bounded = RandomFeatureAttention(**SMALL, ridge=NormBall(1.0), compute=DOUBLE).fit(X, 10 * y)
    assert bounded.norm_ == pytest.approx(1.0, rel=1e-4)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    model = RandomFeatureAttention(**SMALL, loss="logistic", ridge=1e-5).fit(X, labels)
    assert model.score(X, labels) > 0.9
    outliers = 10 * y
    outliers[:5] += 100
    clean = slice(5, None)
    squared, huber = (
        RandomFeatureAttention(**SMALL, loss=loss, ridge=1e-3).fit(X, outliers).predict(X)[clean]
        for loss in ("squared", "huber")
    )
    assert np.mean((huber - outliers[clean]) ** 2) < np.mean((squared - outliers[clean]) ** 2) / 2


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_a_norm_bound_with_fewer_features_than_examples(loss, data):
    X, y = data
    y = np.sign(y - np.median(y)) if loss == "logistic" else y
    for radius in (0.1, 100.0):
        model = RandomFeatureAttention(3, loss=loss, ridge=NormBall(radius), random_state=0).fit(X, y)
        assert model.norm_ <= radius * (1 + 1e-3)
        assert np.isfinite(model.predict(X)).all()


def test_kernel_ridge_is_the_limit_of_many_heads(data):
    X, y = data
    limit = AttentionKernelRidge(ridge=1e-3).fit(X, y).predict(X)
    many = RandomFeatureAttention(n_heads=5000, ridge=1e-3, random_state=0).fit(X, y).predict(X)
    # relative Monte Carlo error of the kernel 1/sqrt(5000), damped by the ridge
    assert np.sqrt(np.mean((many - limit) ** 2)) < 0.05 * y.std()


def test_kernel_ridge_takes_sets_of_different_sizes(data):
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((rng.integers(2, 6), 3)) for _ in range(60)]
    y = np.array([np.mean(x[1:, 0]) for x in X])
    model = AttentionKernelRidge(compute=DOUBLE).fit(X[:50], y[:50])
    assert model.score(X[50:], y[50:]) > 0.8
    assert model.predict(np.stack([X[0]])).shape == (1,)


def test_a_constant_is_learned_and_one_sample_is_interpolated(data):
    X, _ = data
    constant = RandomFeatureAttention(**SMALL).fit(X, np.full(120, 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0, atol=1e-2)
    one = RandomFeatureAttention(**SMALL, ridge=1e-9).fit(X[:1], [2.0])
    np.testing.assert_allclose(one.predict(X[:1]), 2.0, rtol=1e-4)


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_one_sample_and_constant_targets_are_no_special_case(learner, data):
    X, _ = data
    one = clone(learner).fit(X[:1], [2.0])
    np.testing.assert_allclose(one.predict(X[:1]), 2.0, rtol=1e-2)
    zero = clone(learner).fit(X, np.zeros(len(X)))
    np.testing.assert_array_equal(zero.predict(X), 0.0)
    with pytest.raises(ValueError, match=r"y must|NaN|infinity"):
        clone(learner).fit(X[:2], [1.0, np.nan])


def test_ridgeless_fits_are_least_norm_interpolation(data):
    X, y = data
    model = RandomFeatureAttention(n_heads=100, random_state=0, ridge=0.0, compute=DOUBLE).fit(X, y)
    Phi = model.features(X)
    theta = np.linalg.lstsq(Phi, y, rcond=None)[0]
    assert model.norm_ == pytest.approx(np.linalg.norm(theta), rel=1e-4)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_a_path_of_nested_samples_is_that_of_separate_fits(data):
    X, y = data
    Y, sizes = np.stack([y, y**2], axis=1), (20, 70, 100)
    learners = [
        RandomFeatureAttention(n_heads=60, random_state=0, compute=DOUBLE),
        RandomFeatureAttention(n_heads=60, random_state=0, compute=Compute(dtype="float64", memory=1.0)),
        RandomFeatureAttention(n_heads=9, random_state=0, compute=DOUBLE),
        RandomFeatureAttention(n_heads=60, random_state=0, bias="moment", compute=DOUBLE),
        RandomFeatureAttention(n_heads=60, random_state=0, ridge=[1e-6, 1e-3], compute=DOUBLE),
        RandomFeatureAttention(n_heads=60, random_state=0, ridge=(1e-6,), compute=DOUBLE),
        RandomFeatureAttention(n_heads=60, random_state=0, ridge=NormBall(1.0), compute=DOUBLE),
        RandomFeatureMLP(width=300, random_state=0, compute=DOUBLE),
        AttentionKernelRidge(compute=DOUBLE),
        AttentionKernelRidge(ridge=(1e-6,), compute=DOUBLE),
        RFAStack(n_heads=40, width=3, inner_heads=8, random_state=0, compute=DOUBLE),
    ]
    for learner in learners:
        path = learner.predict_path(X[:100], Y[:100], X[100:], sizes)
        separate = [clone(learner).fit(X[:n], Y[:n]).predict(X[100:]) for n in sizes]
        np.testing.assert_allclose(path, separate, atol=1e-7 * np.abs(Y).max())
        assert not hasattr(learner, "ridge_")
    with pytest.raises(ValueError, match="sizes must be"):
        learners[0].predict_path(X, y, X, [200])
