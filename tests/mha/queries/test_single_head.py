import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.theory import query_count


def oracle(theta, w, noise=0.0):
    rng = np.random.default_rng(0)

    def answer(X):
        exact = mha.attention(X, theta, w)
        return exact + noise * rng.uniform(-1, 1, exact.shape)

    return answer


def head(d, rank=None, d_out=None, rho=4.0):
    task = mha.Task(d=d, k=2, n_heads=1, d_out=d_out, rho=rho)
    theta = task.Theta
    if rank is not None:
        left, size, right = np.linalg.svd(theta[0])
        theta = ((left[:, :rank] * size[:rank]) @ right[:rank])[None]
    return theta, task.W


@pytest.mark.parametrize("d", [8, 16, 30])
@pytest.mark.parametrize("method", ["pairs", "wide", "low_rank"])
def test_exact_answers_give_the_head_from_the_stated_number_of_queries(d, method):
    rank = 2 if method == "low_rank" else None
    theta, w = head(d, rank)
    learner = mha.QueryLearner(d, method=method, rank=rank, random_state=0).fit(oracle(theta, w))
    assert learner.n_queries_ == query_count(d, method, rank)
    assert np.linalg.norm(learner.theta_ - theta) < 1e-9 * np.linalg.norm(theta)
    assert np.abs(learner.w_ - w).max() < 1e-12


def test_the_numbers_of_queries_of_one_head():
    assert [int(query_count(8, method, 2)) for method in ("pairs", "wide", "low_rank")] == [72, 16, 104]


def test_one_output_is_enough_for_pairs():
    theta, w = head(6, d_out=1)
    learner = mha.QueryLearner(6).fit(oracle(theta, w))
    assert np.abs(learner.theta_ - theta).max() < 1e-9


def test_a_coordinate_that_the_projection_hides_is_still_found():
    theta, w = head(5)
    w = w.copy()
    w[0, 3] = 0
    learner = mha.QueryLearner(5).fit(oracle(theta, w))
    assert np.abs(learner.theta_ - theta).max() < 1e-9


def test_inexact_answers_give_an_error_in_proportion():
    theta, w = head(8)
    errors = [np.linalg.norm(mha.QueryLearner(8).fit(oracle(theta, w, tau)).theta_ - theta) / 4 for tau in (1e-3, 1e-5)]
    assert errors[0] < 0.02
    assert errors[1] == pytest.approx(errors[0] / 100, rel=0.2)


def test_a_fitted_head_predicts():
    theta, w = head(4)
    learner = mha.QueryLearner(4).fit(oracle(theta, w))
    X = mha.Task(d=4, k=3, n_heads=1).tokens_of(5)
    assert np.abs(learner.predict(X) - mha.attention(X, theta, w)).max() < 1e-9


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mha.QueryLearner(3).fit(lambda X: X[:, 0]), ValueError, "oracle must return an array of shape"),
        (lambda: mha.QueryLearner(3).fit(lambda X: X[:1]), ValueError, r"shape \(3, 1, 3\), got \(1, 1, 3\)"),
        (lambda: mha.QueryLearner(3).fit(lambda X: X[..., : X.shape[1]]), ValueError, r"got \(9, 2, 2\)"),
        (lambda: mha.QueryLearner(3).fit(lambda X: np.full(X.shape, np.nan)), ValueError, "NaN"),
        (lambda: mha.QueryLearner(3).fit(lambda X: np.zeros(X.shape)), ValueError, "W is zero"),
        (lambda: mha.QueryLearner(3, method="low_rank").fit(lambda X: X), ValueError, "rank must be given"),
        (lambda: mha.QueryLearner(3, method="wide").fit(lambda X: X[..., :1]), ValueError, "full row rank"),
        (lambda: mha.QueryLearner(3, method="pair").fit(lambda X: X), ValueError, "did you mean 'pairs'"),
    ],
)
def test_wrong_oracles_and_settings_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
