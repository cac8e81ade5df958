"""Online SGD follows the flow of its overlaps."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from attnlab import aim


def test_the_overlap_follows_the_flow_of_its_own_teacher():
    task = aim.Task(40, seed=1)
    model = aim.OnlineSGD(40, step=0.15, batch_size=256, random_state=2).fit(task, 4.0)
    flow = aim.theory.sgd_flow(model.trace_["time"], spectrum=np.linalg.eigvalsh(task.S))
    # the start is random: differences of order 1/d
    assert np.abs(model.trace_["overlap"] - flow.overlap).max() < 0.05
    np.testing.assert_allclose(model.trace_["self_overlap"], flow.self_overlap, rtol=0.15)
    assert model.converged_
    assert model.trace_["time"][-1] == pytest.approx(4.0, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "step"), [("squared_output", 0.3), ("cross_entropy", 0.15)])
def test_error_and_overlap_at_d_100(loss, step):
    ends = {4: [], 8: []}
    for seed in range(3):
        task = aim.Task(100, seed=seed)
        model = aim.OnlineSGD(100, loss, step=step, batch_size=256, random_state=seed).fit(task, 8.0)
        flow = aim.theory.sgd_flow(model.trace_["time"], loss=loss, spectrum=np.linalg.eigvalsh(task.S))
        for time, found in ends.items():
            i = int(np.argmin(np.abs(model.trace_["time"] - time)))
            found.append((model.trace_["overlap"][i] - flow.overlap[i], model.trace_["value"][i] / flow.value[i]))
    for found in ends.values():
        shift, ratio = np.mean(found, axis=0)
        # step d / batch = 0.12 and 0.06
        assert abs(shift) < 0.03
        assert abs(ratio - 1) < 0.1


def test_the_slope_is_the_gradient_of_the_mean_loss():
    rng = np.random.default_rng(0)
    X, y = aim.Task(6, tokens=3, seed=1).sample(5)
    model = aim.OnlineSGD(4, batch_size=64, step=1e-3, random_state=0).fit(X, y)
    W, direction = rng.standard_normal((2, 6, 4))

    def loss(W):
        h = model.layout_.indices(X, W @ W.T)
        return ((model.law.output(h) - y) ** 2).sum() / 2 / len(X)

    numerical = (loss(W + 1e-5 * direction) - loss(W - 1e-5 * direction)) / 2e-5
    assert (model._slope(X, y, W) * direction).sum() == pytest.approx(numerical, rel=1e-6)


def test_fresh_sequences_may_be_learned_by_their_logits():
    task = aim.Task(16, seed=1)
    model = aim.OnlineSGD(16, "logits", step=0.05, batch_size=128, random_state=0).fit(task, 2.0)
    assert model.trace_["value"][-1] < 0.2 * model.trace_["value"][0]


def test_one_pass_over_data_predicts():
    task = aim.Task(16, seed=3)
    X, y = task.sample(20000, seed=4)
    model = aim.OnlineSGD(16, step=0.2, batch_size=100, random_state=0).fit(X, y)
    assert model.n_iter_ == 200
    assert "value" not in model.trace_
    assert model.score(*task.sample(500, seed=5)) > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [({"init": 0.0}, "init"), ({"loss": "hinge"}, "loss"), ({"step": -1.0}, "step"), ({"channel": "hardmax"}, "loss")],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        aim.OnlineSGD(8, **options).fit(aim.Task(8), 1.0)


def test_steps_that_are_too_large_are_named():
    with pytest.warns(UserWarning, match="step d / batch"):
        aim.OnlineSGD(8, step=1.0, batch_size=8, random_state=0).fit(aim.Task(8), 0.5)


@pytest.mark.filterwarnings("ignore:step d / batch", "ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
def test_weights_that_are_no_numbers_are_not_success():
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model = aim.OnlineSGD(8, "logits", step=1e3, random_state=0).fit(aim.Task(8, seed=1), 1e4)
    assert not model.converged_
