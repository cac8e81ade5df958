"""The shipped tables are what the theory and the learners give today, on a sample."""

import numpy as np
import pytest

from attnlab.aim.theory.output import hardmax_scale
from attnlab.explore import precompute
from attnlab.explore.predictions import precomputed
from attnlab.mha.theory import examples_needed


@pytest.fixture(scope="module")
def tables():
    return precomputed()


def test_hardmax_with_two_tokens(tables):
    np.testing.assert_allclose(tables["hardmax"]["2"], precompute.hardmax_table(2), rtol=1e-9)


@pytest.mark.slow
def test_hardmax_with_three_tokens(tables):
    # fixed quasi-Monte Carlo points: the same numbers up to the order of summation
    np.testing.assert_allclose(tables["hardmax"]["3"], precompute.hardmax_table(3), rtol=1e-6)


def test_the_nodes_are_those_of_the_theory(tables):
    """Between nodes a wrong grid would miss: the polynomial through the table must be hardmax_scale itself."""
    root = (1 - np.cos((np.arange(48) + 0.5) * np.pi / 48)) / 2
    middle = (root[1:] + root[:-1]) / 2
    polynomial = np.polynomial.Chebyshev.fit(root, tables["hardmax"]["2"], 47, domain=[0, 1])
    np.testing.assert_allclose(middle * polynomial(middle), hardmax_scale(2)(middle**2), rtol=1e-7)


def layer(tables, m, rho):
    return next(x for x in tables["layers"]["layers"] if (x["m"], x["rho"]) == (m, rho))


def test_a_recovered_layer_attends_as_planted(tables):
    for found in tables["layers"]["layers"]:
        for fit in found["fits"]:
            if fit["recovered"]:
                # recovered means a relative error of the matrices below 1e-3; weights move by at most rho times that
                np.testing.assert_allclose(fit["found"], found["planted"], atol=5e-3)


def test_no_fit_has_fewer_examples_than_counting_asks_for(tables):
    for found in tables["layers"]["layers"]:
        assert found["fits"][0]["n"] >= examples_needed(found["m"], precompute.LAYER["d"], precompute.LAYER["k"])
        assert found["fits"][-1]["recovered"]


def test_a_fit_is_reproduced(tables):
    stored = next(fit for fit in layer(tables, 2, 4.0)["fits"] if fit["n"] == 24)
    again = precompute.fit(2, 4.0, 24)
    assert again["recovered"] == stored["recovered"] is True
    np.testing.assert_allclose(again["found"], stored["found"], atol=1e-6)
