import numpy as np
import pytest

from attnlab import mha
from attnlab.mha.layer import rows_of
from attnlab.mha.theory import distinct_rows


def by_hand(X, Theta, W):
    out = np.zeros((*X.shape[:2], W.shape[-1]))
    for n, x in enumerate(X):
        for theta, w in zip(Theta, W, strict=True):
            for a in range(len(x)):
                weights = np.exp([x[a] @ theta @ x[b] for b in range(len(x))])
                out[n, a] += (weights / weights.sum()) @ x @ w
    return out


@pytest.mark.parametrize(("k", "d", "m", "o"), [(2, 3, 1, 3), (4, 5, 3, 2)])
def test_the_layer_is_its_definition(k, d, m, o):
    task = mha.Task(d=d, k=k, n_heads=m, d_out=o, rho=2.0)
    X = task.tokens_of(7)
    assert np.abs(mha.attention(X, task.Theta, task.W) - by_hand(X, task.Theta, task.W)).max() < 1e-13


def test_biases_enter_with_their_derivatives():
    """dF_a/dc_i = sum_b p_ab (x_b - z_a)^T x_b W_i, and dF/dc_0 = 1, against central differences."""
    task = mha.Task(d=4, k=3, n_heads=2, d_out=3, rho=2.0, tokens_law="gaussian")
    g = np.random.default_rng(0)
    X, bias, constant, step = task.tokens_of(5), g.standard_normal((2, 4)), g.standard_normal(3), 1e-6
    logits = np.einsum("nap,mpq,nbq->nmab", X, task.Theta, X) + np.einsum("mq,nbq->nmb", bias, X)[:, :, None]
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    centred = X[:, None, None] - (p @ X[:, None])[:, :, :, None]
    expected = np.einsum("nmab,nmabq,nbr,mro->maqno", p, centred, X, task.W).transpose(0, 2, 3, 1, 4)
    for i, q in np.ndindex(2, 4):
        plus, minus = bias.copy(), bias.copy()
        plus[i, q] += step
        minus[i, q] -= step
        found = (mha.attention(X, *task.layer, plus) - mha.attention(X, *task.layer, minus)) / (2 * step)
        # rounding of central differences is about 1e-16 / step
        assert np.abs(found - expected[i, q]).max() < 1e-8
    moved = mha.attention(X, *task.layer, bias, constant) - mha.attention(X, *task.layer, bias)
    assert np.abs(moved - constant).max() < 1e-14


def test_huge_logits_give_finite_outputs():
    task = mha.Task(d=6, k=3, n_heads=1, rho=1e4)
    assert np.isfinite(task.sample(50)[1]).all()


def test_more_examples_than_one_block_agree_with_one_by_one():
    task = mha.Task(d=3, k=2, n_heads=2)
    X, y = task.sample(1100)
    assert np.abs(y[-1] - mha.attention(X[-1:], task.Theta, task.W)[0]).max() < 1e-14


def test_two_tokens_have_the_sign_identity_and_three_do_not():
    def gap(k):
        task = mha.Task(d=6, k=k, n_heads=1, rho=3.0)
        X = task.tokens_of(200)
        both = mha.attention(X, task.Theta, task.W) + mha.attention(X, -task.Theta, task.W)
        return np.abs(both - mha.attention(X, 0 * task.Theta, 2 * task.W)).max()

    assert gap(2) < 1e-12
    assert gap(3) > 0.1


def test_duplicate_rows_of_a_small_cube_are_one_row():
    task = mha.Task(d=2, k=2, n_heads=1)
    rows = rows_of(*task.sample(2000))
    assert len(rows) == distinct_rows(k=2, d=2) == 16


def test_copies_of_a_noisy_row_are_averaged():
    task = mha.Task(d=2, k=2, n_heads=1, noise_std=0.5)
    rows = rows_of(*task.sample(8000))
    clean = rows_of(*mha.Task(d=2, k=2, n_heads=1).sample(8000))
    # 16 rows with about 1000 copies each: five standard errors of 0.5 / sqrt(1000)
    assert np.abs(rows.Y - clean.Y).max() < 5 * 0.5 / np.sqrt(900)


def test_gaussian_rows_are_all_kept():
    X, y = mha.Task(d=2, k=2, n_heads=1, tokens_law="gaussian").sample(50)
    assert len(rows_of(X, y)) == 100
