"""The page computes the same theory as Python: closed forms at random points, tables at their nodes, to 1e-6."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from attnlab import aim, rfa, slr, smi
from attnlab.aim.figures import spectra
from attnlab.explore.page import START as STARTED
from attnlab.mha.theory import examples_needed
from attnlab.rfa.explorer.tables import DIMENSIONS, EPS, KEYS, LABELS
from attnlab.rfa.figures.curves import TARGETS
from attnlab.slr.theory.dynamics import velocity
from attnlab.smi.explorer import tables
from attnlab.smi.explorer.precompute import BRANCHES, branch

TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


# What the scripts ask of a browser while they are read; nothing is drawn.
BROWSER = """
globalThis.document = {
  createElement: () => ({ getContext: () => ({}) }),
  getElementById: () => ({ textContent: DATA }),
};
"""
START = "for (const view of Object.values(attnlab.views)) view.prepare?.(JSON.parse(DATA));"


@pytest.fixture(scope="module")
def page_computes(page, tmp_path_factory):
    """``page_computes(function, list of arguments)``: all answers of a function of the page's own script, by Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    content = page.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', content, flags=re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", content, flags=re.DOTALL)
    file = tmp_path_factory.mktemp("node") / "page.js"

    def ask(function, calls):
        answer = f"console.log(JSON.stringify({json.dumps(calls)}.map((call) => ({function})(...call))))"
        parts = (f"const DATA = {json.dumps(data)};", BROWSER, script.replace(STARTED, START), answer)
        file.write_text("\n".join(parts), encoding="utf-8")
        result = subprocess.run([node, file], capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr[-2000:]
        return json.loads(result.stdout)

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
SETTING = "(target, d, N, model, n, units)"
CURVE = f"{SETTING} => attnlab.views.rfa.predict({DATA}, {{ target, d, N }}, model, n, units ?? Infinity)"


@pytest.mark.parametrize("units", [None, 30, 1000])
def test_rfa_learning_curves_at_the_nodes_of_the_tables(page_computes, random, units):
    calls = []
    for name in POLYNOMIALS:
        for model in ("rfa", "rfmlp"):
            d, n_keys = int(random.choice(DIMENSIONS)), int(random.choice(KEYS))
            calls.append([name, d, n_keys, model, float(np.exp(random.uniform(np.log(32), np.log(32768)))), units])
    expected = [
        rfa.theory.learning_curve(
            rfa.Task(d=d, n_keys=n_keys, **TARGETS[name]), n, model, **{"n_heads" if model == "rfa" else "width": units}
        ).value
        for name, d, n_keys, model, n, units in calls
    ]
    np.testing.assert_allclose(page_computes(CURVE, calls), expected, **TOLERANCE)


def test_rfa_complexities(page_computes):
    read = f"(target, d, N) => {DATA}.rfa.modes[target][d][N].complexity"
    for name, d, n_keys in (("f1_p2", 16, 16), ("f2_q1", 64, 4), ("corr_p3", 8, 2)):
        task = rfa.Task(d=d, n_keys=n_keys, **TARGETS[name])
        (found,) = page_computes(read, [[name, d, n_keys]])
        assert found["rfa"] == pytest.approx(rfa.theory.complexity_exact(task).value, rel=1e-6)
        assert found["rfmlp"] == pytest.approx(rfa.theory.complexity_exact(task, "rfmlp").value, rel=1e-6)
        assert found["approx"] == pytest.approx(rfa.theory.complexity_approx(task, eps=EPS).value, rel=1e-6)
        if name != "f1_p2":
            expected = rfa.theory.complexity_approx(task, "brfa", eps=EPS).value
            assert found["biased"] == pytest.approx(expected, rel=1e-6)


def test_mha_counting_limit(page_computes):
    calls = [[m, d, k] for m in (1, 2, 3, 5) for d in (4, 8, 16) for k in (2, 3, 6)]
    assert page_computes("attnlab.views.mha.needed", calls) == [examples_needed(*call) for call in calls]


LIVE_SGD = """(law, start, end) => {
  const run = attnlab.slrLive.simulator(start, law, 1);
  while (run.time() < end) run.advance();
  return run.overlaps();
}"""


def test_live_descent_follows_the_flow(page_computes):
    law, start, end = {"d": 20, "L": 4, "lam": 0.2}, [0.1, 0.2, 0, 0, 0], 4.0
    (found,) = page_computes(LIVE_SGD, [[law, start, end]])
    expected = slr.theory.gradient_flow(start, [end], **law).value[-1, 0]
    # a batch of 20 and steps of 0.01: overlaps fluctuate by a few hundredths at d = 20
    np.testing.assert_allclose(found, expected, atol=0.1)


LIVE_AMP = """(setting, seed) => {
  const run = attnlab.aimLive.simulator(setting, seed);
  for (let i = 0; i < 25; i++) run.advance();
  return run.error();
}"""


def test_live_message_passing_lands_on_the_bayes_error(page_computes):
    setting = {"d": 24, "tokens": 2, "rho": 0.5, "alpha": 0.1}
    errors = page_computes(LIVE_AMP, [[setting, seed] for seed in range(8)])
    # four standard errors of the mean and the O(1/d) shift of a small dimension
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(float(aim.theory.mmse(0.1, 0.5, 2)), abs=4 * spread + 2 / 24)


def test_smi_branches_are_those_of_the_theory():
    link, _, direction, _ = BRANCHES[0]
    (stored,) = [row for row in tables()["branches"] if row["link"] == link]
    again = branch(link, direction)
    for name in ("v", "S", "weak"):
        np.testing.assert_allclose(again[name], stored[name], **TOLERANCE)


def test_smi_overlaps_and_free_entropy(page_computes):
    """Along the curve itself, in the hard phase, and against the path integral of the free entropy."""
    rows = {row["link"]: row for row in tables()["branches"]}
    phase, tied = rows["phase_retrieval(noise=0.0)"], rows["attention(tokens=2)"]
    q = -np.expm1(-np.array(tied["v"]))
    calls = [[tied, float(alpha)] for alpha in q[5:30:5] / np.array(tied["S"])[5:30:5]]
    np.testing.assert_allclose(page_computes("attnlab.smiTheory.reached", calls), q[5:30:5], **TOLERANCE)
    hard = [[phase, 1.05]]
    assert page_computes("attnlab.smiTheory.reached", hard)[0] < 0.6
    assert page_computes("attnlab.smiTheory.informed", hard)[0] > 0.99
    (found,) = page_computes("attnlab.smiTheory.entropy", [[tied, 0.4]])
    expected = float(smi.theory.free_entropy("attention", 0.4, [[q[10]]]))
    # Trapezoid rule over steps of 0.16 in v.
    assert found[10] == pytest.approx(expected, abs=2e-3)
