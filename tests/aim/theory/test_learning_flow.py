"""The flow of the learned matrix under online gradient descent."""

import numpy as np
import pytest

from attnlab import aim
from attnlab.aim import theory
from attnlab.aim.theory.learning_flow import Flow

# time: trace, q11, q12, overlap, error, loss; six digits from an independent integration
SQUARED = {
    1: (0.623347, 0.701146, 0.653582, 0.212810, 0.893982, 0.138947),
    4: (0.618356, 0.869281, 1.084065, 0.646821, 0.201151, 0.024882),
    12: (0.703557, 1.321323, 1.401588, 0.904098, 0.018147, 0.002339),
}


def test_squared_loss_has_its_reference_values():
    flow = theory.sgd_flow([0, *SQUARED])
    found = np.c_[flow.trace, flow.self_overlap, flow.raw_overlap, flow.overlap, flow.value, flow.loss][1:]
    np.testing.assert_allclose(found, list(SQUARED.values()), atol=1e-5)
    assert flow.converged
    assert (np.diff(flow.loss) < 0).all()


@pytest.mark.parametrize(
    ("options", "time", "overlap", "error"),
    [
        ({"loss": "cross_entropy"}, 1, 0.478427, 0.398818),
        ({"loss": "linear"}, 0.25, 0.637854, 0.276884),
        ({"weight_decay": 0.1}, 8, 0.716034, 0.119965),
        ({"init": 1.4, "width": 0.5}, 20, 0.957320, 0.015909),
        ({"init": 0.01}, 12, 0.788958, 0.125303),
        ({"rho": 2.0}, 8, 0.712603, 0.381157),
    ],
)
def test_other_settings_have_their_reference_values(options, time, overlap, error):
    flow = theory.sgd_flow([0, time], **options)
    np.testing.assert_allclose((flow.overlap[-1], flow.value[-1]), (overlap, error), atol=1e-5)


def test_the_start_and_the_number_of_nodes():
    few, many = (theory.sgd_flow([0, 2], nodes=nodes) for nodes in (40, 80))
    assert few.trace[0] == pytest.approx(0.7)
    assert few.self_overlap[0] == pytest.approx(0.7**2 * 2)
    assert few.overlap[0] == pytest.approx(0, abs=1e-8)
    np.testing.assert_allclose(few.value, many.value, atol=1e-7)


@pytest.mark.parametrize("loss", ["squared_output", "cross_entropy"])
def test_potential_and_its_slopes(loss):
    q = (1.0, 0.9, 1.5)
    _, by11, by12 = theory.potential(*q, loss).value
    step = 1e-4

    def difference(i):
        return np.subtract(
            *(theory.potential(*(v + s * (j == i) for j, v in enumerate(q)), loss).value[0] for s in (step, -step))
        ) / (2 * step)

    # central differences, relative error of order step^2
    assert by11 == pytest.approx(difference(0), abs=1e-6)
    assert by12 == pytest.approx(difference(1) / 2, abs=1e-6)
    _, at, across = theory.potential(1.5, 1.5, 1.5, loss).value
    assert at == pytest.approx(-across, abs=1e-9)


def test_escape():
    assert float(theory.escape_rate()) == pytest.approx(0.208623, abs=1e-6)
    assert float(theory.escape_rate(init=0.01)) == pytest.approx(0.004381, abs=1e-6)
    assert float(theory.weak_recovery_time(0.1)) == pytest.approx(0.472, abs=1e-3)


