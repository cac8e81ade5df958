"""The system in the arena, the planner and on disk, found by its entry point alone."""

import numpy as np
from attnlab_icl import LinearAttention, RidgeInContext, Task

from attnlab import lab, persist


def test_the_learners_of_contexts_beat_those_that_cannot_read_them():
    names = ["linear attention", "ridge in context", "linear"]
    comparison = lab.arena(["icl.contexts"], names, n=[240], seeds=2)
    errors = {name: comparison.error("icl.contexts", name).value for name in names}
    assert errors["ridge in context"] < errors["linear attention"] < 0.5 < 0.8 < errors["linear"]


def test_no_other_task_is_taken():
    comparison = lab.arena(["slr.max"], ["linear attention", "linear"], n=[60], seeds=1)
    assert "made for other tasks" in {str(reason) for reason in comparison.declined.values()}


def test_a_plan_stands_beside_its_theory():
    plan = lab.plan(Task(d=6, l=30, k=6), error=0.5, learners=[LinearAttention(ridge=1e-2)], n_max=512, seeds=2)
    (need,) = plan.needs
    assert need.theory is not None
    assert 0.3 < need.measured.value / need.theory.n < 3


def test_fitted_learners_are_saved_and_loaded(tmp_path):
    task = Task(d=6, l=12, k=4)
    X, y = task.sample(100)
    for learner in (LinearAttention(), RidgeInContext(noise_std=0.1)):
        persist.save(learner.fit(X, y), tmp_path / "learner.npz")
        np.testing.assert_array_equal(persist.load(tmp_path / "learner.npz").predict(X), learner.predict(X))
