import numpy as np
import pytest

from attnlab.aim import theory

WIDTHS = (0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, np.inf)
# rescaled alpha, then the error at each width: six digits, fixed points of the iteration found independently
SOFTMAX = """
.05 .911584 .935075 .940809 .944813 .946644 .947520 .948787 .949521 .95
.10 .717946 .835254 .861722 .879171 .886778 .890322 .895334 .898174 .9
.20 0 .561475 .659063 .723677 .751853 .764917 .783230 .793477 .8
.40 0 0 .230676 .392196 .464893 .499922 .550930 .580622 .6
.60 0 0 0 .128131 .216943 .261453 .329529 .371463 .4
.90 0 0 0 0 .008245 .027370 .061273 .084053 .1
"""
HARDMAX = {0.1: (0.3718, 0.7451, 0.8455), 0.5: (0.01916, 0.2131, 0.4149), 1.0: (0.0048, 0.0789, 0.2002)}


@pytest.mark.parametrize("column", range(len(WIDTHS)))
def test_softmax_error_has_its_reference_values(column):
    rows = np.array([line.split() for line in SOFTMAX.split("\n") if line], dtype=float)
    error = theory.mmse(rows[:, 0] / 4, WIDTHS[column])
    np.testing.assert_allclose(error, rows[:, column + 1], atol=1e-5)


def test_all_token_numbers_collapse():
    scaled = np.array([0.1, 0.4, 0.7])
    curves = [theory.mmse(scaled / (T**2 + T - 2), 0.5, T) for T in (2, 3, 6)]
    np.testing.assert_allclose(curves, np.tile(curves[0], (3, 1)), atol=1e-10)


def test_hardmax_error_has_its_reference_values():
    for alpha, expected in HARDMAX.items():
        error = [theory.mmse(alpha, rho, channel="hardmax") for rho in (0.1, 0.5, 2.0)]
        # the references are given to four digits
        np.testing.assert_allclose(error, expected, rtol=3e-3, atol=6e-5)


def test_legacy_hardmax_reproduces_the_published_curve():
    error = theory.mmse([0.1, 0.5, 2.0], 0.5, channel="hardmax_legacy")
    np.testing.assert_allclose(error, [0.8603, 0.4885, 0.1878], rtol=3e-3)


@pytest.mark.parametrize(("channel", "alpha"), [("softmax", 0.1), ("hardmax", 0.5)])
def test_iteration_ends_at_the_parametric_solution_from_both_starts(channel, alpha):
    expected = float(theory.mmse(alpha, 0.5, channel=channel))
    for start in (1.0, 0.01):
        evolved = theory.state_evolution(alpha, 0.5, channel=channel, start=start)
        assert evolved.converged
        assert evolved.value == pytest.approx(expected, abs=1e-7)


def test_one_linear_token_with_noise_is_the_quadratic_network():
    # arXiv:2408.03733 at width 1/2 with output noise 0.25, which is 0.125 on the whitened index
    error = theory.mmse([0.15817, 0.31533], 0.5, 1, "linear", noise=0.125)
    np.testing.assert_allclose(error, [0.617487, 0.314850], atol=2e-5)


def test_no_data_no_knowledge_and_threshold_ends_the_curve():
    assert theory.mmse(0.0, 0.5) == 1
    threshold = float(theory.recovery_threshold(0.5))
    assert theory.mmse(threshold, 0.5) == 0
    assert 0 < theory.mmse(0.99 * threshold, 0.5) < 0.02
    assert float(theory.mmse(0.05, np.inf)) == pytest.approx(0.8, abs=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((-0.1, 0.5), "alpha"), ((0.1, 0.0), "rho"), ((0.1, 0.5, 0), "tokens"), ((0.1, 0.5, 1), "at least 2 tokens")],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        theory.mmse(*arguments)
