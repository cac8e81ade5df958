import numpy as np
import pytest
from scipy import optimize

from attnlab.rfa.activations import as_activation
from attnlab.rfa.backend import Blas, Features
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures, MLPFeatures
from attnlab.rfa.kernels import kernel
from attnlab.rfa.solvers.cg import preconditioned_cg
from attnlab.rfa.solvers.erm import LOSSES, on_ball, penalised
from attnlab.rfa.solvers.few_keys import GROUP, gram_of_scores, has_few_keys
from attnlab.rfa.solvers.path import ridge_path
from attnlab.rfa.solvers.ridge import dual, gram, nested_predictions, primal, whole_gram
from attnlab.rfa.task import Task


@pytest.fixture
def data():
    X, y = Task(d=4, n_keys=3).sample(60, seed=3)
    return X, np.stack([y, y**2], axis=1)


def features(X, heads=30, dtype="float64"):
    device = Blas(dtype)
    return Features(AttentionFeatures(heads, 4, 1, mean_matrix(None, 4)), device.put(X), device)


@pytest.mark.parametrize("ridge", [1e-6, 1e-2])
def test_primal_and_dual_agree(data, ridge):
    X, Y = data
    Phi = np.concatenate(list(features(X)), axis=1)
    thetas = [
        primal(features(X), Y, ridge),
        dual(features(X), Y, ridge, keep=True),
        dual(features(X), Y, ridge, keep=False),
    ]
    expected = Phi.T @ np.linalg.solve(Phi @ Phi.T + 60 * ridge * np.eye(60), Y)
    for theta in thetas:
        assert np.abs(Phi @ (theta - expected)).max() < 1e-10


def test_gram_blocks_add_up(data):
    X, _ = data
    Phi = np.concatenate(list(features(X, 600)), axis=1)
    G = gram(features(X, 600), 60, Blas("float64"))
    np.testing.assert_allclose(np.tril(G), np.tril(Phi @ Phi.T), atol=1e-12)


