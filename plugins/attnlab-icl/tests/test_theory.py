"""The errors of section by section: reference values, closed forms, limits, stability, bad input."""

import itertools

import mpmath
import numpy as np
import pytest
from attnlab_icl import Task, theory
from attnlab_icl.theory.marchenko_pastur import traces

INF = np.inf
# alpha, kappa, tau, rho, ridge -> ICL, IDG; computed with 70 digits from the textbook forms and by direct integration
# over the Marchenko-Pastur density.
VALUES = [
    (1, 0.5, 0.5, 0.01, 0, 1.26107690, 0.80184917),
    (1, 0.5, 2, 0.01, 0, 1.23399254, 0.60956141),
    (10, 0.5, 0.85, 0.01, 0, 2.22786412, 0.42652844),
    (10, 0.5, 1.15, 0.01, 0, 2.77476577, 0.43086630),
    (10, 0.5, 2, 0.01, 0, 0.89116386, 0.11239990),
    (100, 0.5, 1.5, 0.01, 0, 2.03004953, 0.04499999),
    (10, 0.2, 10, 0.01, 0, 0.85833401, 0.03300607),
    (10, 1, 10, 0.01, 0, 0.25645317, 0.09288831),
    (10, 4, 10, 0.01, 0, 0.11967997, 0.11044893),
    (5, 2, 5, 0.5, 0, 1.01886572, 0.88241767),
    (2, 0.5, 0.5, 0.1, 0.1, 1.20315065, 0.71461813),
    (2, 1, 2, 0.1, 0.1, 0.93421060, 0.59263953),
    (10, 1, 1, 0.01, 0.01, 0.83816745, 0.35290623),
    (1, 4, 1, 0.25, 0.1, 2.37740802, 2.25992733),
    (10, INF, 1, 0.01, 0.1, 0.36068342, 0.36068342),
    (10, 0.5, INF, 0.01, 0, 0.55876353, 0.05619995),
]


@pytest.mark.parametrize("row", VALUES)
def test_reference_values(row):
    *ratios, icl, idg = row
    assert float(theory.icl_error(*ratios)) == pytest.approx(icl, abs=6e-9)
    assert float(theory.idg_error(*ratios)) == pytest.approx(idg, abs=6e-9)


def test_the_peak():
    peak = theory.errors(10, 0.5, 1, 0.01, 1e-8)
    assert float(peak) == pytest.approx(717.344361, rel=1e-8)
    assert peak.detail["idg"] == pytest.approx(121.285794, rel=1e-8)
    free = theory.errors(10, 0.5, 1, 0.01)
    assert np.isinf(free.value)
    assert np.isinf(free.detail["g_task"])
    assert free.converged
    assert theory.g_task(10, INF, 1, 0.01).value == 0


def test_the_rational_point_of_the_traces():
    found = traces(0.3, 0.5)
    np.testing.assert_allclose(found, [2, 1 / 5, 2 / 5, 100 / 17, 5.6 / 17], rtol=1e-14)


def marchenko_pastur_M(x, k):
    b = x + 1 - 1 / k
    return 2 / (b + mpmath.sqrt(b**2 + 4 * x / k))


def textbook(alpha, kappa, tau, rho):
    """The published ridgeless forms, in extended precision."""
    alpha, kappa, tau, rho = map(mpmath.mpf, (alpha, kappa, tau, rho))
    x = (1 + rho) / alpha
    if tau > 1:
        m = marchenko_pastur_M(x, kappa)
        k1 = 1 / (1 - kappa * (m / (kappa + m)) ** 2)
        idg = tau * (rho + x * (1 - x * m)) / (tau - 1)
        icl = (k1 - 1 / (tau - 1)) * (1 + x) * (x * m) ** 2 + (3 - 2 * tau) / (tau - 1) * m * x**2
        return icl + ((1 + rho) * m / (tau - 1) + 1) * x + rho * m / (tau - 1) + rho, idg
    mu = x * marchenko_pastur_M(x, kappa / tau)
    icl = tau * (1 + x) / (1 - tau) * (1 - tau * (1 - mu) ** 2 - (x - rho) * mu / x) - 2 * tau * (1 - mu) + rho + 1
    e = (1 - tau) * x / (tau * mu)
    c = 1 / (1 - kappa / (1 + kappa * e / (1 - tau)) ** 2)
    idg = (x + e) ** 2 / e + (rho + x - 2 * x * (1 - tau) * (x / e + 1)) / (1 - tau - c * (1 - tau) ** 2)
    return icl, tau * idg


