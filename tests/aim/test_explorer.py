"""The shipped hardmax tables are what the theory gives today, on a sample."""

import numpy as np
import pytest

from attnlab.aim import explorer
from attnlab.aim.channels.hardmax_strength import scale_function
from attnlab.aim.explorer.precompute import hardmax_table


@pytest.fixture(scope="module")
def tables():
    return explorer.tables()


def test_hardmax_with_two_tokens(tables):
    np.testing.assert_allclose(tables["hardmax"]["2"], hardmax_table(2), rtol=1e-9)


def test_hardmax_with_three_tokens(tables):
    # read from the table that the channel ships
    np.testing.assert_allclose(tables["hardmax"]["3"], hardmax_table(3), rtol=1e-6)


def test_the_nodes_are_those_of_the_theory(tables):
    """Between nodes a wrong grid would miss: the polynomial through the table must be scale_function itself."""
    root = (1 - np.cos((np.arange(48) + 0.5) * np.pi / 48)) / 2
    middle = (root[1:] + root[:-1]) / 2
    polynomial = np.polynomial.Chebyshev.fit(root, tables["hardmax"]["2"], 47, domain=[0, 1])
    np.testing.assert_allclose(middle * polynomial(middle), scale_function(2)(middle**2), rtol=1e-7)
