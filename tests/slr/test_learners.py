import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from attnlab import slr
from attnlab.slr import theory


def small_task(**changes):
    return slr.Task(**{"d": 12, "L": 4, "noise_std": 0.1, "seed": 5, **changes})


def learners(task):
    return [
        slr.NullPredictor(),
        slr.LinearPredictor(ridge=1e-6),
        slr.OraclePredictor(task),
        slr.BayesPredictor(task),
        slr.SingleLocationAttention(lam=0.3, n_steps=50, random_state=0),
        slr.SoftmaxAttention(random_state=0),
        slr.LinearAttention(random_state=0),
        slr.SoftplusAttention(random_state=0),
        slr.AMP(nu=6.0, noise_std=0.3, max_iter=1000, damping=0.8),
    ]


NAMES = [type(learner).__name__ for learner in learners(small_task())]


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_scikit_learn_contract_on_token_arrays(index):
    task = small_task(gamma=1.0)
    learner = learners(task)[index]
    X, y = task.sample(300, seed=0)
    fitted = clone(learner).fit(X, y)
    again = clone(learner).fit(X, y)
    assert fitted.predict(X).shape == (300,)
    assert np.array_equal(fitted.predict(X), again.predict(X))
    assert fitted.score(X, y) == pytest.approx(1 - np.mean((fitted.predict(X) - y) ** 2) / np.var(y))
    assert not any(name.endswith("_") for name in vars(clone(fitted)))
    with pytest.raises(ValueError, match="X contains NaN"):
        fitted.predict(np.full((2, 4, 12), np.nan))
    with pytest.raises(ValueError, match="tokens of width d=12"):
        fitted.predict(np.zeros((2, 4, 3)))
    with pytest.raises(ValueError, match="y must have shape"):
        clone(learner).fit(X, y[:-1])
    with pytest.raises(ValueError, match="X must have shape"):
        clone(learner).fit(X[:, 0], y)


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_fitted_learners_can_be_saved_and_loaded(index, tmp_path):
    from attnlab.persist import load, save

    task = small_task(gamma=1.0)
    X, y = task.sample(200, seed=0)
    learner = learners(task)[index].fit(X, y)
    save(learner, tmp_path / "learner.npz")
    assert np.array_equal(load(tmp_path / "learner.npz").predict(X), learner.predict(X))


def test_grid_search_and_cross_validation():
    X, y = small_task().sample(300, seed=0)
    search = GridSearchCV(slr.SingleLocationAttention(n_steps=30, random_state=0), {"lam": [0.1, 0.4]}, cv=3).fit(X, y)
    assert search.best_params_["lam"] in (0.1, 0.4)
    assert len(cross_val_score(slr.SoftmaxAttention(random_state=0), X, y, cv=3)) == 3


def test_linear_predictor_reaches_the_exact_linear_risk():
    task = slr.Task(d=20, L=10, noise_std=0.1)
    X, y = task.sample(40_000, seed=0)
    X_test, y_test = task.sample(40_000, seed=1)
    losses = (slr.LinearPredictor().fit(X, y).predict(X_test) - y_test) ** 2
    # exact risk .483684; estimation adds the factor d L / n = .005, the test 4 standard errors
    predicted = theory.linear_risk(L=10, noise_std=0.1) * (1 + 200 / 40_000)
    assert losses.mean() == pytest.approx(predicted, abs=4 * losses.std() / 200)


def test_linear_predictor_takes_fewer_samples_than_unknowns():
    X, y = small_task().sample(10, seed=0)
    assert np.allclose(slr.LinearPredictor().fit(X, y).predict(X), y)


def test_oracle_and_bayes_predictors_reach_their_theoretical_risks():
    task = slr.Task(d=10, L=10, seed=2)
    X, y = task.sample(60_000, seed=0)
    oracle = (slr.OraclePredictor(task, lam=0.3).fit(X, y).predict(X) - y) ** 2
    exact = theory.oracle_risk(d=10, L=10, lam=0.3)
    assert abs(oracle.mean() - exact) < 4 * oracle.std() / np.sqrt(len(y))
    bayes = (slr.BayesPredictor(task).fit(X, y).predict(X) - y) ** 2
    # .1091(5) from 10^6 independent draws
    assert abs(bayes.mean() - 0.1091) < 4 * bayes.std() / np.sqrt(len(y)) + 5e-4


def test_predictors_that_need_the_task_say_so():
    X, y = small_task().sample(5)
    for learner in (slr.OraclePredictor(), slr.BayesPredictor()):
        with pytest.raises(ValueError, match=r"task must be the slr\.Task"):
            learner.fit(X, y)
    with pytest.raises(ValueError, match="width d=6"):
        slr.BayesPredictor(small_task(d=6)).fit(X, y)


def test_attention_on_the_spheres_finds_the_planted_pair():
    task = slr.Task(d=40, L=5, noise_std=0.1)
    X, y = task.sample(4000, seed=0)
    learner = slr.SingleLocationAttention(lam=0.2, step=5e-3, n_steps=3000, penalty_mean=10.0, random_state=1).fit(X, y)
    assert abs(learner.k_ @ task.k_star) > 0.85
    assert abs(learner.v_ @ task.v_star) > 0.95
    assert np.linalg.norm(learner.k_) == pytest.approx(1)
    assert learner.loss_ < 0.5 * learner.loss_curve_[0]


