"""What training with weight decay reaches, on tokens."""

import numpy as np
import pytest

from attnlab import aim
from attnlab.aim import theory


def planted(seed, d=40, alpha=0.15):
    task = aim.Task(d, seed=seed)
    return task, *task.sample(task.n_samples(alpha), seed=seed)


def test_smallest_trace_of_real_tokens():
    found = []
    for seed in range(3):
        task, X, y = planted(seed)
        model = aim.NuclearNorm().fit(X, y)
        assert model.converged_
        found.append(((model.S_ - task.S) ** 2).sum() / task.d)
    # +0 to +15 % at d = 64; one instance at d = 40 scatters by 15 %
    assert 0.75 < np.mean(found) / float(theory.erm(0.15, 0.5)) < 1.4


def test_gradient_descent_with_decay_is_the_convex_minimum():
    _, X, y = planted(1, d=24, alpha=0.2)
    convex = aim.NuclearNorm(0.05, tol=1e-7).fit(X, y)
    descent = aim.GradientDescent(
        24, loss="logits", weight_decay=0.05, optimizer=aim.Adam(0.05, 1500), random_state=0
    ).fit(X, y)
    assert descent.converged_
    assert np.linalg.norm(descent.S_ - convex.S_) < 1e-2 * np.linalg.norm(convex.S_)
    predicted = theory.erm(0.2, 0.5, weight_decay=0.05)
    # rank of a d = 24 matrix in steps of 0.04
    assert convex.rank_ / 24 == pytest.approx(predicted.rank, abs=0.13)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_learned_spectrum_has_its_law_at_d_80(seed):
    task, X, y = planted(seed, 80, 0.15)
    learned = np.sort(np.linalg.eigvalsh(aim.NuclearNorm(0.1, tol=1e-6, max_iter=2000).fit(X, y).S_))
    result = theory.erm(task, 0.15, weight_decay=0.1)
    grid = np.linspace(1e-6, 8, 4000)
    mass = np.cumsum(theory.erm_density(grid, result, 0.5)) * (grid[1] - grid[0])
    law = 1 - result.rank + mass
    seen = np.searchsorted(learned, grid, side="right") / 80
    # the limit of the acceptance test; .019 to .027 were seen elsewhere
    assert np.abs(seen - law).max() < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.15])
def test_smallest_trace_at_d_64(alpha):
    found = []
    for seed in range(12):
        task, X, y = planted(seed, 64, alpha)
        model = aim.NuclearNorm(tol=1e-5).fit(X, y)
        found.append(((model.S_ - task.S) ** 2).sum() / 64)
    ratio = np.array(found) / float(theory.erm(alpha, 0.5))
    # finite size adds 0 to 15 %: 1.09(2) and 1.16(2) here; two standard errors
    assert 1 <= ratio.mean() <= 1.15 + 2 * ratio.std(ddof=1) / np.sqrt(12)


@pytest.mark.slow
def test_smallest_trace_recovers_beyond_its_threshold():
    task, X, y = planted(0, 64, 0.24)
    assert ((aim.NuclearNorm(tol=1e-5).fit(X, y).S_ - task.S) ** 2).sum() / 64 < 1e-3


@pytest.mark.slow
def test_cross_entropy_descent_is_the_convex_minimum():
    task, X, y = planted(1, 80, 0.15)
    options = {"weight_decay": 0.02, "loss": "cross_entropy"}
    convex = aim.NuclearNorm(**options, tol=1e-7, max_iter=5000).fit(X, y)
    adam = aim.Adam(0.03, 4000)
    descent = aim.GradientDescent(80, **options, optimizer=adam, random_state=0).fit(X, y)
    assert np.linalg.norm(descent.S_ - convex.S_) < 1e-2 * np.linalg.norm(convex.S_)
    assert convex.rank_ / 80 == pytest.approx(theory.erm(task, 0.15, **options).rank, abs=0.03)
