"""Untied query and key, cross-attention and masks."""

import numpy as np
import pytest

from attnlab import aim
from attnlab.aim import theory
from attnlab.aim.channels import Softmax
from attnlab.aim.indices import Layout
from attnlab.aim.theory import parts

UNTIED = {"tied": False}
CROSS = {"tied": False, "attention": "cross"}
# alpha k, then the error at widths .1 .5 1 2: six digits from an independent implementation
SOFTMAX = """
.05 .936482 .949526 .949882 .949970
.20 0 .776864 .793989 .798455
.40 0 .495869 .569871 .591634
.60 0 .213899 .344174 .383493
.70 0 .084382 .238524 .281557
"""
# alpha, then the error at widths .1 .5 2
HARDMAX = """
.05 .912754 .936950 .937771
.2 .360485 .741442 .767599
1 .017268 .191415 .263535
5 .000695 .010712 .018505
"""


def table(text):
    return np.array([line.split() for line in text.split("\n") if line], dtype=float)


@pytest.mark.parametrize(
    "law", [{**UNTIED, "tokens": 2}, {**CROSS, "tokens": (2, 3)}, {**UNTIED, "tokens": 3, "mask": "causal"}]
)
@pytest.mark.parametrize(("column", "rho"), list(enumerate((0.1, 0.5, 1, 2))))
def test_softmax_error_has_its_reference_values(law, column, rho):
    rows, k = table(SOFTMAX), float(theory.measurements(**law))
    np.testing.assert_allclose(theory.mmse(rows[:, 0] / k, rho, **law), rows[:, column + 1], atol=1e-5)


def test_tied_causal_is_the_tied_curve_at_its_own_scale():
    scaled = np.array([0.1, 0.4, 0.7])
    for T in (2, 3, 5):
        causal = theory.mmse(scaled / (T * (T - 1)), 0.5, T, mask="causal")
        np.testing.assert_allclose(causal, theory.mmse(scaled / 4, 0.5), atol=1e-12)


@pytest.mark.parametrize("tied", [True, False])
def test_measurements_are_the_rank_of_the_visible_contrasts(tied, seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        T = int(rng.integers(2, 6))
        mask = rng.random((T, T)) < 0.6
        layout = Layout.of(T, tied, "self", mask)
        rows = [set(np.flatnonzero(row)) for row in mask]
        if tied:
            pairs = {frozenset((a, int(b))) for a, row in enumerate(rows) for b in row}
            joined = [{a} for a in range(T) if rows[a]]
            for a in range(T):
                for b in range(a):
                    if a in rows[b] and b in rows[a]:
                        both = [group for group in joined if a in group or b in group]
                        joined = [group for group in joined if group not in both] + [set().union(*both)]
            expected = len(pairs) - len(joined)
        else:
            expected = sum(max(len(row) - 1, 0) for row in rows)
        assert Softmax().informative(layout) == expected


def test_recovery_and_weak_recovery():
    assert float(theory.recovery_threshold(0.5, 2, **UNTIED)) == pytest.approx(0.75 / 2)
    assert float(theory.mmse(0.2, np.inf, **UNTIED)) == pytest.approx(0.6, abs=1e-12)
    assert float(theory.weak_recovery_threshold(2, "hardmax", **CROSS)) == pytest.approx(np.pi / 4, abs=1e-8)
    three = theory.weak_recovery_threshold(3, "hardmax", **CROSS)
    assert float(three) == pytest.approx(8 * np.pi / 81, abs=1e-6)


@pytest.mark.parametrize(("column", "rho"), list(enumerate((0.1, 0.5, 2))))
def test_hardmax_cross_error_has_its_reference_values(column, rho):
    rows = table(HARDMAX)
    found = theory.mmse(rows[:, 0], rho, channel="hardmax", **CROSS)
    np.testing.assert_allclose(found, rows[:, column + 1], atol=2e-6)


def test_hardmax_cross_with_three_tokens():
    found = theory.mmse([0.1, 0.25], 0.5, 3, "hardmax", **CROSS)
    # 1e-4 of the reference, and the error of the table
    assert (np.abs(found - np.array([0.68139, 0.35689])) < 1e-4 + 4 * found.error).all()


def test_hardmax_self_attention_has_two_variances():
    found = theory.error_parts(0.5, 0.5, channel="hardmax", **UNTIED).value
    np.testing.assert_allclose(found, [0.33937, 0.56211], atol=2e-5)
    # W1: the isotropic theory, right for cross-attention, gives .4264
    assert found.mean() == pytest.approx(0.45074, abs=2e-5)
    law = aim.Task(10**6, channel="hardmax", **UNTIED)
    np.testing.assert_allclose(law.law.strength_parts(0.4, 0.6, law.layout), (1.559902, 0.485200), atol=1e-5)


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
    np.testing.assert_allclose(found, [bayes, plug_in], atol=2e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attention": "cross"}, "tied=False"),
        ({"tied": False, "channel": "hardmax", "tokens": 3}, "tokens"),
        ({"tied": False, "rho": 0.01}, "rho must"),
        ({"mask": "diagonal"}, "mask must be"),
        ({"tokens": 1}, "tokens"),
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
