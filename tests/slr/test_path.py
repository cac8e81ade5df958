"""Parameters, seeds and convergence travel from the law to the learner; a new activation is one object."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from attnlab import slr
from attnlab.common.records import Records
from attnlab.slr import theory
from attnlab.slr.figures import descent
from attnlab.slr.figures.cells import task_of
from attnlab.slr.initial import vectors


def test_a_name_with_parameters_builds_the_same_law_as_the_object():
    assert slr.Task(8, 3, law="spiked", nu=2.0, gamma=1.0) == slr.Task(8, 3, law=slr.Spiked(nu=2.0, gamma=1.0))
    assert slr.Task(8, 3, law="max", nu=np.inf) == slr.Task(8, 3, law=slr.Max(nu=np.inf))
    assert slr.Task(8, 3).gamma == 2**-0.5
    task = slr.Task(8, 3, law=slr.Spiked(nu=2.0, gamma=1.0))
    assert replace(task, d=9).strength == 2.0
    with pytest.raises(ValueError, match="nu is given twice"):
        slr.Task(8, 3, law=slr.Spiked(nu=2.0), nu=3.0)
    with pytest.raises(TypeError, match="gamma is given twice"):
        theory.oracle_risk(slr.Task(8, 3), lam=0.1, gamma=1.0)


def test_equal_integers_share_no_numbers():
    d, number = 400, 7
    task = slr.Task(d, 3, seed=number, gamma=1.0, nu=0.0)  # no mark: tokens have no reason to correlate with k*
    X, y = task.sample(50, seed=number)
    online = slr.SingleLocationAttention(step=1e-12, random_state=number).partial_fit(X, y)
    batch = slr.SingleLocationAttention(step=1e-12, n_steps=1, random_state=number).fit(X, y)
    softmax = slr.SoftmaxAttention(max_iter=1, ridge_k=0.0, ridge_v=0.0, random_state=number)
    softmax._check_fit(X, y)
    (start,) = softmax._starts(None)
    k, v = (w[0] for w in vectors(1, task.k_star, task.v_star, seed=number))
    drawn = [online.k_, online.v_, batch.k_, batch.v_, start[:d], start[d:], k, v]
    truth = [task.k_star, task.v_star]
    for one in drawn:
        for other in (*truth, X[0, 0], X[0, 1]):
            assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(d)
    assert all(abs(np.corrcoef(X[0, 0], w)[0, 1]) < 4 / np.sqrt(d) for w in truth)


def test_theory_with_a_task_is_theory_with_its_parameters():
    task = slr.Task(60, 5, gamma=0.8, noise_std=0.2)
    law = {"d": 60, "L": 5, "gamma": 0.8, "noise_std": 0.2}
    start = theory.initial_overlaps(60, 2, seed=1)
    options = {"lam": 0.3, "step": 1e-3, "n_steps": 5}
    assert theory.risk(task, 0.4, 0.5, lam=0.3) == theory.risk(0.4, 0.5, lam=0.3, **law)
    assert theory.linear_risk(task) == theory.linear_risk(**law)
    assert theory.bayes_risk(task, n_draws=100) == theory.bayes_risk(**law, n_draws=100)
    assert theory.best_temperature(task) == theory.best_temperature(**law)
    path = theory.gradient_descent(task, start, **options)
    assert np.array_equal(path, theory.gradient_descent(start, **law, **options))
    with pytest.raises(TypeError, match="needs nu"):
        theory.bayes_attention_risk(L=3)


def test_theory_refuses_by_name_what_it_does_not_cover():
    with pytest.raises(ValueError, match="erf attention is not solved for Max"):
        theory.oracle_risk(slr.Task(8, 3, law="max"), lam=0.1)
    with pytest.raises(ValueError, match="gamma must be 1 for attention_risk"):
        theory.attention_risk(slr.Task(8, 3), "softmax")
    with pytest.raises(ValueError, match="locations must be 1 for bayes_state_evolution"):
        theory.bayes_state_evolution(1.0, nu=1.0, L=3, locations=2, noise_std=0.1)


def test_residuals_are_true():
    best = theory.best_temperature(d=100, L=5)
    slopes = [np.log(theory.oracle_risk(d=100, L=5, lam=float(best) * f).value) for f in (1.001, 0.999)]
    assert abs(slopes[0] - slopes[1]) / 0.002 < 1e-4
    assert best.detail["residual"] < 1e-6
    threshold = theory.instability_threshold(d=400)
    assert threshold.detail["residual"] == abs(theory.transverse_exponent(d=400, L=10, lam=float(threshold)).value)
    # its best scale is infinite: the end of the search is no minimum
    softplus = theory.attention_risk("softplus", nu=np.inf, L=2, law="max")
    assert not softplus.converged
    assert softplus.error > 1e-4


@dataclass(frozen=True)
class Square(slr.Elementwise):
    """Weights 1 + chi + chi^2 / 4: an activation that attnlab does not have."""

    name: ClassVar[str] = "square"

    def g(self, chi, xp):
        return 1 + chi + chi**2 / 4


def test_a_new_activation_is_one_object():
    task = slr.Task(d=60, L=3, gamma=1.0, nu=4.0, noise_std=0.1)
    X, y = task.sample(600, seed=0)
    fitted = slr.Attention(Square(), random_state=0).fit(X, y)
    assert fitted.converged_
    best = theory.attention_risk(task, Square())
    chi = np.random.default_rng(0).standard_normal((200_000, 3)) + np.array([2.0, 0, 0])
    sigma = Square().g(best.detail["scale"] * chi, None)
    direct = 1 - sigma[:, 0].mean() ** 2 / np.sum(sigma**2, axis=1).mean()
    # the largest weight has a variance of order one: 4 standard errors are below .01
    assert best == pytest.approx(direct, abs=0.01)
    assert theory.attention_risk(task, "softmax") < best < 1
    predicted = theory.erm_state_evolution(task, Square(), 10.0, n_draws=512)
    assert predicted.converged
    X_test, y_test = task.sample(4000, seed=1)
    # one run at d = 60 scatters by about .05 around the state evolution
    assert np.mean((fitted.predict(X_test) - y_test) ** 2) - 0.01 == pytest.approx(predicted.value, abs=0.15)


def test_every_learner_says_how_it_ended():
    task = slr.Task(d=12, L=4, noise_std=0.1, gamma=1.0, nu=6.0)
    X, y = task.sample(300, seed=0)
    learners = [
        slr.NullPredictor(),
        slr.LinearPredictor(),
        slr.OraclePredictor(task),
        slr.BayesPredictor(task),
        slr.AMP(6.0, 0.1, damping=0.8, max_iter=1000),
        slr.SoftmaxAttention(random_state=0),
        slr.SingleLocationAttention(lam=0.3, step=5e-3, n_steps=4000, random_state=0),
    ]
    for learner in learners:
        learner.fit(X, y)
        assert learner.converged_, learner
        assert learner.n_iter_ >= 1
        assert isinstance(learner.stop_reason_, str)
    with pytest.warns(ConvergenceWarning, match="the loss still falls"):
        assert not slr.SingleLocationAttention(lam=0.3, step=5e-3, n_steps=20, random_state=0).fit(X, y).converged_
    # Adam cannot reach 1e-9 of its first gradient in 50 steps, and says so
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        assert not slr.SoftmaxAttention(solver="adam", tol=1e-9, max_iter=50, random_state=0).fit(X, y).converged_


@pytest.mark.parametrize("knob", [{"gamma": 0.9}, {"L": 4}, {"noise_std": 0.3}, {"nu": 3.0}, {"locations": 2}])
def test_the_task_of_a_cell_has_its_knobs(knob):
    task = task_of({"d": 20, "L": 5, "lam": 0.1, **knob})
    (name, value), *_ = knob.items()
    assert getattr(task, name) == value


def test_the_risk_of_the_planted_pair_in_a_picture_is_that_of_the_cells_law():
    figure = replace(descent.SMALL, claims=()).changed(
        "quick", {"d": 30, "L": 4, "runs": 3, "n_steps": 400, "seeds": 1}
    )
    (cell,) = figure.cells("quick")
    record = cell()
    rows = [{**cell.params, **{k: v for k, v in record.items() if k != "rows"}, **row} for row in record["rows"]]
    drawn = figure.draw(Records.of(rows)).axes[0].get_lines()
    exact = theory.oracle_risk(d=30, L=4, lam=0.1).value
    assert any(np.allclose(np.asarray(line.get_ydata()), exact) for line in drawn)


@parametrize_with_checks(
    [
        slr.NullPredictor(n_tokens=1),
        slr.LinearPredictor(n_tokens=1),
        slr.SingleLocationAttention(n_tokens=1, n_steps=20, random_state=0),
        slr.Attention("raised_erf", n_tokens=1, random_state=0),
        slr.AMP(n_tokens=1, max_iter=20),
    ],
    expected_failed_checks=lambda e: (
        {"check_estimators_dtypes": "a row of zeros is padding, which message passing refuses"}
        if isinstance(e, slr.AMP)
        else {}
    ),
)
def test_flat_form_passes_scikit_learns_checks(estimator, check):
    check(estimator)
