"""Untied query and key, cross-attention and masks."""

import numpy as np
import pytest

from attnlab import aim
from attnlab.aim import spectrum, theory
from attnlab.aim.channels import Softmax
from attnlab.aim.indices import Layout
from attnlab.aim.theory import parts

UNTIED = {"tied": False}
CROSS = {"tied": False, "attention": "cross"}
# six digits from an independent implementation: alpha k, then the error at these widths
SOFTMAX_WIDTHS = (0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5)
SOFTMAX = """
.05 .936482 .946962 .948674 .949526 .949790 .949882 .949970 .949995
.10 .792230 .876891 .890043 .896456 .898425 .899112 .899777 .899964
.15 .514503 .780810 .819719 .839072 .845101 .847226 .849297 .849886
.20 0 .660064 .737513 .776864 .789472 .793989 .798455 .799748
.30 0 .347404 .546689 .640551 .671950 .683638 .695638 .699269
.40 0 0 .333381 .495869 .549404 .569871 .591634 .598553
.50 0 0 .045792 .351455 .426683 .455664 .487238 .497718
.60 0 0 0 .213899 .308447 .344174 .383493 .396954
.70 0 0 0 .084382 .199083 .238524 .281557 .296504
.80 0 0 0 0 .103192 .142045 .182670 .196651
.90 0 0 0 0 .026421 .059084 .088224 .097704
"""
# alpha k / rho at rho = .01
NARROW = {0.5: 0.99338, 0.8: 0.98121, 1: 0.95851, 1.2: 0.90935, 1.5: 0.72289, 1.8: 0.33921}
# alpha, then the error of cross-attention at these widths
HARDMAX_WIDTHS = (0.1, 0.2, 0.5, 1, 2)
HARDMAX = """
.05 .912754 .932201 .936950 .937607 .937771
.1 .735071 .842784 .872914 .877217 .878306
.2 .360485 .627909 .741442 .761954 .767599
.5 .067735 .218096 .426367 .485031 .505244
1 .017268 .060533 .191415 .244952 .263535
2 .004338 .015483 .062532 .090719 .097430
5 .000695 .002493 .010712 .017891 .018505
"""
# alpha, rho: the errors of both parts of hardmax self-attention, five digits
HARDMAX_SELF = {
    (0.2, 0.5): (0.65780, 0.83856),
    (0.5, 0.5): (0.33937, 0.56211),
    (1, 0.5): (0.14353, 0.29276),
    (0.5, 0.2): (0.19332, 0.27758),
    (0.5, 1): (0.37559, 0.64258),
    (1, 1): (0.17187, 0.38592),
}


def table(text):
    return np.array([line.split() for line in text.split("\n") if line], dtype=float)


@pytest.mark.parametrize(
    "law", [{**UNTIED, "tokens": 2}, {**CROSS, "tokens": (2, 3)}, {**UNTIED, "tokens": 3, "mask": "causal"}]
)
@pytest.mark.parametrize(("column", "rho"), list(enumerate(SOFTMAX_WIDTHS)))
def test_softmax_error_has_its_reference_values(law, column, rho):
    rows, k = table(SOFTMAX), float(theory.measurements(**law))
    np.testing.assert_allclose(theory.mmse(rows[:, 0] / k, rho, **law), rows[:, column + 1], atol=1e-5)


def test_tied_causal_is_the_tied_curve_at_its_own_scale():
    scaled = np.array([0.1, 0.4, 0.7])
    for T in (2, 3, 5):
        causal = theory.mmse(scaled / (T * (T - 1)), 0.5, T, mask="causal")
        np.testing.assert_allclose(causal, theory.mmse(scaled / 4, 0.5), atol=1e-12)


