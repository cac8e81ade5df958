"""Phase 6 without local search: the paper's net ends at the accuracy of the span."""

import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.engine import iterated, race
from attnlab.mha.engine import levenberg_marquardt as engine


def specified(d, k, rho, n, seed):
    """The layer and the examples of the specification's table, which fixes their generators."""
    g = np.random.default_rng(seed)
    theta = np.stack([g.standard_normal((d, d)) for _ in range(2)])
    theta *= rho / np.linalg.norm(theta, axis=(1, 2), keepdims=True)
    task = mha.Task(d=d, k=k, n_heads=2, planted=(theta, g.standard_normal((2, d, d)) / np.sqrt(d)))
    X = 2.0 * np.random.default_rng(seed + 1).integers(0, 2, (n, k, d)) - 1
    return task, X, mha.attention(X, *task.layer)


@pytest.fixture
def no_descent(monkeypatch):
    """Any call of Levenberg-Marquardt is an error."""

    def refused(*args, **options):
        raise AssertionError("Levenberg-Marquardt was called")

    for module in (engine, race, iterated):
        monkeypatch.setattr(module, "levenberg_marquardt", refused)
    monkeypatch.setattr(iterated, "iterated_levenberg_marquardt", refused)


@pytest.mark.parametrize(
    ("d", "k", "rho", "n", "seed", "known"),
    [
        (8, 2, 2.0, 30000, 0, 1.7e-5),
        (8, 2, 2.0, 30000, 1, 8.2e-5),
        (8, 3, 2.0, 20000, 0, 7.1e-4),
        (8, 2, 4.0, 30000, 0, 7.2e-4),
    ],
)
def test_the_net_ends_at_the_error_of_the_span(d, k, rho, n, seed, known, no_descent):
    task, X, y = specified(d, k, rho, n, seed)
    learner = mha.SculptingLearner(2, phase6="net", holdout=None, random_state=0).fit(X, y)
    # three times the error of the reference run, whose rows were other ones
    assert task.nmse(learner.theta_, learner.w_) < 3 * known
    step = learner.steps_[-1]
    assert step.name == "net of the hull, regression"
    assert (step.summary["points"], step.summary["tuples"]) == (100, 4950)
    point = next(s for s in learner.steps_[::-1] if s.name.startswith("body")).arrays["theta"]
    first, second = learner.theta_ - point
    # both heads on one line through the point of smallest norm
    along = first / np.linalg.norm(first)
    assert np.linalg.norm(second - np.sum(second * along) * along) < 1e-12
    assert learner.converged_
    assert learner.stop_reason_ == "all candidates compared"


@pytest.mark.parametrize("phase6", ["span", "plane", "zoom"])
def test_no_search_of_the_span_leaves_it(phase6):
    task, X, y = specified(8, 2, 2.0, 30000, 0)
    learner = mha.SculptingLearner(2, phase6=phase6, net_points=200, holdout=None, random_state=0).fit(X, y)
    flat, basis = learner.theta_.reshape(2, -1), learner.span_.reshape(2, -1)
    assert np.linalg.norm(flat - flat @ basis.T @ basis) < 1e-10 * np.linalg.norm(flat)
    assert 1e-8 < task.nmse(learner.theta_, learner.w_) < {"span": 1e-4, "zoom": 1e-4, "plane": 1e-2}[phase6]


def test_refinement_is_what_makes_the_layer_exact():
    task, X, y = specified(8, 2, 2.0, 30000, 0)
    learner = mha.SculptingLearner(2, holdout=None, random_state=0).fit(X, y)
    assert learner.steps_[-1].name == "span search and free refinement"
    assert task.nmse(learner.theta_, learner.w_) < 1e-15


def test_three_heads_take_a_net_of_two_axes():
    task = mha.Task(d=4, k=2, n_heads=3, rho=1.0)
    learner = mha.SculptingLearner(3, phase6="net", net_points=40, net_rows=400, random_state=0).fit(*task.sample(3000))
    assert learner.theta_.shape == (3, 4, 4)
    points = int(learner.steps_[-1].summary["points"])
    assert learner.steps_[-1].summary["tuples"] == points * (points - 1) * (points - 2) / 6


def test_one_head_is_the_point_of_smallest_norm():
    task = mha.Task(d=4, k=2, n_heads=1, rho=1.0)
    learner = mha.SculptingLearner(1, phase6="net", random_state=0).fit(*task.sample(2000))
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W, tokens=2).theta_error < 0.05
    assert learner.gap_heads_ == 1


def test_too_many_heads_are_refused_with_their_tuples():
    X, y = mha.Task(d=4, k=2, n_heads=4).sample(600)
    with pytest.raises(ValueError, match=r"phase6='net' takes at most 3 heads: n_heads=4 would compare .*e\+.. tuples"):
        mha.SculptingLearner(4, phase6="net").fit(X, y)
    with pytest.raises(ValueError, match="net_points=4000 at d=4 needs"):
        mha.SculptingLearner(2, phase6="net", net_points=4000).fit(X, y)
