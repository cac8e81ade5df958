"""What training with weight decay reaches."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from attnlab.aim import spectrum, theory
from attnlab.aim.spectrum import singular, tied
from attnlab.aim.theory.erm import semicircle_excess
from attnlab.aim.theory.soft_threshold import thresholded

# a, rho: error, blur, threshold, rank of the interpolator of smallest trace, six digits computed independently
RIDGELESS = {
    (0.4, 0.5): (0.527362, 1.14822, 0.94733, 0.40901),
    (0.6, 0.5): (0.160999, 0.51801, 0.29505, 0.54192),
    (0.3, 0.2): (0.305989, 1.00993, 0.91498, 0.31928),
    (0.8, 0.5): (0.005135, 0.08012, 0.02332, 0.67219),
    (0.2, 0.2): (0.627382, 1.77113, 1.90962, 0.25103),
    (0.4, 0.2): (0.088676, 0.47084, 0.35454, 0.37711),
    (0.5, 0.2): (0.000915, 0.04279, 0.02585, 0.43004),
    (0.2, 0.5): (1.062804, 2.30522, 2.59540, 0.25958),
    (0.3, 0.5): (0.779188, 1.61161, 1.55465, 0.33781),
    (0.5, 0.5): (0.319234, 0.79904, 0.55591, 0.47642),
    (0.7, 0.5): (0.055872, 0.28252, 0.12415, 0.60671),
}
# a, rho: error of the same
RIDGELESS_NARROW = {
    (0.1, 0.1): 0.770875,
    (0.2, 0.1): 0.258245,
    (0.3, 0.1): 0.004927,
    (0.3, 0.3): 0.510957,
    (0.4, 0.3): 0.269325,
    (0.5, 0.3): 0.100934,
    (0.6, 0.3): 0.012613,
}
# rho: error of the same at a = .2, .3, ..., .9
RIDGELESS_ERRORS = {
    1: (1.550350, 1.267845, 0.997587, 0.747897, 0.524434, 0.331805, 0.174633, 0.059061),
    2: (2.437753, 2.118492, 1.804058, 1.497482, 1.200876, 0.915627, 0.642077, 0.377304),
}
# a: error at rho = .5, noise .25
RIDGELESS_NOISY = {0.5: 0.89942, 0.6: 1.60872, 0.65: 2.14346, 0.7: 1.51427, 0.8: 0.926312, 1.2: 0.340868}
# rho, a, decay, noise: error, blur, threshold, df, rank, training loss
RIDGE = {
    (0.5, 0.6, 0.02, 0.0): (0.214120, 0.597384, 0.479164, 0.516521, 0.47833, 0.0041448),
    (0.5, 0.6, 0.1, 0.0): (0.372984, 0.788442, 0.899349, 0.377617, 0.37826, 0.0512379),
    (0.5, 0.4, 0.1, 0.0): (0.665300, 1.289671, 1.535281, 0.269731, 0.30782, 0.0705638),
    (0.5, 0.6, 0.1, 0.25): (0.520633, 1.133308, 0.967122, 0.393201, 0.40330, 0.0915467),
    (0.5, 1.2, 0.1, 0.25): (0.216816, 0.623710, 0.326649, 0.587722, 0.53873, 0.1215291),
    (0.5, 1.2, 0.3, 0.25): (0.303022, 0.678860, 0.761188, 0.411759, 0.39927, 0.2386153),
}
# rho, a, decay, noise: error
RIDGE_ERRORS = {(0.2, 0.6, 0.1, 0.25): 0.272928, (1, 2, 0.1, 0.5): 0.284802}
# rho, a: best decay at noise .25, and the error there
BEST = {(0.5, 0.6): (0.0757, 0.514658), (0.5, 1.2): (0.1039, 0.216742), (0.2, 0.6): (0.1122, 0.271771)}
# rho: a from which on the smallest trace is S, tied and untied
PERFECT = {
    0.05: (0.184015, 0.202145),
    0.1: (0.315144, 0.351144),
    0.2: (0.511124, 0.571690),
    0.3: (0.654309, 0.725255),
    0.4: (0.762431, 0.832491),
    0.5: (0.844350, 0.905417),
    0.75: (0.965522, 0.988612),
    0.9: (0.994810, 0.999278),
}


@pytest.mark.parametrize("setting", RIDGELESS, ids=str)
def test_smallest_trace_has_its_reference_values(setting):
    a, rho = setting
    found = theory.erm(a / 4, rho)
    assert found.converged
    np.testing.assert_allclose((found.value, found.blur, found.threshold, found.rank), RIDGELESS[setting], atol=1e-5)


@pytest.mark.parametrize("setting", RIDGE, ids=str)
def test_decay_has_its_reference_values(setting):
    rho, a, decay, noise = setting
    found = theory.erm(a / 4, rho, weight_decay=decay, noise=noise)
    values = found.value, found.blur, found.threshold, found.dof, found.rank, found.train_loss
    np.testing.assert_allclose(values, RIDGE[setting], atol=1e-5)


def test_decay_of_other_widths():
    found = [float(theory.erm(a / 4, rho, weight_decay=w, noise=noise)) for rho, a, w, noise in RIDGE_ERRORS]
    np.testing.assert_allclose(found, list(RIDGE_ERRORS.values()), atol=1e-5)


@pytest.mark.parametrize("setting", BEST, ids=str)
def test_the_best_decay_has_its_reference_value(setting):
    rho, a = setting
    error = lambda log_decay: float(theory.erm(a / 4, rho, weight_decay=float(np.exp(log_decay)), noise=0.25))  # noqa: E731
    found = minimize_scalar(error, bounds=np.log([0.03, 0.3]), method="bounded", options={"xatol": 1e-4})
    best, lowest = BEST[setting]
    assert np.exp(found.x) == pytest.approx(best, abs=2e-4)
    assert found.fun == pytest.approx(lowest, abs=1e-5)


def test_without_noise_less_decay_is_better():
    found = [float(theory.erm(0.15, 0.5, weight_decay=decay)) for decay in (0.02, 0.01, 0.001, 0.0)]
    np.testing.assert_allclose(found, [0.214120, 0.188165, 0.163500, 0.160999], atol=1e-5)


def test_traces_and_narrow_matrices():
    found = [theory.erm(a / 4, 0.5).trace for a in (0.4, 0.6, 0.8)]
    np.testing.assert_allclose(found, [0.52615, 0.64107, 0.70379], atol=1e-5)
    found = [float(theory.erm(a / 4, rho)) for a, rho in RIDGELESS_NARROW]
    np.testing.assert_allclose(found, list(RIDGELESS_NARROW.values()), atol=1e-5)


@pytest.mark.parametrize("rho", RIDGELESS_ERRORS)
def test_smallest_trace_of_wide_matrices(rho):
    found = [float(theory.erm(a / 40, rho)) for a in range(2, 10)]
    np.testing.assert_allclose(found, RIDGELESS_ERRORS[rho], atol=1e-5)


def test_smallest_trace_of_noisy_data():
    found = [float(theory.erm(a / 4, 0.5, noise=0.25)) for a in RIDGELESS_NOISY]
    np.testing.assert_allclose(found, list(RIDGELESS_NOISY.values()), atol=1e-5)


def test_the_error_vanishes_quadratically_next_to_recovery():
    end = float(theory.erm_recovery_threshold(0.5))
    found = np.array([float(theory.erm(end - gap, 0.5)) / gap**2 for gap in (4e-4, 2e-4, 1e-4)])
    # linear corrections: 4e-4 is 0.2 % of the threshold
    np.testing.assert_allclose(found[1:] / found[:-1], 1.0, atol=0.01)


@pytest.mark.parametrize(
    ("alpha", "options", "expected"),
    [
        (1e-5, {"weight_decay": 0.1}, 1.5),  # nothing is learned: S = 0
        (0.1, {"weight_decay": 1e4}, 1.5),
        (100.0, {"weight_decay": 0.1}, 0.0),
    ],
)
def test_far_from_the_usual_noise_there_is_a_value_too(alpha, options, expected):
    found = theory.erm(alpha, 0.5, **options)
    assert found.converged
    assert float(found) == pytest.approx(expected, abs=1e-3)


def test_small_decay_joins_the_limit():
    ends = [float(theory.erm(0.15, 0.5, weight_decay=decay)) for decay in (1e-5, 0.0)]
    assert ends[0] == pytest.approx(ends[1], abs=5e-5)


@pytest.mark.slow
def test_untied_values():
    found = [float(theory.erm(a / 2, 0.5, tied=False)) for a in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88)]
    np.testing.assert_allclose(found, [0.693601, 0.522398, 0.364607, 0.227218, 0.115607, 0.035863, 0.002551], atol=1e-5)
    found = [float(theory.erm(a / 2, 0.2, tied=False)) for a in (0.3, 0.5)]
    np.testing.assert_allclose(found, [0.411691, 0.035280], atol=1e-5)
    cross = {"tied": False, "attention": "cross"}
    decayed = theory.erm(0.3, 0.5, weight_decay=0.05, **cross)
    np.testing.assert_allclose([float(decayed), decayed.dof, decayed.rank], [0.245727, 0.513132, 0.574954], atol=1e-5)
    assert float(theory.erm(0.6, 0.5, weight_decay=0.1, noise=0.25, **cross)) == pytest.approx(0.334250, abs=1e-5)


@pytest.mark.parametrize("rho", PERFECT)
def test_recovery_thresholds(rho):
    found = [
        float(theory.scaled_alpha(float(theory.erm_recovery_threshold(rho, tied=t)), tied=t)) for t in (True, False)
    ]
    np.testing.assert_allclose(found, PERFECT[rho], atol=1e-6)
    assert min(found) > spectrum.small_noise_slope(rho)
    assert theory.erm(found[0] / 4 * 1.001, rho).value == 0


def test_interpolation_threshold():
    found = theory.erm_interpolation_threshold(0.5, noise=0.25)
    assert 4 * float(found) == pytest.approx(0.613928, abs=1e-6)
    assert found.detail["blur"] == pytest.approx(2.292821, abs=1e-5)
    # the error there is finite; on its left the slope is infinite
    assert thresholded(2.292821, 0.0, 0.5, tied).error == pytest.approx(2.977438, abs=1e-5)
    others = [4 * float(theory.erm_interpolation_threshold(*s)) for s in ((0.5, 2, 0.1), (0.2, 2, 0.25), (0.5, 2, 1.0))]
    np.testing.assert_allclose(others, [0.657938, 0.551587, 0.554722], atol=1e-6)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.1, 1.9])
def test_semicircle_integral(tau):
    # s = 2 cos(angle): no square root is left at the edge
    values = lambda angle: (2 * np.cos(angle) - tau) ** 2 * 2 * np.sin(angle) ** 2 / np.pi  # noqa: E731
    direct = quad(values, 0, np.arccos(tau / 2), epsabs=1e-13)[0]
    assert semicircle_excess(tau) == pytest.approx(direct, abs=1e-10)


@pytest.mark.parametrize(("prior", "total"), [(tied, 1.5), (singular, 1.0)])
@pytest.mark.parametrize(("delta", "eps"), [(0.8, 0.5), (0.2, 0.1), (2.0, 1.0)])
def test_spectral_functions_agree_with_their_definitions(prior, total, delta, eps):
    found = thresholded(delta, eps, 0.5, prior)
    assert found.error == pytest.approx(found.J - 2 * found.O + total, abs=1e-9)
    step = 1e-3 * delta**2
    J = {s: thresholded(np.sqrt(delta**2 + s * step), eps, 0.5, prior).J for s in (-2, -1, 1, 2)}
    # difference of fourth order
    slope = (8 * (J[1] - J[-1]) - (J[2] - J[-2])) / (12 * step)
    assert found.df == pytest.approx(slope, abs=1e-6)


@pytest.mark.slow
def test_never_below_bayes():
    for rho in (0.1, 0.2, 0.5, 1.0, 2.0):
        for a in (0.05, 0.2, 0.5, 0.7, 0.95):
            assert float(theory.erm(a / 4, rho)) >= float(theory.mmse(a / 4, rho))


def test_density_and_atom_make_up_the_law():
    result = theory.erm(0.15, 0.5, weight_decay=0.1)
    mass = quad(lambda x: float(theory.erm_density(x, result, 0.5)), 0, 6, limit=200)[0]
    assert mass == pytest.approx(result.rank, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight_decay": -1.0}, "weight_decay must"),
        ({"noise": -0.1}, "noise must"),
        ({"alpha": 0.0}, "alpha must"),
        ({"loss": "hinge"}, "loss must"),
        ({"loss": "squared_output", "weight_decay": 0.1}, "not convex"),
        ({"loss": "cross_entropy", "weight_decay": 0.1, "tokens": 3}, "tokens=2"),
        ({"tied": False, "weight_decay": 0.1}, "untied self-attention"),
        ({"rho": np.inf}, "rho must be finite"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        theory.erm(**{"alpha": 0.1, "rho": 0.5} | arguments)


@pytest.mark.parametrize(("delta", "eps"), [(0.8, 0.5), (2.0, 1.0)])
def test_degrees_of_freedom_are_the_double_integral(delta, eps):
    bulk = tied.quadrature(delta**2, 0.5, 400)
    x, mass = bulk.x[0], bulk.weights[0] * bulk.density[0]
    f, gap = np.maximum(x - eps, 0.0), x[:, None] - x
    slopes = np.divide(f[:, None] - f, gap, out=np.diag((x > eps).astype(float)), where=gap != 0)
    # the kink of f between two of the 400 nodes
    assert mass @ slopes @ mass == pytest.approx(thresholded(delta, eps, 0.5, tied).df, abs=1e-4)


def test_a_threshold_below_the_spectrum_only_shifts_it():
    found = thresholded(0.8, -10.0, 0.5, tied)
    assert found.df == pytest.approx(1.0, abs=1e-10)
    moments = 1.5 + 0.8**2, 20 * np.sqrt(0.5) + 100
    assert sum(moments) == pytest.approx(found.J, rel=1e-9)