def test_full_batch_training_follows_the_population_map():
    task = slr.Task(d=30, L=4)
    X, y = task.sample(30_000, seed=0)
    init = np.stack([task.k_star + 0.4, task.v_star - 0.3])
    k, v = init / np.linalg.norm(init, axis=1, keepdims=True)
    fitted = slr.SingleLocationAttention(lam=0.3, step=5e-3, n_steps=60, decay=1e-2).fit(X, y, init=init)
    start = slr.overlaps_of(k, v, task.k_star, task.v_star)
    path = theory.gradient_descent(start, d=30, L=4, gamma=2**-0.5, lam=0.3, decay=1e-2, step=5e-3, n_steps=60)
    end = slr.overlaps_of(fitted.k_, fitted.v_, task.k_star, task.v_star)
    # gradients from n samples differ from the population's by about d^(1/2) n^(-1/2) = .03
    assert np.allclose(end, path[-1, 0], atol=0.03)
    assert fitted.lam_ == pytest.approx(0.3 / 1.6)


def test_partial_fit_is_one_step_of_sgd_per_batch():
    task = small_task()
    X, y = task.sample(40, seed=0)
    online = slr.SingleLocationAttention(lam=0.3, step=1e-2, random_state=3)
    for i in range(4):
        online.partial_fit(X[10 * i : 10 * i + 10], y[10 * i : 10 * i + 10])
    assert online.n_iter_ == 4
    one = slr.SingleLocationAttention(lam=0.3, step=1e-2, n_steps=1)
    same = slr.SingleLocationAttention(lam=0.3, step=1e-2)
    assert np.allclose(one.fit(X, y, np.eye(2, 12)).k_, same.partial_fit(X, y, np.eye(2, 12)).k_)


def test_step_beyond_the_stability_limit_warns_with_the_limit():
    X, y = slr.Task(d=400, L=10).sample(5)
    with pytest.warns(UserWarning, match=r"stability limit 0\.0023"):
        slr.SingleLocationAttention(lam=1.0, step=4e-3, n_steps=1, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (slr.SingleLocationAttention(lam=0.0), "lam must be"),
        (slr.SingleLocationAttention(step=-1.0), "step must be"),
        (slr.SingleLocationAttention(n_steps=0), "n_steps must be"),
        (slr.SingleLocationAttention(batch_size=0), "batch_size must be"),
        (slr.SoftmaxAttention(solver="newton"), "solver must be one of"),
        (slr.SoftmaxAttention(ridge_k=-1.0), "ridge_k must be"),
        (slr.AMP(noise_std=0.0), "noise_std must be"),
        (slr.AMP(damping=1.0), "damping must be"),
        (slr.LinearPredictor(ridge=-1.0), "ridge must be"),
    ],
)
def test_bad_options_are_named(learner, message):
    X, y = small_task().sample(20)
    with pytest.raises(ValueError, match=message):
        learner.fit(X, y)


def test_softmax_attention_follows_state_evolution_from_any_start():
    task = slr.Task(d=300, L=3, gamma=1.0, nu=2.0, noise_std=0.1, seed=1)
    X, y = task.sample(1500, seed=0)
    teacher = np.stack([task.k_star, task.v_star]) * np.sqrt(300)
    informed = slr.SoftmaxAttention().fit(X, y, init=teacher)
    blind = slr.SoftmaxAttention(random_state=0).fit(X, y)
    assert informed.objective_ == pytest.approx(blind.objective_, rel=1e-4)
    overlaps = informed.k_ @ task.k_star / np.sqrt(300), informed.v_ @ task.v_star / np.sqrt(300)
    # state evolution .496, .801; one run fluctuates by about .02 at d = 300
    assert overlaps == pytest.approx((0.496, 0.801), abs=0.08)


def test_adam_reaches_what_lbfgs_reaches():
    X, y = slr.Task(d=40, L=3, gamma=1.0, nu=2.0, noise_std=0.1).sample(400, seed=0)
    for kind in (slr.SoftmaxAttention, slr.LinearAttention):
        newton, adam = kind(random_state=0).fit(X, y), kind(random_state=0, solver="adam").fit(X, y)
        assert adam.objective_ == pytest.approx(newton.objective_, rel=1e-3)


def test_padding_is_ignored_by_every_attention():
    task = slr.Task(d=8, L=3, gamma=1.0, nu=4.0)
    X, y = task.sample(100, seed=0)
    padded = np.concatenate([X, np.zeros((100, 2, 8))], axis=1)
    for kind in (slr.SoftmaxAttention, slr.LinearAttention, slr.SoftplusAttention):
        learner = kind(random_state=0).fit(X, y)
        assert np.allclose(learner.predict(X), learner.predict(padded))
        assert np.allclose(kind(random_state=0).fit(padded, y).predict(X), learner.predict(X), atol=1e-4)


def test_too_few_iterations_are_reported():
    X, y = slr.Task(d=40, L=3, gamma=1.0, nu=2.0).sample(200, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"SoftmaxAttention did not converge: max_iter reached \(1 iter"):
        assert not slr.SoftmaxAttention(max_iter=1, random_state=0).fit(X, y).converged_
    with pytest.warns(ConvergenceWarning, match=r"AMP did not converge: max_iter reached \(3 iter"):
        assert not slr.AMP(nu=2.0, max_iter=3).fit(X, y).converged_


def test_amp_follows_the_bayes_optimal_state_evolution(seed):
    errors = []
    for i in range(3):
        task = slr.Task(d=400, L=3, gamma=1.0, nu=2.0, noise_std=0.1, seed=100 * seed + i)
        X, y = task.sample(800, seed=(2 * i))
        X_test, y_test = task.sample(4000, seed=2 * i + 1)
        learner = slr.AMP(nu=2.0, noise_std=0.1).fit(X, y)
        assert learner.converged_
        errors.append(np.mean((learner.predict(X_test) - y_test) ** 2) - 0.01)
    # state evolution .411; three standard errors and .02 for d = 400 (.01 is what is seen at d = 800)
    assert np.mean(errors) == pytest.approx(0.411, abs=3 * np.std(errors, ddof=1) / np.sqrt(3) + 0.02)