def test_closed_flow_is_the_matrix_flow_of_the_same_teacher(seed):
    d, sigma = 100, 0.7
    teacher = aim.Task(d, seed=seed).S
    W = np.sqrt(sigma / d) * np.random.default_rng(seed + 1).standard_normal((d, d))
    times = [0.0, 2.0, 8.0]
    closed = theory.sgd_flow(times, spectrum=np.linalg.eigvalsh(teacher))
    for t, S in enumerate(theory.matrix_flow(W @ W.T, teacher, times)):
        overlap = (S * teacher).sum() / d - np.trace(S) / d * np.trace(teacher) / d
        # the start fluctuates by about 1/d
        assert overlap == pytest.approx(closed.overlap[t], abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0],), "times must"),
        (([2.0, 1.0],), "times must"),
        (([1.0], 0.0), "rho must"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        theory.sgd_flow(*arguments)
    with pytest.raises(ValueError, match="positive semidefinite"):
        theory.potential(1.0, 2.0, 1.0)


def test_the_linear_flow_has_its_closed_form():
    teacher, times = np.array([0.0, 0.4, 1.3, 2.5]), [0.1, 1.0]
    flow = theory.sgd_flow([0, *times], spectrum=teacher, loss="linear")
    closed = Flow(teacher, np.full(4, 0.25), 0.7, 1.0, "linear", 0.0)
    for i, t in enumerate(times, start=1):
        u = np.where(teacher > 0, -np.expm1(-4 * t * teacher) / np.where(teacher > 0, teacher, 1.0), 4 * t)
        found = flow.trace[i], flow.self_overlap[i], flow.raw_overlap[i]
        np.testing.assert_allclose(found, closed.overlaps(t, 2 * t, u), atol=1e-8)


def test_a_flat_teacher_is_learned_eigenvalue_by_eigenvalue():
    """The logistic formula c l / (l + (c - l) exp(-4 c t)) of each eigenvalue l, over Marchenko-Pastur starts."""
    c, t, sigma = 1.3, 0.3, 0.7
    nodes, weights = np.polynomial.legendre.leggauss(200)
    angle = np.pi / 4 * (nodes + 1)
    start, mass = 4 * sigma * np.cos(angle) ** 2, np.pi / 4 * weights * 4 * np.sin(angle) ** 2 / np.pi
    learned = c * start / (start + (c - start) * np.exp(-4 * c * t))
    flow = theory.sgd_flow([0, t], spectrum=[c], loss="linear")
    np.testing.assert_allclose((flow.trace[-1], flow.self_overlap[-1]), (mass @ learned, mass @ learned**2), atol=1e-8)


@pytest.mark.slow
def test_late_times_and_the_fixed_point_of_decay():
    times = np.array([50.0, 100, 200, 400])
    scaled = theory.sgd_flow([0, *times]).value[1:] * (0.3327096 * times) ** 2
    np.testing.assert_allclose(scaled, [0.2542, 0.3080, 0.3573, 0.3962], atol=1e-3)
    decayed = theory.sgd_flow([0, 200], weight_decay=0.1)
    found = decayed.self_overlap[-1], decayed.raw_overlap[-1], decayed.value[-1]
    np.testing.assert_allclose(found, (0.914768, 1.169973, 0.074822), atol=1e-4)


@pytest.mark.slow
def test_closed_flow_at_d_200():
    d, times, apart = 200, [0.0, 1.0, 2.0, 4.0, 8.0], []
    for seed in range(4):
        teacher = aim.Task(d, seed=seed).S
        W = np.sqrt(0.7 / d) * np.random.default_rng(seed + 1).standard_normal((d, d))
        closed = theory.sgd_flow(times, spectrum=np.linalg.eigvalsh(teacher)).overlap
        path = theory.matrix_flow(W @ W.T, teacher, times)
        apart.append([(S * teacher).sum() / d - np.trace(S) * np.trace(teacher) / d**2 for S in path] - closed)
    assert np.abs(np.mean(apart, axis=0)).max() < 0.01


def hermite_slopes(q11, q12, q22):
    """Phi11, Phi12 of half the squared error of h_2(x) = (x^2 - 1)/sqrt 2, x = h/sqrt(2 q22), one token."""
    return (3 * q11 / q22 - 1) / (2 * q22), -q12 / q22**2


def test_a_quadratic_output_traps_direct_descent_and_not_the_factored_flow(seed):
    """Of Phi = (3 r11^2 - 2 r11 + 3 - 4 r12^2)/4, r = q/q22, steps on S itself never leave q12 = 0."""
    d, rng = 60, np.random.default_rng(seed)
    teacher = aim.Task(d, seed=seed).S
    q22, t2 = (teacher**2).sum() / d, np.trace(teacher) / d
    W = np.sqrt(0.7 / d) * rng.standard_normal((d, d))
    tied = W @ W.T
    direct = rng.standard_normal((d, d))
    direct = (direct + direct.T) / np.sqrt(2 * d)
    direct -= (direct * teacher).sum() / (teacher**2).sum() * teacher  # q12 = 0
    overlap = lambda S: (S * teacher).sum() / d - np.trace(S) / d * t2  # noqa: E731
    tied_begin = overlap(tied)
    step = 1e-3
    for _ in range(2000):
        by11, by12 = hermite_slopes((direct**2).sum() / d, (direct * teacher).sum() / d, q22)
        direct = direct - 2 * step * (by11 * direct + by12 * teacher)
        by11, by12 = hermite_slopes((tied**2).sum() / d, (tied * teacher).sum() / d, q22)
        M = by11 * tied + by12 * teacher
        tied = tied - step * (M @ tied + tied @ M)
    assert abs((direct * teacher).sum() / d) < 1e-10
    assert overlap(tied) > tied_begin + 0.2
