import numpy as np
import pytest

from attnlab import mha
from attnlab.mha import theory
from attnlab.mha.engine.variable_projection import row_patterns
from attnlab.mha.layer import Rows, rows_of
from attnlab.mha.sculpting.agreement import find_agreement
from attnlab.mha.sculpting.axes import heads_by_gap, long_axes
from attnlab.mha.sculpting.body import Body, derivatives, divergence, minimum_norm_point
from attnlab.mha.sculpting.crude import crude_sum
from attnlab.mha.sculpting.patterns import regress_patterns
from attnlab.mha.sculpting.phases import sculpt
from attnlab.mha.sculpting.program import longest_chords, polytope


@pytest.fixture(scope="module")
def task():
    return mha.Task(d=8, k=2, n_heads=2, rho=2.0, seed=0)


@pytest.fixture(scope="module")
def examples(task):
    return task.sample(30_000, seed=1)


@pytest.fixture(scope="module")
def sculpture(examples):
    return sculpt(*examples, rows_of(*examples))


def relative(found, true):
    return np.linalg.norm(found - true) / np.linalg.norm(true)


def test_the_crude_sum_has_the_mean_of_the_first_order_formula():
    task = mha.Task(d=6, k=3, n_heads=2, rho=0.3)
    found = crude_sum(*task.sample(400_000))
    predicted = theory.crude_sum_mean(task)
    # second order in rho = 0.3 leaves about 1 %, the plain sum is several times further away
    assert relative(found, predicted) < 0.02
    assert relative(found, task.W.sum(axis=0)) > 2 * relative(found, predicted)


@pytest.mark.parametrize("k", [2, 3, 4, 9])
def test_exact_pattern_regression_satisfies_the_optimality_conditions(k):
    rng = np.random.default_rng(k)
    rows = Rows(np.zeros((300, 6)), rng.standard_normal((300, k, 6)), rng.standard_normal((300, 6)))
    w_sum = rng.standard_normal((6, 6))
    values = rows.K @ w_sum
    near = np.eye(k)[rng.integers(k, size=300)]
    for start in (None, near):
        p, _ = regress_patterns(rows, w_sum, start)
        assert p.min() >= 0
        assert np.abs(p.sum(axis=1) - 1).max() < 1e-12
        slope = (values @ ((p[:, None] @ values)[:, 0] - rows.Y)[..., None])[..., 0]
        lowest = slope.min(axis=1)
        assert np.abs(np.sum(p * slope, axis=1) - lowest).max() < 1e-8 * np.abs(slope).max()


def test_rows_that_are_given_up_are_those_beyond_the_limit():
    task = mha.Task(d=8, k=4, n_heads=2, rho=2.0)
    rows = rows_of(*task.sample(500))
    p, residuals = regress_patterns(rows, task.W.sum(axis=0))
    limit = float(np.quantile(residuals, 0.3))
    found, bounded = regress_patterns(rows, task.W.sum(axis=0), beyond=limit)
    near = residuals <= limit
    np.testing.assert_array_equal(found[near], p[near])
    np.testing.assert_array_equal(bounded[near], residuals[near])
    assert bounded[~near].min() > limit
    assert (bounded != residuals).mean() > 0.1  # some are given up, or nothing is saved


def test_one_head_agrees_with_itself_on_every_row():
    task = mha.Task(d=5, k=3, n_heads=1, rho=2.0, tokens_law="gaussian")
    rows = rows_of(*task.sample(300))
    p, residual = regress_patterns(rows, task.W[0])
    assert residual.max() < 1e-6
    assert np.abs(p - row_patterns(rows, task.Theta)[:, 0]).max() < 1e-5


def test_equal_keys_are_never_taken_for_agreement():
    rows = Rows(np.ones((1, 4)), np.ones((1, 3, 4)), np.ones((1, 4)))
    assert regress_patterns(rows, np.eye(4))[1][0] == np.inf


