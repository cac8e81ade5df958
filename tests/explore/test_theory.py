"""The page computes the same theory as Python: closed forms at random points, tables at their nodes, to 1e-6."""

import json

import numpy as np
import pytest

from attnlab import aim, rfa, slr
from attnlab.aim.figures import spectra
from attnlab.mha.theory import examples_needed
from attnlab.rfa.explorer.tables import DIMENSIONS, EPS, KEYS, LABELS
from attnlab.rfa.figures.curves import TARGETS
from attnlab.slr.theory.dynamics import velocity

TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


@pytest.fixture(scope="module")
def page_computes(browser):
    """``page_computes(function, list of arguments)``: all answers of a JavaScript function in one go."""

    def ask(function, calls):
        script = f"return JSON.stringify(arguments[0].map((call) => ({function})(...call)))"
        return json.loads(browser.execute_script(script, calls))

    return ask


@pytest.fixture(scope="module")
def random():
    return np.random.default_rng(7)


def widths(random, n):
    return np.exp(random.uniform(np.log(0.05), np.log(5), n)).tolist()


def test_aim_softmax_error(page_computes, random):
    calls = []
    for rho in widths(random, 12):
        tokens = int(random.integers(2, 7))
        calls.append([float(random.uniform(0.02, 1.1)) / (tokens**2 + tokens - 2), rho, tokens])
    expected = [aim.theory.mmse(alpha, rho, tokens) for alpha, rho, tokens in calls]
    np.testing.assert_allclose(page_computes("attnlab.aimTheory.mmse", calls), expected, **TOLERANCE)


def test_aim_hardmax_error(page_computes, random):
    calls = [[float(10 ** random.uniform(-1.7, 1)), rho, 2, "hardmax"] for rho in widths(random, 12)]
    expected = [aim.theory.mmse(alpha, rho, 2, channel) for alpha, rho, _, channel in calls]
    np.testing.assert_allclose(page_computes("attnlab.aimTheory.mmse", calls), expected, **TOLERANCE)


def test_aim_thresholds(page_computes, random):
    calls = [[rho, int(random.integers(2, 7))] for rho in widths(random, 20)]
    expected = [aim.theory.recovery_threshold(rho, tokens) for rho, tokens in calls]
    np.testing.assert_allclose(page_computes("attnlab.aimTheory.threshold", calls), expected, **TOLERANCE)


def test_aim_curve_lies_on_the_parametric_one(page_computes):
    for channel in ("softmax", "hardmax"):
        (curve,) = page_computes("attnlab.aimTheory.curve", [[0.5, 2, channel]])
        alpha, error = np.array(curve["alpha"][1:70]), np.array(curve["error"][1:70])
        np.testing.assert_allclose(error, aim.theory.mmse(alpha, 0.5, 2, channel), **TOLERANCE)


def test_aim_spectrum(page_computes, random):
    calls = [[float(random.uniform(-1, 5)), float(10 ** random.uniform(-4, 2)), rho] for rho in widths(random, 60)]
    for name, function in (("density", aim.spectrum.density), ("shrink", aim.spectrum.shrink)):
        expected = [function(np.array([x]), noise, rho)[0] for x, noise, rho in calls]
        np.testing.assert_allclose(page_computes(f"attnlab.aimTheory.{name}", calls), expected, **TOLERANCE)
    levels = [call[1:] for call in calls]
    for found, (noise, rho) in zip(page_computes("attnlab.aimTheory.edges", levels), levels, strict=True):
        np.testing.assert_allclose(found, aim.spectrum.edges(noise, rho), **TOLERANCE)
    expected = [aim.spectrum.denoising_mmse(noise, rho) for noise, rho in levels]
    np.testing.assert_allclose(page_computes("attnlab.aimTheory.denoising", levels), expected, **TOLERANCE)


def test_aim_law_of_the_estimate(page_computes):
    for alpha in (0.05, 0.15, 0.22):
        noise = page_computes("attnlab.aimTheory.effectiveNoise", [[alpha, 0.5, 2, "softmax"]])[0]
        (found,) = page_computes("attnlab.aimTheory.law", [[noise, 0.5]])
        x, cdf = spectra.law(aim.Task(d=1000, tokens=2, rho=0.5), alpha)
        np.testing.assert_allclose(found["x"], x, **TOLERANCE)
        np.testing.assert_allclose(found["cdf"], cdf, **TOLERANCE)


def settings(random, n):
    return [
        {
            "d": int(random.integers(2, 3000)),
            "L": int(random.integers(2, 50)),
            "lam": float(10 ** random.uniform(-2, 0.3)),
        }
        for _ in range(n)
    ]


