"""The model of an AMP iteration, and polynomials in place of a spectrum."""

import numpy as np
import pytest

from benchmarks import bounds


def test_the_time_of_rows_is_the_constant_that_explains_the_rest():
    entries = np.array([1.0, 8.0, 64.0])
    known = np.array([2.0, 3.0, 40.0])
    assert bounds.fitted_rows(known, entries, known + 0.5 * entries) == pytest.approx(0.5 * entries)
    # parts that take longer than the whole leave nothing for it
    assert bounds.fitted_rows(known, entries, known / 2) == pytest.approx(np.zeros(3))


@pytest.mark.parametrize(("degree", "count"), [(1, 1), (2, 2), (4, 3), (16, 7), (96, 18)])
def test_products_of_a_polynomial(degree, count):
    """Powers up to s take s - 1 products, and each further block of s terms one."""
    assert bounds.products_of(degree) == count


def test_a_sharper_shrinkage_needs_a_higher_degree():
    (low, high) = bounds.filters(sizes=(40,), noises=(1.0, 0.01))
    degree = [int(row.detail.split()[1].rstrip(",")) for row in (low, high)]
    assert degree[0] < degree[1]


def test_every_part_of_an_iteration_is_told():
    rows = bounds.amp_iteration(sizes=(10, 14, 20), repeats=1)
    assert [row.name for row in rows[::2]][1:] == [f"AMP iteration, d = {d}, spectrum for free" for d in (10, 14, 20)]
    assert all(row.value > 1 for row in rows[2::2])