def test_the_published_ridgeless_forms():
    grid = itertools.product((0.2, 1, 10, 100), (0.2, 0.7, 2, 30), (0.1, 0.6, 1.7, 20), (0.0, 0.01, 0.5))
    with mpmath.workdps(50):
        for point in grid:
            icl, idg = textbook(*point)
            assert abs(float(theory.icl_error(*point)) / icl - 1) < 1e-12, point
            assert abs(float(theory.idg_error(*point)) / idg - 1) < 1e-12, point


def high_precision(alpha, kappa, tau, rho, ridge):
    """ICL and IDG errors by bisection and the definitions of the traces, with 60 digits."""
    alpha, kappa, tau, rho, ridge = map(mpmath.mpf, (alpha, kappa, tau, rho, ridge))
    x = (1 + rho) / alpha

    def S_of(nu):
        b = nu + 1 - 1 / kappa
        return (-b + mpmath.sqrt(b**2 + 4 * nu / kappa)) / (2 * nu / kappa)

    low, high = ridge * mpmath.mpf("0.999"), ridge + (1 + x) / tau + 1
    for _ in range(230):
        middle = (low + high) / 2
        above = middle * (tau - 1 + middle * S_of(x + middle)) > tau * ridge
        low, high = (low, middle) if above else (middle, high)
    xi = (low + high) / 2
    nu = x + xi
    S = S_of(nu)
    q = -mpmath.diff(S_of, nu)
    r1, rq = 1 - nu * S, S - nu * q
    r2 = 1 - 2 * nu * S + nu**2 * q
    P = rq + x * q
    remaining = ridge / xi + xi * P / tau
    idg = (rho + nu**2 * rq + x * r2) / remaining
    assert abs(r1) <= 1
    return rho + nu**2 * q + x * r2 + (1 + x) * P * idg / tau, idg


@pytest.mark.parametrize("ridge", [1e-8, 1e-3, 1.0])
def test_stability_at_the_corners(ridge):
    corners = itertools.product((0.01, 1e6), (1e-3, 1 - 1e-9, 1 + 1e-9, 1e4), (1e-3, 1 - 1e-9, 1e4), (0.0, 0.5))
    with mpmath.workdps(60):
        for point in corners:
            icl, idg = high_precision(*point, ridge)
            found = theory.errors(*point, ridge)
            assert found.converged
            assert abs(float(found) / icl - 1) < 1e-9, point
            assert abs(found.detail["idg"] / idg - 1) < 1e-9, point


def test_memorisation_is_the_difference_and_keeps_its_digits():
    rng = np.random.default_rng(0)
    points = 10 ** rng.uniform(-1.5, 1.5, (4, 300))
    found = theory.errors(points[0], points[1], points[2], 0.1, points[3] / 10)
    difference = found.detail["icl"] - found.detail["idg"]
    np.testing.assert_allclose(found.detail["g_task"], difference, atol=1e-13 * found.detail["icl"].max())
    # kappa -> infinity without ridge at tau = infinity: 2 x^2 / ((1 + x)^3 kappa)
    x = 1.01 / 10
    limit = 2 * x**2 / ((1 + x) ** 3 * 1e8)
    assert float(theory.g_task(10, 1e8, INF, 0.01)) == pytest.approx(limit, rel=1e-6)


def test_memorisation_can_be_negative():
    assert float(theory.g_task(100, 0.05, 0.05, 1.0)) == pytest.approx(-1.874, abs=5e-4)


@pytest.mark.parametrize(
    ("kappa", "limit"), [(0.5, lambda x: 0.5), (1, lambda x: np.sqrt(x) / 2), (2, lambda x: 6 * x**2)]
)
def test_the_transition_in_the_number_of_tasks(kappa, limit):
    x = 1.01 / 1e6
    assert float(theory.g_task(1e6, kappa, INF, 0.01)) == pytest.approx(limit(x), rel=2e-3)


@pytest.mark.parametrize("side", [-1, 1])
def test_double_descent_has_the_same_amplitude_on_both_sides(side):
    rho, alpha, kappa, gap = 0.01, 10, 0.5, 1e-7
    x = (1 + rho) / alpha
    m = float(marchenko_pastur_M(x, kappa))
    N0 = rho + x * (1 - x * m)
    found = theory.errors(alpha, kappa, 1 + side * gap, rho)
    assert found.detail["idg"] * gap == pytest.approx(N0, rel=1e-5)
    assert found.detail["icl"] * gap == pytest.approx((1 + x) * m * N0, rel=1e-5)