@pytest.mark.parametrize("name", ["relu", "softmax", "erf", "relu_sum"])
@pytest.mark.parametrize("heads", [30, GROUP + 100])
def test_few_keys_give_the_same_gram_matrix_from_their_scores(name, heads):
    X, y = Task(d=16, n_keys=3).sample(40, seed=3)
    device = Blas("float64")
    heads = AttentionFeatures(heads, 16, 1, mean_matrix("identity", 16), as_activation(name))
    few = Features(heads, device.put(X), device)
    assert has_few_keys(few)
    G, expected = gram_of_scores(few), np.tril(gram(few, 40, device))
    # sums of 17 M products, float64
    assert np.abs(np.tril(G) - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.array_equal(np.tril(whole_gram(few)), np.tril(G))
    Phi = np.concatenate(list(few), axis=1)
    theta = dual(few, y[:, None], 1e-3, keep=True)
    alpha = np.linalg.solve(Phi @ Phi.T + 40e-3 * np.eye(40), y[:, None])
    assert np.abs(theta - Phi.T @ alpha).max() < 1e-9 * np.abs(theta).max()


def test_many_keys_an_accelerator_or_other_units_do_not_count_as_few():
    device = Blas()
    X, _ = Task(d=16, n_keys=4).sample(5)
    assert not has_few_keys(Features(AttentionFeatures(8, 16, 1, mean_matrix(None, 16)), device.put(X), device))
    assert not has_few_keys(Features(MLPFeatures(8, 16, 5, 1), device.put(X), device))


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_predictions_of_nested_samples_are_those_of_each_sample(data, ridge, keep):
    X, Y = data
    f = nested_predictions(features(X), Y[:50], (10, 50), ridge, keep).reshape(-1, 2, 2)
    Phi = np.concatenate(list(features(X)), axis=1)
    for i, n in enumerate((10, 50)):
        alpha = np.linalg.solve(Phi[:n] @ Phi[:n].T + n * ridge * np.eye(n), Y[:n])
        np.testing.assert_allclose(f[:, i], Phi[50:] @ Phi[:n].T @ alpha, rtol=1e-6, atol=1e-8)


def test_a_pass_that_keeps_no_block_may_reuse_its_memory(data):
    X, _ = data
    fresh = list(features(X, 300))
    for kept, block in zip(fresh, features(X, 300).passing(), strict=True):
        np.testing.assert_array_equal(block, kept)
    first, second, last = features(X, 300).passing()
    assert first is second
    assert last.shape != second.shape


def test_conjugate_gradients_reach_the_direct_solution(data):
    X, Y = data
    Phi = np.concatenate(list(features(X)), axis=1)
    solution = preconditioned_cg(list(features(X)), Y, 1e-6, Blas("float64"), rank=20, tolerance=1e-10)
    assert solution.converged
    expected = np.linalg.solve(Phi @ Phi.T + 60e-6 * np.eye(60), Y)
    assert np.abs(Phi @ Phi.T @ (solution.value - expected)).max() < 1e-7


def test_the_preconditioner_saves_iterations():
    X, y = Task(d=8, n_keys=4).sample(400, seed=0)
    device = Blas("float64")
    blocks = list(Features(AttentionFeatures(200, 8, 0, mean_matrix(None, 8)), device.put(X), device))
    with_few, with_many = (preconditioned_cg(blocks, y[:, None], 1e-6, device, rank=r).n_iter for r in (2, 200))
    assert with_many < with_few / 2


def test_leave_one_out_and_gcv_are_what_they_say(data):
    X, Y = data
    K, n, lam = kernel(X), 60, 1e-3
    path = ridge_path(K, Y, [1e-6, lam])
    left_out = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + n * lam * np.eye(n - 1), Y[rest])
        left_out.append(Y[i] - K[i, rest] @ alpha)
    assert path.loo[1] == pytest.approx(np.mean(np.square(left_out)), rel=1e-8)
    H = K @ np.linalg.inv(K + n * lam * np.eye(n))
    gcv = np.mean((Y - H @ Y) ** 2) / (1 - np.trace(H) / n) ** 2
    assert path.gcv[1] == pytest.approx(gcv, rel=1e-6)
    np.testing.assert_allclose(path.alpha[1], np.linalg.solve(K + n * lam * np.eye(n), Y), rtol=1e-8)


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_newton_finds_the_minimum(data, loss):
    X, Y = data
    K, y, lam = kernel(X), 20 * Y[:, 0], 1e-3
    y = np.sign(y - np.median(y)) if loss == "logistic" else y
    solution = penalised(K, y, lam, loss)
    assert solution.converged
    L = np.linalg.cholesky(K + 1e-12 * np.eye(60))

    def objective(z):
        f = L @ z
        slope = LOSSES[loss].slope(f, y)
        return np.mean(LOSSES[loss].value(f, y)) + lam * z @ z, L.T @ slope / 60 + 2 * lam * z

    best = optimize.minimize(
        objective, np.zeros(60), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15}
    )
    f = K @ solution.alpha
    ours = np.mean(LOSSES[loss].value(f, y)) + lam * solution.alpha @ f
    assert ours <= best.fun * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_the_norm_ball_is_met_with_equality_or_not_needed(data, loss):
    X, Y = data
    K, y = kernel(X), np.sign(Y[:, 0] - Y[:, 0].mean())
    solution = on_ball(K, y, 2.0, loss)
    assert solution.converged
    norm = np.sqrt(solution.alpha @ K @ solution.alpha)
    assert 2.0 * (1 - 1e-5) < norm <= 2.0
    inside = on_ball(K, np.zeros(60) if loss != "logistic" else y, 1e9, loss)
    assert np.sqrt(max(inside.alpha @ K @ inside.alpha, 0)) < 1e9


def test_the_ball_minimises_the_loss_inside_it(data):
    X, Y = data
    K, y = kernel(X), Y[:, 0] - Y[:, 0].mean()
    alpha = on_ball(K, y, 1.0, "squared").alpha
    loss = np.mean((K @ alpha - y) ** 2)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = alpha + 0.1 * np.abs(alpha).mean() * rng.standard_normal(60)
        other /= max(np.sqrt(other @ K @ other), 1.0)
        assert np.mean((K @ other - y) ** 2) >= loss * (1 - 1e-9)
