import time
import warnings
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import mha
from attnlab.common.compute import Compute
from attnlab.mha.engine import low_rank, place, variable_projection
from attnlab.mha.engine.damped import Budget
from attnlab.mha.engine.device import levenberg_marquardt_on_device
from attnlab.mha.engine.iterated import fit_rows
from attnlab.mha.engine.levenberg_marquardt import Fit, levenberg_marquardt
from attnlab.mha.engine.normal_equations import normal_equations
from attnlab.mha.layer import Rows, rows_of


def law(m, d, k, rank, seed=0, **more):
    family = mha.LowRank(rho=4.0, rank=rank, spread=10.0)
    return mha.Task(d=d, k=k, n_heads=m, family=family, tokens_law="gaussian", seed=seed, **more)


def test_products_are_those_of_the_dense_equations():
    m, d, k, r = 2, 5, 3, 2
    task = law(m, d, k, r)
    X, y = task.sample(40)
    g = np.random.default_rng(0)
    A, B, dA, dB = g.standard_normal((4, m, d, r))
    rows = Rows(X.reshape(-1, d), np.repeat(X, k, axis=0), y.reshape(-1, d))
    theta = A @ B.transpose(0, 2, 1)
    dense = normal_equations(rows, theta, variable_projection.regress(rows, theta))
    # chain rule through Theta = A B^T
    moved = (dA @ B.transpose(0, 2, 1) + A @ dB.transpose(0, 2, 1)).ravel()
    H = (dense.H @ moved).reshape(m, d, d)
    G = dense.g.reshape(m, d, d)
    with jax.enable_x64(True):
        factors = jnp.asarray(A), jnp.asarray(B)
        times, slope = low_rank.products(factors, jnp.asarray(X), jnp.asarray(rows.Y))
        product = times((jnp.asarray(dA), jnp.asarray(dB)))
    scale = np.abs(H).max()
    assert np.abs(np.asarray(product[0]) - H @ B).max() < 1e-10 * scale
    assert np.abs(np.asarray(product[1]) - H.transpose(0, 2, 1) @ A).max() < 1e-10 * scale
    assert np.abs(np.asarray(slope[0]) - G @ B).max() < 1e-10 * np.abs(G).max()


def test_balancing_changes_the_factors_and_not_their_product():
    A, B = np.random.default_rng(0).standard_normal((2, 3, 6, 2))
    with jax.enable_x64(True):
        left, right = (np.asarray(f) for f in low_rank.balance((jnp.asarray(A), jnp.asarray(B))))
    assert np.allclose(left @ right.transpose(0, 2, 1), A @ B.transpose(0, 2, 1))
    assert np.allclose(left.transpose(0, 2, 1) @ left, right.transpose(0, 2, 1) @ right)


def test_six_heads_of_rank_four_from_the_first_starts():
    task = law(6, 16, 8, 4)
    learner = mha.AttentionLearner(6, rank=4, n_starts=3, holdout=None, random_state=0).fit(*task.sample(400))
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6
    assert learner.converged_
    assert learner.rank_ == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "d", "n", "seed", "seconds"), [*((6, 16, 400, seed, 15) for seed in range(4)), (12, 32, 500, 0, 300)]
)
def test_layers_of_rank_four_in_time(m, d, n, seed, seconds):
    task = law(m, d, 8, 4, seed)
    begun = time.process_time()
    learner = mha.AttentionLearner(m, rank=4, n_starts=3, holdout=None, random_state=seed).fit(*task.sample(n))
    # seconds of all cores together, compilation included
    assert time.process_time() - begun < seconds
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6


def test_the_rank_is_found_on_validation_examples():
    task = law(2, 8, 4, 2)
    learner = mha.AttentionLearner(2, rank="auto", n_starts=3, random_state=0).fit(*task.sample(500))
    assert learner.rank_ == 2
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6


