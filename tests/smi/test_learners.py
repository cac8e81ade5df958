"""AMP, gradient descent, oracle, alignment."""

import numpy as np
import pytest
from sklearn.base import clone

from attnlab import smi
from attnlab.smi.learners.amp import _settled


def fitted(link, alpha, d, seed, **options):
    task = smi.Task(link, d=d, seed=seed)
    X, y = task.sample(task.n_samples(alpha), seed)
    model = smi.AMP(link, random_state=seed, **options).fit(X, y)
    return model, smi.align(model.W_, task.W, task.law.symmetry).cos2, (X, y, task)


def test_amp_recovers_attention_above_the_threshold(seed):
    model, cos2, (_, _, task) = fitted("attention", 0.8, 300, seed)
    assert model.converged_
    assert cos2[0] > 0.999
    X, y = task.sample(50, seed + 1)
    assert model.score(X, y) > 0.99


@pytest.mark.slow
def test_amp_follows_state_evolution():
    cos2 = np.array([fitted("attention", 0.4, 2000, s)[1][0] for s in range(16)])
    assert abs(cos2.mean() - 0.592) < 3 * cos2.std(ddof=1) / 4


def test_amp_on_the_sign_link_follows_state_evolution():
    cos2 = np.array([fitted("sign", 1.0, 500, s)[1][0] for s in range(8)])
    # Three standard errors of the mean over runs, and a shift of order 1/d.
    assert abs(cos2.mean() - 0.4863) < 3 * cos2.std(ddof=1) / np.sqrt(8) + 2 / 500


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_three_dampings_end_at_one_fixed_point(seed):
    cos2 = [fitted("attention", 0.4, 2000, seed, damping=k, max_iter=2000)[1][0] for k in (0.3, 0.6, 0.8)]
    assert np.ptp(cos2) < 1e-3


@pytest.mark.slow
def test_two_layers_are_recovered_exactly():
    cos2 = np.array([fitted("deep_attention", 1.2, 500, s)[1] for s in range(5)])
    assert (cos2 > 0.999).all(axis=1).sum() >= 4


@pytest.mark.slow
def test_the_late_layer_follows_state_evolution():
    """Both layers at alpha = 0.9, where layer 1 grows slowly; state evolution has 0.59 and 0.995."""
    found = [fitted("deep_attention", 0.9, 200, s, max_iter=1000) for s in range(3)]
    cos2 = np.array([cos2 for _, cos2, _ in found])
    # One run at d = 300 spreads by 0.16 over twelve seeds; 0.2 at d = 200, and three standard errors of three runs.
    assert abs(cos2[:, 0].mean() - 0.59) < 3 * 0.2 / np.sqrt(3)
    assert cos2[:, 1].mean() > 0.97


def growing(rate, start=0.03, n=400):
    """V of a direction whose overlap grows by a factor each iteration, next to one that is known."""
    return [np.diag([1 - min(start * rate**i, 0.6), 0.005]) for i in range(n)]


def test_a_direction_that_grows_slowly_is_not_stationary():
    Vs = growing(1.006, n=260)
    steps = [_settled([5e-3] * k, Vs[:k], 1e-5) for k in range(1, len(Vs))]
    assert set(steps) == {None}


def test_an_oscillation_makes_no_progress():
    Vs = [V + 0.02 * (-1) ** i * np.diag([1, 0]) for i, V in enumerate(growing(1.0))]
    assert _settled([0.1] * 300, Vs[:300], 1e-5) == ("no progress; more damping may help", False)


def test_a_run_whose_V_stays_is_stationary():
    assert _settled([5e-3] * 60, growing(1.0)[:60], 1e-5) == ("stationary", True)


def test_the_fixed_point_does_not_depend_on_the_damping(seed):
    found = [fitted("attention", 0.45, 600, seed, damping=k, max_iter=1000) for k in (0.3, 0.6)]
    assert all(model.converged_ for model, _, _ in found)
    assert abs(found[0][1][0] - found[1][1][0]) < 1e-3


def test_amp_below_the_threshold_ends_and_learns_nothing(seed):
    model, cos2, _ = fitted("attention", 0.08, 400, seed)
    assert model.stop_reason_ == "stationary"
    assert cos2[0] < 0.05


@pytest.mark.slow
def test_tilted_amp_follows_state_evolution():
    cos2 = np.array([fitted("single_location", 2.0, 300, s, damping=0.8)[1] for s in range(4)])
    # State evolution 0.8746, 0.8832; the spread of a run is 0.012 at d = 500.
    np.testing.assert_allclose(cos2.mean(axis=0), [0.8746, 0.8832], atol=0.03)