def test_longer_contexts_can_hurt():
    rho, kappa, tau, alpha = 0.5, 0.25, 20, 1e7
    slope = rho * (1 - kappa) / ((1 + rho) * (tau - 1))
    assert float(theory.icl_error(alpha, kappa, tau, rho)) / alpha == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize(
    ("kappa", "tau", "rho", "target", "best"),
    [
        (0.3, 0.5, 0.5, "idg", 6.152),
        (0.5, 0.5, 0.5, "idg", 5.610),
        (0.7, 0.5, 0.5, "idg", 7.413),
        (0.2, 0.5, 0.1, "icl", 2.307),
        (0.4, 0.5, 0.1, "icl", 5.470),
        (0.6, 0.5, 0.1, "icl", 22.54),
        (0.25, 20, 0.5, "icl", 4.677),
        (1.1, 20, 0.5, "icl", 78.89),
        (2, 20, 0.5, "icl", INF),
        (0.1, 0.5, 0.5, "idg", INF),
    ],
)
def test_best_context_length(kappa, tau, rho, target, best):
    assert float(theory.best_context_length(kappa, tau, rho, target)) == pytest.approx(best, rel=3e-3)


def test_best_ridge():
    for ratios, target, ridge, least in [
        ((10, 0.5, 1, 0.01), "icl", 0.229608, 0.643367),
        ((10, 0.5, 1, 0.01), "idg", 0.100742, 0.113723),
        ((2, 0.5, 2, 0.1), "icl", 1.16952, 0.884175),
    ]:
        found = theory.optimal_ridge(*ratios, target=target)
        assert float(found) == pytest.approx(ridge, rel=1e-5)
        assert found.detail["least"] == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "rho", "ridge", "error"),
    [(0.5, 0.01, None, 0.51962237), (1, 0.01, None, 0.10512492), (10, 0.5, None, 0.55234318), (2, 0.1, 1, 0.32781746)],
)
def test_ridge_in_context(alpha, rho, ridge, error):
    assert float(theory.ridge_error(alpha, rho, ridge)) == pytest.approx(error, abs=6e-9)


def test_ridge_in_context_without_noise_and_ridge():
    assert float(theory.ridge_error(0.25, 0.0)) == pytest.approx(0.75)
    assert float(theory.ridge_error(2.0, 0.0)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("d", "kappa", "error"), [(64, 0.2, 1.6213), (64, 1, 1.4639), (64, 8, 1.3007)])
def test_discrete_mmse(d, kappa, error):
    task = Task(d=d, l=10 * d, k=round(kappa * d))
    assert float(theory.dmmse_error(task)) == pytest.approx(error, abs=6e-4)
    assert float(theory.dmmse_error(task, "pretraining")) == task.rho


@pytest.mark.parametrize(("kappa", "means"), [(0.4, (0.952, 0.747)), (1, (0.248, 0.188)), (8, (0.0041, 0.0039))])
def test_finite_size_means_over_tasks(kappa, means):
    for d, mean in zip((10, 32), means, strict=True):
        values = [
            theory.finite_size_errors(Task(d=d, l=10 * d, k=int(kappa * d), seed=s), 10 * d * d, 1e-6).detail["g_task"]
            for s in range(40)
        ]
        sem = np.std(values, ddof=1) / np.sqrt(40)
        assert abs(np.mean(values) - mean) < 4 * sem + 0.01 * mean


def test_finite_sizes_approach_the_limit():
    task = Task(d=400, l=4000, k=None)
    assert float(theory.finite_size_errors(task, 2 * 400**2, 0.1)) == pytest.approx(
        float(theory.icl_error(task, 2 * 400**2, 0.1)), rel=0.02
    )


def test_a_task_and_its_ratios_give_the_same():
    task = Task(d=10, l=20, k=5, noise_std=0.3)
    assert float(theory.icl_error(task, 200, 0.1)) == float(theory.icl_error(2.0, 0.5, 2.0, 0.09, 0.1))
    with pytest.raises(TypeError, match="rho is given twice"):
        theory.icl_error(task, 200, rho=0.1)


def test_all_arguments_broadcast():
    assert theory.icl_error(np.ones((3, 1)), [0.5, 1, 2, 4], 2, 0.1).shape == (3, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 0}, "alpha must be positive"),
        ({"alpha": INF}, "alpha must be finite"),
        ({"kappa": -1}, "kappa must be positive"),
        ({"tau": np.nan}, "tau must be positive"),
        ({"rho": -0.1}, "rho must be at least 0"),
        ({"ridge": -1}, "ridge must be at least 0"),
    ],
)
def test_wrong_ratios_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        theory.icl_error(**{"alpha": 1, "kappa": 1, "tau": 2, "rho": 0.1, "ridge": 0.1, **wrong})


def test_no_list_of_tasks_no_discrete_mmse():
    with pytest.raises(ValueError, match="k=None"):
        theory.dmmse_error(Task(d=4, l=4))