def test_softmax_error_of_narrow_matrices():
    found = theory.mmse(np.array(list(NARROW)) * 0.01 / 2, 0.01, **UNTIED)
    np.testing.assert_allclose(found, list(NARROW.values()), atol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_measurements_are_the_rank_of_the_visible_contrasts(tied, seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        T = int(rng.integers(2, 6))
        layout = Layout.of(T, tied, "self", rng.random((T, T)) < rng.uniform(0.2, 1))
        h = layout.unwhiten(np.eye(layout.p))  # (p, T, T): h of each whitened component alone
        contrasts = [
            h[:, a, b] - h[:, a, row.argmax()] for a, row in enumerate(layout.visible) for b in row.nonzero()[0]
        ]
        expected = np.linalg.matrix_rank(np.array(contrasts)) if contrasts else 0
        assert Softmax().informative(layout) == expected


def test_recovery_and_weak_recovery():
    for tokens, rho, k in ((2, 0.5, 2), (3, 0.3, 6), (4, 2.0, 12)):
        slope = 2 * rho - rho**2 if rho < 1 else 1
        assert float(theory.recovery_threshold(rho, tokens, **UNTIED)) == pytest.approx(slope / k, rel=1e-15)
    line = theory.mmse(np.array([0.05, 0.2, 0.45, 0.5]), np.inf, **UNTIED)
    np.testing.assert_allclose(line, [0.9, 0.6, 0.1, 0.0], atol=1e-12)
    assert float(theory.weak_recovery_threshold(2, "hardmax", **CROSS)) == pytest.approx(np.pi / 4, abs=1e-8)
    three = theory.weak_recovery_threshold(3, "hardmax", **CROSS)
    assert float(three) == pytest.approx(8 * np.pi / 81, abs=1e-8)
    four = theory.weak_recovery_threshold(4, "hardmax", **CROSS)
    assert float(four) == pytest.approx(0.176951, abs=1e-6)


@pytest.mark.parametrize(
    ("rho", "slope"),
    [
        (0.1, 18.037),
        (0.2, 8.074),
        (0.3, 4.7773),
        (0.5, 2.1809),
        (0.7, 1.1010),
        (1.5, 0.73206),
        (2, 0.84305),
        (5, 0.96961),
    ],
)
def test_error_next_to_recovery_falls_with_its_slope(rho, slope):
    k, before = 2, np.array([2e-4, 1e-4])
    ratios = theory.mmse((spectrum.small_noise_slope(rho) - before) / k, rho, **UNTIED) / before
    # linear extrapolation to the threshold
    assert 2 * ratios[1] - ratios[0] == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize(("column", "rho"), list(enumerate(HARDMAX_WIDTHS)))
def test_hardmax_cross_error_has_its_reference_values(column, rho):
    rows = table(HARDMAX)
    found = theory.mmse(rows[:, 0], rho, channel="hardmax", **CROSS)
    np.testing.assert_allclose(found, rows[:, column + 1], atol=2e-6)


def test_hardmax_cross_with_three_tokens():
    wide, narrow = (theory.mmse(alpha, rho, 3, "hardmax", **CROSS) for alpha, rho in (([0.1, 0.25], 0.5), (0.25, 0.2)))
    np.testing.assert_allclose([*wide, narrow], [0.68139, 0.35689, 0.16459], atol=1e-4)


def test_strength_of_hardmax_cross_attention():
    V = np.array([1.0, 0.5, 0.1])
    two, three = (theory.channel_strength(1 - V, V, T, "hardmax", **CROSS) for T in (2, 3))
    np.testing.assert_allclose(two, [1.273240, 1.922152, 4.506957], atol=1e-6)
    # a table whose stated error at V = .5 is 3.5e-4
    assert (np.abs(three.value[:2] - [3.222888, 4.678747]) < 2 * three.error[:2] + 1e-6).all()


@pytest.mark.parametrize("setting", HARDMAX_SELF, ids=str)
def test_hardmax_self_attention_has_two_variances(setting):
    # W1: the isotropic theory, right for cross-attention, gives .4264 at (.5, .5), where the mean of both is .4507
    found = theory.error_parts(*setting, channel="hardmax", **UNTIED).value
    np.testing.assert_allclose(found, HARDMAX_SELF[setting], atol=2e-5)


@pytest.mark.parametrize("rho", [0.5, 2.0])
def test_hardmax_at_many_samples(rho):
    cross, both = (aim.Task(10**6, rho=rho, channel="hardmax", **law) for law in (CROSS, UNTIED))
    limits = [float(theory.large_alpha_mmse(task, 1.0)) for task in (cross, both)]
    assert limits[0] == pytest.approx(spectrum.small_noise_slope(rho) ** 2 / 2.077329, rel=1e-6)
    # corrections of order sqrt(M)
    found = [1e4 * float(theory.mmse(task, 100.0)) for task in (cross, both)]
    np.testing.assert_allclose(found, limits, rtol=2e-3)
    if rho > 1:  # V_a = 3 V_s where the prior does not mix the parts, and M is 4/3 of its isotropic value
        assert limits[1] / limits[0] == pytest.approx(4 / 3, rel=1e-6)


def test_strengths_of_both_parts():
    law = aim.Task(10**6, channel="hardmax", **UNTIED)
    found = [law.law.strength_parts(*V, law.layout) for V in ((0.5, 0.5), (0.4, 0.6), (0.2, 0.3))]
    np.testing.assert_allclose(found, [(1.441614, 0.480538), (1.559902, 0.485200), (2.253658, 0.714543)], atol=1e-6)


def test_parts_of_causal_softmax():
    found = theory.error_parts(0.2, 0.5, 3, mask="causal", **UNTIED).value
    np.testing.assert_allclose(found / found.mean(), [0.742542, 1.257458], atol=1e-6)


@pytest.mark.parametrize(("tokens", "alpha"), [(2, 0.2), (3, 0.08), (4, 0.04)])
def test_parts_of_softmax_have_their_closed_form(tokens, alpha):
    V = float(theory.mmse(alpha, 0.5, tokens, **UNTIED))
    T = tokens
    expected = np.array([1 - alpha * T * (T - 1), 1 - alpha * (T - 1) * (T - 2)]) / (1 - alpha * (T - 1) ** 2)
    np.testing.assert_allclose(theory.error_parts(alpha, 0.5, T, **UNTIED).value / V, expected, atol=1e-8)


def test_equal_parts_are_the_isotropic_theory(monkeypatch):
    task = aim.Task(10**6, channel="hardmax", **UNTIED)
    half = lambda self, Vs, Va, layout: (float(self.strength((Vs + Va) / 2, 1.0, layout).value) / 2,) * 2  # noqa: E731
    monkeypatch.setattr(type(task.law), "strength_parts", half)
    for delta in (0.3, 2.0):
        white = theory.parametric_curve(aim.Task(10**6, channel="hardmax", **CROSS), delta)[0][0]
        assert parts.parts_at(task, delta).alpha == pytest.approx(white, rel=1e-8)


def test_noise_splits_the_parts_of_softmax_too():
    noisy = theory.error_parts(0.2, 0.5, noise=0.3, **UNTIED)
    assert noisy.converged
    clean, white = (theory.mmse(0.2, 0.5, noise=n, **law) for n, law in ((0.0, UNTIED), (0.3, CROSS)))
    # noise costs; the two variances move M by a per cent or so
    assert clean < noisy.value.mean()
    assert noisy.value.mean() == pytest.approx(float(white), rel=0.05)


@pytest.mark.parametrize(
    ("scaled", "law", "bayes", "plug_in"),
    [
        (0.4, CROSS, 0.139543, 0.142386),
        (0.4, UNTIED, 0.122700, 0.125070),
        (0.6, CROSS, 0.061746, 0.062490),
        (0.6, UNTIED, 0.048758, 0.049239),
    ],
)
def test_prediction_errors_have_their_reference_values(scaled, law, bayes, plug_in):
    error = float(theory.mmse(scaled / 2, 0.5, **law))
    found = [float(theory.generalization_error(error, 0.5, predictor=p, **law)) for p in ("bayes", "plug-in")]
    np.testing.assert_allclose(found, [bayes, plug_in], atol=1e-6)


def test_prediction_error_without_data():
    assert float(theory.generalization_error(1.0, 0.5, **UNTIED)) == pytest.approx(0.273676, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attention": "cross"}, "tied=False"),
        ({"tied": False, "channel": "hardmax", "tokens": 3}, "tokens"),
        ({"tied": False, "rho": 0.01}, "rho must"),
        ({"mask": "diagonal"}, "mask must be"),
        ({"tokens": 1}, "tokens"),
        ({"tokens": 3, "mask": np.zeros((3, 3), dtype=bool)}, "mask"),
        ({"tokens": 1, "mask": "causal"}, "mask"),
        ({"tokens": (2, 3)}, "tokens"),
        ({"attention": "cross", "tied": False, "mask": "causal"}, "mask"),
        ({"channel": "hardmax", "mask": "causal"}, "mask"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        aim.Task(10, **arguments)


@pytest.mark.parametrize(
    ("tokens", "rho", "scaled", "simulated", "sem"),
    [
        (2, 0.5, 0.4, 0.4966, 0.0043),
        (2, 0.5, 0.6, 0.2171, 0.0018),
        (3, 0.3, 0.45, 0.2197, 0.0023),
        (4, 0.8, 0.7, 0.2082, 0.0031),
    ],
)
def test_theory_meets_independent_simulations_at_d_200(tokens, rho, scaled, simulated, sem):
    """Message passing of another implementation, softmax self-attention, means over 4 seeds."""
    k = float(theory.measurements(tokens, **UNTIED))
    assert abs(float(theory.mmse(scaled / k, rho, tokens, **UNTIED)) - simulated) < 3 * sem
