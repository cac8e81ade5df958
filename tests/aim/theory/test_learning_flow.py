"""The flow of the learned matrix under online gradient descent."""

import numpy as np
import pytest

from attnlab import aim
from attnlab.aim import theory
from attnlab.aim.theory.learning_flow import Flow, _teacher

# loss, time: trace, q11, q12, overlap, error, loss; six digits from an independent integration
COURSE = {
    "squared_output": {
        1: (0.623347, 0.701146, 0.653582, 0.212810, 0.893982, 0.138947),
        2: (0.600118, 0.686099, 0.830014, 0.405666, 0.526071, 0.075369),
        4: (0.618356, 0.869281, 1.084065, 0.646821, 0.201151, 0.024882),
        8: (0.672620, 1.165137, 1.307768, 0.832154, 0.049601, 0.005806),
        12: (0.703557, 1.321323, 1.401588, 0.904098, 0.018147, 0.002339),
        40: (0.729754, 1.503932, 1.501295, 0.985281, 0.001342, 0.000223),
    },
    "cross_entropy": {
        0.5: (0.574738, 0.588041, 0.671851, 0.265449, 0.744340, 0.277887),
        1: (0.576062, 0.670348, 0.885765, 0.478427, 0.398818, 0.135839),
        2: (0.636950, 0.990760, 1.183313, 0.732921, 0.124134, 0.041017),
        8: (0.735510, 1.485377, 1.490468, 0.970384, 0.004440, 0.001936),
    },
    "linear": {
        0.1: (0.625341, 0.713058, 0.714141, 0.271958, 0.784775, 1.569551),
        0.25: (0.676744, 1.009653, 1.116384, 0.637854, 0.276884, 0.553769),
        1: (0.751556, 1.489617, 1.487449, 0.956018, 0.014719, 0.029439),
    },
}


@pytest.mark.parametrize("loss", COURSE)
def test_the_course_of_training_has_its_reference_values(loss):
    times = [0, *COURSE[loss]]
    flow, few = (theory.sgd_flow(times, loss=loss, nodes=nodes) for nodes in (80, 40))
    found = np.c_[flow.trace, flow.self_overlap, flow.raw_overlap, flow.overlap, flow.value, flow.loss][1:]
    np.testing.assert_allclose(found, list(COURSE[loss].values()), atol=1e-5)
    assert flow.converged
    assert (np.diff(flow.loss) < 0).all()
    for name in ("trace", "self_overlap", "raw_overlap", "overlap", "value", "loss"):
        np.testing.assert_allclose(getattr(few, name), getattr(flow, name), atol=1e-7)


@pytest.mark.parametrize(
    ("options", "times", "overlaps", "errors"),
    [
        ({"weight_decay": 0.1}, (2, 8), (0.380141, 0.716034), (0.544110, 0.119965)),
        ({"init": 1.4, "width": 0.5}, (8, 20), (0.802398, 0.957320), (0.117828, 0.015909)),
        ({"init": 0.01}, (4, 12), (0.251250, 0.788958), (0.925811, 0.125303)),
        # the reference has 60 nodes in its potential; at t = 20 they are not enough (.897567, .073259), 200 agree
        ({"rho": 2.0}, (2, 8, 20), (0.305882, 0.712603, 0.897824), (1.229643, 0.381157, 0.073074)),
    ],
)
def test_other_settings_have_their_reference_values(options, times, overlaps, errors):
    flow = theory.sgd_flow([0, *times], **options)
    np.testing.assert_allclose(flow.overlap[1:], overlaps, atol=1e-5)
    np.testing.assert_allclose(flow.value[1:], errors, atol=1e-5)
    if "weight_decay" not in options:
        assert (np.diff(flow.loss) < 0).all()


# q11, q12, q22: Phi, Phi11, Phi12 of squared output and of cross-entropy
POTENTIALS = {
    (0.98, 0.4949747, 1.5): ((0.2327113, 0.1300048, -0.1490167), (0.6389172, 0.4956926, -0.4381758)),
    (1, 1, 1.5): ((0.0789730, 0.1772290, -0.1640437), (0.2062246, 0.4930208, -0.4381758)),
    (1.5, 1.4, 1.5): ((0.0325105, 0.1547232, -0.1590361), (0.0876352, 0.4381758, -0.4381758)),
    (0.5, 0.3, 1.2): ((0.1930740, 0.1906300, -0.1837526), (0.4813780, 0.5782881, -0.4685934)),
}


