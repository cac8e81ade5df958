import numpy as np
import pytest

from attnlab.common.tokens import check_targets, check_tokens


def test_a_batch_of_token_sequences_passes_unchanged():
    X = np.arange(24.0).reshape(2, 3, 4)
    assert check_tokens(X, n_tokens=3, d=4) is X


def test_the_flat_form_is_token_after_token():
    X = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(check_tokens(X.reshape(2, 12), flat_tokens=3), X)
    assert np.array_equal(check_tokens(X, flat_tokens=3), X)


def test_the_flat_form_must_be_declared_and_divisible():
    with pytest.raises(ValueError, match=r"X must have shape \(n, tokens, d\), got \(2, 12\)"):
        check_tokens(np.zeros((2, 12)))
    with pytest.raises(ValueError, match=r"X of shape \(2, 12\) cannot be split into n_tokens=5 tokens"):
        check_tokens(np.zeros((2, 12)), flat_tokens=5)
    with pytest.raises(ValueError, match="n_tokens must be an integer >= 1, got 0"):
        check_tokens(np.zeros((2, 12)), flat_tokens=0)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (1, 2, 3, 4), ()])
def test_other_ranks_are_refused(shape):
    with pytest.raises(ValueError, match=r"X must have shape \(n, tokens, d\)"):
        check_tokens(np.zeros(shape))


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ((0, 3, 2), {}, "at least 1 sample"),
        ((3, 3, 2), {"min_samples": 4}, "at least 4 sample"),
        ((2, 0, 2), {}, "at least one token"),
        ((2, 3, 0), {}, "at least one token"),
        ((2, 3, 2), {"n_tokens": 4}, r"X must have 4 tokens, got shape \(2, 3, 2\)"),
        ((2, 3, 2), {"d": 5}, r"tokens of width d=5, got shape \(2, 3, 2\)"),
    ],
)
def test_wrong_lengths_are_said(shape, options, said):
    with pytest.raises(ValueError, match=said):
        check_tokens(np.zeros(shape), **options)


def test_nan_tokens_are_refused():
    X = np.zeros((2, 3, 2))
    X[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        check_tokens(X)


def test_targets_match_the_batch():
    assert check_targets([1, 2, 3], 3).dtype == np.float64
    assert check_targets(np.zeros((3, 4, 4)), 3, shape=(None, 4)).shape == (3, 4, 4)
    with pytest.raises(ValueError, match=r"y must have shape \(4,\), got \(3,\)"):
        check_targets([1, 2, 3], 4)
    with pytest.raises(ValueError, match=r"y must have shape \(3, \*, 4\), got \(3, 4\)"):
        check_targets(np.zeros((3, 4)), 3, shape=(None, 4))
    with pytest.raises(ValueError, match="y contains NaN or infinity"):
        check_targets([1, np.inf, 3], 3)