@pytest.mark.parametrize("rank", [2, "auto"])
def test_too_few_equations_end_a_selection_and_lose_nothing(monkeypatch, rank):
    """Numbers of heads and doubled ranks beyond the data are not tried; what was fitted before is returned."""
    tried = []

    def fit(X, y, m, rank, **_):
        tried.append((m, rank))
        error = 1.0 / (len(tried) + 1)  # each fit is worth it
        return Fit(np.ones((m, 6, 6)), np.ones((m, 6, 6)), error, 1, "error stopped falling", (error,))

    monkeypatch.setattr("attnlab.mha.learners.attention_learner.race_factors", fit)
    monkeypatch.setattr("attnlab.mha.learners.selection.HeadSearch.judge", lambda self, fit: fit.nmse)
    X, y = law(1, 6, 4, 2).sample(20)  # 480 numbers: 8 heads of rank 2 have 480 unknowns, 6 of rank 6 have 648
    selecting = mha.AttentionLearner(max_heads=12, rank=rank, holdout=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = selecting.fit(X, y)
    assert learner.n_heads_ == max(m for m, _ in tried) < 12
    assert all(480 / (m * 6 * (2 * r + 6)) >= 1 for m, r in tried)


def test_a_rank_that_was_not_worth_it_is_not_fitted_again(monkeypatch):
    tried = []

    def fit(X, y, m, rank, **_):
        tried.append(rank)
        theta = np.random.default_rng(rank).standard_normal((m, 16, rank))
        error = 0.5 if rank == 4 else 0.6
        return Fit(theta @ theta.swapaxes(1, 2), np.ones((m, 16, 16)), error, 1, "error stopped falling", (error,))

    monkeypatch.setattr("attnlab.mha.learners.attention_learner.race_factors", fit)
    monkeypatch.setattr("attnlab.mha.learners.selection.HeadSearch.judge", lambda self, fit: fit.nmse)
    X, y = law(1, 16, 4, 4).sample(200)
    learner = mha.AttentionLearner(1, rank="auto", holdout=None, random_state=0).fit(X, y)
    assert tried == [4, 8]
    assert learner.rank_ == 4


@pytest.mark.parametrize("rank", [None, 2])
def test_biases_are_fitted(rank):
    task = law(2, 6, 4, 2)
    g = np.random.default_rng(0)
    # as in a trained module, the key bias lies in the row space of its head
    bias = np.stack([g.standard_normal(6) @ theta for theta in task.Theta]) / 2
    constant = g.standard_normal(6)
    X = task.tokens_of(400)
    y = mha.attention(X, task.Theta, task.W, bias, constant)
    learner = mha.AttentionLearner(2, rank=rank, bias=True, n_starts=6, random_state=0).fit(X, y)
    found = mha.align(learner.theta_, learner.w_, task.Theta, task.W, key_bias=learner.key_bias_, key_bias_ref=bias)
    assert max(found.theta_error, found.w_error, found.key_bias_error) < 1e-5
    assert np.abs(learner.constant_ - constant).max() < 1e-5
    assert learner.score(X, y) > 1 - 1e-9


def test_few_equations_warn_and_fewer_are_refused(monkeypatch):
    def begun(*args, **options):
        raise InterruptedError("the search has begun")

    monkeypatch.setattr("attnlab.mha.learners.attention_learner.race_factors", begun)
    with (
        pytest.warns(UserWarning, match=r"equations/unknowns = 3\.3 < 6: heads of rank 4 may not be found"),
        pytest.raises(InterruptedError),
    ):
        mha.AttentionLearner(6, rank=4, holdout=None).fit(*law(6, 16, 8, 4).sample(60))
    X, y = law(2, 8, 4, 2).sample(30)
    with pytest.raises(ValueError, match="too few for n_heads=2, rank=2"):
        mha.AttentionLearner(2, rank=2, holdout=None).fit(X[:4], y[:4])


def test_the_device_step_ends_where_the_step_by_blas_does():
    task = mha.Task(d=8, k=4, n_heads=2)
    rows = rows_of(*task.sample(200))
    start = 0.5 * np.random.default_rng(1).standard_normal((2, 8, 8)) / 8
    ours, theirs = levenberg_marquardt(rows, start), levenberg_marquardt_on_device(rows, start)
    assert ours.n_iter == theirs.n_iter
    assert np.abs(ours.theta - theirs.theta).max() < 1e-8
    assert np.abs(ours.w - theirs.w).max() < 1e-8


def test_the_learner_reaches_the_device_step(monkeypatch):
    calls = []

    def device_step(rows, theta, **options):
        calls.append(len(rows))
        return levenberg_marquardt_on_device(rows, theta, **options)

    monkeypatch.setattr(place, "jax_device", lambda name: FakeDevice())
    monkeypatch.setattr(place, "levenberg_marquardt_on_device", device_step)
    monkeypatch.setattr("attnlab.mha.learners.attention_learner.placed", lambda *options: nullcontext())
    task = mha.Task(d=8, k=4, n_heads=2)
    learner = mha.AttentionLearner(2, compute=Compute(device="gpu"), random_state=0).fit(*task.sample(300))
    assert calls
    assert mha.align(learner.theta_, learner.w_, task.Theta, task.W).theta_error < 1e-6


class FakeDevice:
    platform = "gpu"

    def memory_stats(self):
        return {"bytes_limit": 1e9}


def test_what_does_not_fit_on_the_device_names_the_rank(monkeypatch):
    monkeypatch.setattr(place, "jax_device", lambda name: FakeDevice())
    with pytest.raises(ValueError, match=r"take 39 GB and the device has 1 GB; give rank="):
        place.full_solver(Compute(device="gpu"), 12, 64, Budget())
    assert place.full_solver(Compute(), 1, 4, Budget()) is fit_rows


def test_options_that_mean_nothing_here_are_refused():
    X, y = mha.Task(d=4, k=2, n_heads=1).sample(50)
    with pytest.raises(ValueError, match=r"compute\.precision is not supported by AttentionLearner"):
        mha.AttentionLearner(1, compute=Compute(precision="tf32")).fit(X, y)


def test_a_budget_ends_the_factors_too():
    task = law(2, 8, 4, 2)
    fit = low_rank.race_factors(
        *task.sample(100), 2, 2, n_starts=5, rng=np.random.default_rng(0), budget=Budget.of(0.0)
    )
    assert fit.n_iter == 0
    assert fit.reason == "max_seconds reached"