@pytest.mark.parametrize("q", POTENTIALS, ids=str)
def test_potentials_have_their_reference_values(q):
    found = [theory.potential(*q, loss).value for loss in ("squared_output", "cross_entropy")]
    np.testing.assert_allclose(found, POTENTIALS[q], atol=1e-6)


@pytest.mark.parametrize(("rho", "init", "width"), [(0.5, 0.7, 1.0), (0.5, 0.1, 2.0), (2.0, 0.7, 0.5)])
def test_the_start(rho, init, width):
    flow = theory.sgd_flow([0, 0.1], rho, init=init, width=width)
    found = flow.trace[0], flow.self_overlap[0], flow.raw_overlap[0]
    expected = width * init, init**2 * (width**2 + width), width * init * np.sqrt(rho)
    np.testing.assert_allclose(found, expected, atol=1e-8)


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


@pytest.mark.parametrize(("init", "rate"), [(0.7, 0.208623), (0.1, 0.043244), (0.01, 0.004381)])
def test_escape_rate_is_the_slope_of_the_closed_equations(init, rate):
    found = float(theory.escape_rate(init=init))
    assert found == pytest.approx(rate, abs=1e-6)
    x, weights = _teacher(0.5, 80, None)
    closed = Flow(x, weights, init, 1.0, "squared_output", 0.0)
    slope = closed(0.0, np.zeros(1 + len(x)))
    h = 4e-3 / np.array([1, 2, 4, 8])
    starts = [closed.overlaps(t, t * slope[0], t * slope[1:]) for t in h]
    rates = np.array([q12 - t1 * float(weights @ x) for t1, _, q12 in starts]) / h
    for order in (2, 4, 8):  # extrapolated to h = 0
        rates = (order * rates[1:] - rates[:-1]) / (order - 1)
    assert found == pytest.approx(rates[0], abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("init", "times"), [(0.7, (0.472, 2.617, 11.67)), (0.1, (1.302, 4.347, 15.22)), (0.01, (2.811, 6.236, 18.00))]
)
def test_times_of_weak_recovery(init, times):
    found = [float(theory.weak_recovery_time(level, init=init)) for level in (0.1, 0.5, 0.9)]
    # half of the second digit of the last time is 5e-3
    assert (np.abs(np.subtract(found, times)) < [1e-3, 1e-3, 6e-3]).all()


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
        ({"times": [-1.0]}, "times must"),
        ({"times": [2.0, 1.0]}, "times must"),
        ({"rho": 0.0}, "rho must"),
        ({"rho": np.inf}, "rho must be finite"),
        ({"init": 0.0}, "init must"),
        ({"width": -1.0}, "width must"),
        ({"loss": "hinge"}, "loss must"),
        ({"weight_decay": -0.1}, "weight_decay must"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        theory.sgd_flow(**{"times": [1.0]} | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 2.0, 1.0), "positive semidefinite"),
        ((1.0, 1.0 + 1e-8, 1.0), "positive semidefinite"),
        ((1.0, 0.5, 1.0, "squared_output", 3), "tokens must"),
        ((1.0, 0.5, 1.0, "hinge"), "loss must"),
    ],
)
def test_potentials_that_do_not_exist_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        theory.potential(*arguments)


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
@pytest.mark.parametrize(
    ("width", "scaled"),
    [
        (1, (0.2542, 0.3080, 0.3573, 0.3962)),
        (0.75, (0.2026, 0.1999, 0.2176, 0.2324)),
        (2, (0.3531, 0.4139, 0.4529, 0.4753)),
    ],
)
def test_late_times(width, scaled):
    times = np.array([50.0, 100, 200, 400])
    error = theory.sgd_flow([0, *times], width=width, init=0.7 / width).value[1:]
    np.testing.assert_allclose(error * (0.3327096 * times) ** 2, scaled, atol=1e-3)


@pytest.mark.slow
def test_exact_width_learns_exponentially():
    times = np.array([0.0, 80, 100, 150, 200, 300, 400])
    error = theory.sgd_flow(times, width=0.5, init=1.4).value
    assert error[1] == pytest.approx(0.000548, abs=1e-6)
    rates = -np.diff(np.log(error[2:])) / np.diff(times[2:])
    np.testing.assert_allclose(rates, [0.0266, 0.0239, 0.0226, 0.0217], atol=1e-4)


@pytest.mark.slow
def test_the_fixed_point_of_decay():
    decayed = theory.sgd_flow([0, 40, 200], weight_decay=0.1)
    assert decayed.value[1] == pytest.approx(0.074667, abs=1e-5)
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


def test_matrices_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="S2 must have shape"):
        theory.matrix_flow(np.eye(3), np.eye(4), [0.0, 1.0])


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