def test_spectral_start(seed):
    _, cos2, _ = fitted("attention", 0.8, 300, seed, init="spectral")
    assert cos2[0] > 0.999


def test_oracle_leaves_the_noise(seed):
    task = smi.Task("linear(noise=0.1)", d=100, seed=seed)
    X, y = task.sample(2000, seed)
    model = smi.OraclePredictor(task.link, task.W).fit(X[:2], y[:2])
    assert abs(((model.predict(X) - y) ** 2).mean() - 0.1) < 4 * 0.1 * np.sqrt(2 / 2000)


def test_gradient_descent_fits_a_linear_link(seed):
    task = smi.Task("linear(noise=0.01)", d=20, seed=seed)
    X, y = task.sample(200, seed)
    model = smi.GradientDescent(task.link, n_starts=2, n_steps=500, tol=0.02, random_state=seed).fit(X, y)
    assert model.converged_
    assert smi.align(model.W_, task.W).cos2[0] > 0.99


def test_gradient_descent_needs_a_gradient(seed):
    task = smi.Task("sign", d=20, seed=seed)
    with pytest.raises(ValueError, match="without a gradient"):
        smi.GradientDescent("sign").fit(*task.sample(10))


def test_alignment_recovers_a_scrambled_truth(seed):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((3, 50))
    signs = np.array([[1], [-1], [-1]])
    for symmetry, scrambled in [
        ("sign", signs * W),
        ("joint_sign", -W),
        ("permutation", W[[2, 0, 1]]),
        ("hyperoctahedral", (signs * W)[[1, 2, 0]]),
        ("orthogonal", np.linalg.qr(rng.standard_normal((3, 3)))[0] @ W),
    ]:
        np.testing.assert_allclose(smi.align(scrambled, W, symmetry).W, W, atol=1e-10)
    noisy = W + rng.standard_normal(W.shape)
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    one, two = (smi.align(x, W, "orthogonal").cos2 for x in (noisy, rotation @ noisy))
    np.testing.assert_allclose(one, two)


def test_alignment_group_too_large():
    with pytest.raises(ValueError, match="too many members"):
        smi.align(np.eye(7, 9), np.eye(7, 9), "permutation")
    with pytest.raises(ValueError, match="orthogonal 2 x 2 matrices"):
        smi.align(np.eye(2, 9), np.eye(2, 9), [np.ones((2, 2))])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"damping": 1.0}, "damping must be a number in"),
        ({"init": "zero"}, "init must be one of"),
        ({"prediction": "mean"}, "prediction must be one of"),
    ],
)
def test_bad_parameters_are_refused(options, said):
    X, y = smi.Task("attention", d=10).sample(5)
    with pytest.raises(ValueError, match=said):
        smi.AMP("attention", **options).fit(X, y)


def test_bad_data_are_refused():
    X, y = smi.Task("attention", d=10).sample(5)
    model = smi.AMP("attention")
    with pytest.raises(ValueError, match="at least 2 sample"):
        model.fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="y must have shape"):
        model.fit(X, y[:, :1])
    with pytest.raises(ValueError, match="softmax rows that sum to one"):
        model.fit(X, 2 * y)
    with pytest.raises(ValueError, match="give log y"):
        model.fit(X, np.round(y))


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("sign", "y must be one of -1, 1, got 0"),
        ("door", "y must be one of -1, 1, got 0"),
        ("sign_product", "y must be one of -1, 1, got 0"),
        ("phase_retrieval", "y must be an absolute value, not negative, got -1"),
    ],
)
def test_outputs_that_a_link_cannot_give_are_refused(link, said):
    X, y = smi.Task(link, d=10).sample(6)
    wrong = -np.ones_like(y) if link == "phase_retrieval" else (y > 0).astype(float)
    with pytest.raises(ValueError, match=said):
        smi.AMP(link).fit(X, wrong)


def test_tokens_of_another_scale_are_reported():
    X, y = smi.Task("sign", d=30).sample(60)
    with pytest.warns(UserWarning, match="X has the mean square .*entries of variance 1 are assumed"):
        smi.AMP("sign", max_iter=500, damping=0.6, random_state=0).fit(3 * X, y)


@pytest.mark.parametrize("model", [smi.AMP("attention"), smi.GradientDescent("attention", n_starts=2, n_steps=50)])
def test_log_outputs_are_read_as_well(model, seed):
    task = smi.Task("attention", d=100, seed=seed)
    X, y = task.sample(80, seed)
    one, two = (clone(model).set_params(random_state=0).fit(X, outputs) for outputs in (y, np.log(y)))
    np.testing.assert_allclose(one.W_, two.W_, atol=1e-6)
    assert one.score(X, np.log(y)) == pytest.approx(one.score(X, y))