@pytest.mark.parametrize("k", range(3, 9))
def test_patterns_lie_on_the_simplex_whatever_the_sizes(k):
    """Equal tokens, values near the smallest numbers, and scales far apart between rows and between tokens."""
    rng = np.random.default_rng(k)
    r, d = 300, 4
    tokens = rng.standard_normal((r, k, d))
    equal = np.repeat(tokens[:, :1], k, axis=1)
    sizes = 10.0 ** rng.uniform(-200, 100, size=(2, r, k, 1))
    for K in (
        equal,
        equal - 1e-16 * tokens,
        1e-160 * tokens,
        1e-154 * tokens,
        sizes[0, :, :1] * tokens,
        sizes[1] * tokens,
    ):
        rows = Rows(tokens[:, 0], K, tokens[:, 1])
        p, residuals = regress_patterns(rows, np.eye(d))
        again, _ = regress_patterns(rows, np.eye(d), p)
        for found in (p, again):
            assert found.min() >= 0
            assert np.abs(found.sum(axis=1) - 1).max() < 1e-12
        assert not np.isnan(residuals).any()


def test_the_derivatives_of_the_divergence_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    task = mha.Task(d=3, k=3, n_heads=1, rho=2.0)
    rows = rows_of(*task.sample(40))
    body = Body(rows, rng.dirichlet(np.ones(3), len(rows)), np.ones(len(rows)))
    theta = rng.standard_normal((3, 3))
    gradient, hessian = derivatives(body, theta)
    step = 1e-5
    for i, index in enumerate(np.ndindex(3, 3)):
        moved = np.zeros((3, 3))
        moved[index] = step
        slope = (divergence(body, theta + moved) - divergence(body, theta - moved)) / (2 * step)
        assert gradient[index] == pytest.approx(slope, abs=1e-8)
        second = (derivatives(body, theta + moved)[0] - derivatives(body, theta - moved)[0]) / (2 * step)
        assert np.abs(hessian[i] - second.ravel()).max() < 1e-7


def test_every_affine_combination_of_heads_lies_in_the_body(task):
    """Rows of exact agreement cut out a body on which the divergence vanishes along the whole hull."""
    X = task.tokens_of(4000)
    rows = rows_of(X, mha.attention(X, task.Theta, task.W))
    p = row_patterns(rows, task.Theta)
    agree = np.abs(p[:, 0] - p[:, 1]).max(axis=1) < 1e-3
    body = Body(rows.take(agree), p[agree, 0], np.ones(int(agree.sum())))
    # agreement to 1e-3 leaves the log-odds of saturated rows open: the divergence is of that order at most
    for t in (-0.5, 0.0, 0.5, 1.0, 1.5):
        assert divergence(body, t * task.Theta[0] + (1 - t) * task.Theta[1]) < 1e-3
    assert divergence(body, np.zeros((8, 8))) > 0.01


def test_sculpting_finds_sum_and_span_before_any_nonconvex_step(task, sculpture):
    assert relative(sculpture.agreement.w_sum, task.W.sum(axis=0)) < 2e-3
    assert mha.span_error(long_axes(sculpture.point, 2).basis, task.Theta) < 0.03


def test_the_gap_counts_the_heads(sculpture):
    curvatures = np.linalg.eigvalsh(sculpture.point.hessian)
    assert heads_by_gap(curvatures, max_heads=5) == 2


def test_the_point_of_smallest_norm_is_near_the_hull_and_its_newton_converged(task, sculpture):
    assert sculpture.point.converged
    along = task.Theta[0] - task.Theta[1]
    off = sculpture.point.theta - task.Theta[0]
    off = off - along * np.sum(off * along) / np.sum(along**2)
    assert np.linalg.norm(off) < 0.05 * np.linalg.norm(task.Theta[0])


def test_the_linear_program_finds_one_long_chord(task, examples):
    agreement = find_agreement(rows_of(*examples), crude_sum(*examples))
    chords = longest_chords(polytope(agreement, limit=300), 2, tries=6, rng=np.random.default_rng(0))
    assert chords.lengths[0] >= 10 * chords.lengths[1]
    along = (task.Theta[0] - task.Theta[1]).ravel()
    cosine = chords.directions[0].ravel() @ along / np.linalg.norm(along)
    assert np.sqrt(1 - cosine**2) < 0.05


def test_without_heads_in_common_there_is_no_body_to_find():
    """With one head every row agrees; the point of smallest norm is the head itself."""
    task = mha.Task(d=6, k=3, n_heads=1, rho=2.0)
    rows = rows_of(*task.sample(400))
    body = Body(rows, row_patterns(rows, task.Theta)[:, 0], np.ones(len(rows)))
    point = minimum_norm_point(body, shrinkage=1e-10)
    assert relative(point.theta, task.Theta[0]) < 1e-5