def test_slr_risk_and_gradient(page_computes, random):
    laws = settings(random, 60)
    calls = [[random.uniform(-0.6, 0.6, 5).tolist(), law] for law in laws]
    expected = [slr.theory.risk(*state, **law) for state, law in calls]
    np.testing.assert_allclose(page_computes("attnlab.slrTheory.risk", calls), expected, **TOLERANCE)
    expected = [slr.theory.risk_gradient(*state, **law) for state, law in calls]
    np.testing.assert_allclose(page_computes("attnlab.slrTheory.gradient", calls), expected, **TOLERANCE)
    expected = [velocity(state, **law) for state, law in calls]
    np.testing.assert_allclose(page_computes("attnlab.slrTheory.velocity", calls), expected, **TOLERANCE)


def test_slr_references_and_stability(page_computes, random):
    laws = settings(random, 40)
    calls = [[law] for law in laws]
    expected = [slr.theory.oracle_risk(**law) for law in laws]
    np.testing.assert_allclose(page_computes("attnlab.slrTheory.oracleRisk", calls), expected, **TOLERANCE)
    expected = [slr.theory.transverse_exponent(**law) for law in laws]
    np.testing.assert_allclose(page_computes("attnlab.slrTheory.transverseExponent", calls), expected, **TOLERANCE)
    expected = [slr.theory.linear_risk(L=law["L"]) for law in laws]
    found = page_computes("attnlab.slrTheory.linearRisk", [[law["L"]] for law in laws])
    np.testing.assert_allclose(found, expected, **TOLERANCE)


@pytest.mark.parametrize("lam", [0.05, 0.2, 1.0])
def test_slr_gradient_flow(page_computes, lam):
    law, start = {"d": 400, "L": 10, "lam": lam}, [-0.3, 0.5, 0.1, 0.05, -0.02]
    expected = slr.theory.gradient_flow(start, [5.0], **law).value[-1, 0]
    end = "(start, law, tolerance) => attnlab.slrTheory.flow(start, 5, law, tolerance, 1e5).states.at(-1)"
    fine, drawn = page_computes(end, [[start, law, 1e-9], [start, law, 2e-5]])
    np.testing.assert_allclose(fine, expected, **TOLERANCE)
    # what is drawn is integrated to the width of a line
    np.testing.assert_allclose(drawn, expected, atol=1e-3)


def test_slr_starts_are_possible_pairs_of_vectors(page_computes, random):
    """The Gram matrix of (k*, v*, k, v) must be positive semidefinite, or there is no such start."""
    calls = [[random.uniform(-1, 1, 2).tolist(), off] for off in (0.0, 0.001, 0.1, 0.3) for _ in range(10)]
    for kappa, nu, theta, eta, rho in page_computes("attnlab.views.slr.begin", calls):
        gram = np.array([[1, 0, kappa, theta], [0, 1, eta, nu], [kappa, eta, 1, rho], [theta, nu, rho, 1]])
        assert np.linalg.eigvalsh(gram)[0] > -1e-12


POLYNOMIALS = [name for name in LABELS if not name.startswith("softmax")]
DATA = 'JSON.parse(document.getElementById("data").textContent)'
CURVE = f"(target, d, N, model, n) => attnlab.views.rfa.predict({DATA}, {{ target, d, N }}, model, n)"


def test_rfa_learning_curves_at_the_nodes_of_the_tables(page_computes, random):
    calls = []
    for name in POLYNOMIALS:
        for model in ("rfa", "rfmlp"):
            d, n_keys = int(random.choice(DIMENSIONS)), int(random.choice(KEYS))
            calls.append([name, d, n_keys, model, float(np.exp(random.uniform(np.log(32), np.log(32768))))])
    expected = [
        rfa.theory.learning_curve(rfa.Task(d=d, n_keys=n_keys, **TARGETS[name]), n, model).value
        for name, d, n_keys, model, n in calls
    ]
    np.testing.assert_allclose(page_computes(CURVE, calls), expected, **TOLERANCE)


def test_rfa_complexities(page_computes):
    read = f"(target, d, N) => {DATA}.rfa.modes[target][d][N].complexity"
    for name, d, n_keys in (("f1_p2", 16, 16), ("f2_q1", 64, 4), ("corr_p3", 8, 2)):
        task = rfa.Task(d=d, n_keys=n_keys, **TARGETS[name])
        (found,) = page_computes(read, [[name, d, n_keys]])
        assert found["rfa"] == pytest.approx(rfa.theory.complexity_exact(task), rel=1e-6)
        assert found["rfmlp"] == pytest.approx(rfa.theory.complexity_exact(task, "rfmlp"), rel=1e-6)
        assert found["approx"] == pytest.approx(rfa.theory.complexity_approx(task, eps=EPS), rel=1e-6)
        if name != "f1_p2":
            expected = rfa.theory.complexity_approx(task, "brfa", eps=EPS)
            assert found["biased"] == pytest.approx(expected, rel=1e-6)


def test_mha_counting_limit(page_computes):
    calls = [[m, d, k] for m in (1, 2, 3, 5) for d in (4, 8, 16) for k in (2, 3, 6)]
    assert page_computes("attnlab.views.mha.needed", calls) == [examples_needed(*call) for call in calls]
