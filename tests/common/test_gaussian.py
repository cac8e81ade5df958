import numpy as np
import pytest
from scipy import stats

from attnlab.common.gaussian import (
    bivariate_normal_cdf,
    bivariate_normal_pdf,
    gauss_hermite,
    gauss_legendre,
)


def test_hermite_nodes_integrate_polynomials_exactly():
    x, w = gauss_hermite(20)
    moments = [w @ x**k for k in range(0, 12, 2)]
    assert np.allclose(moments, [1, 1, 3, 15, 105, 945], rtol=1e-12)


def test_legendre_nodes_integrate_on_the_unit_interval():
    x, w = gauss_legendre(16)
    assert np.isclose(w @ np.exp(x), np.e - 1, rtol=1e-14)


@pytest.mark.parametrize("r", [-0.95, -0.3, 0.0, 1 / 3, 0.99])
def test_bivariate_cdf_against_scipy(r):
    grid = np.array([-3.0, -0.7, 0.0, 0.4, 2.5])
    law = stats.multivariate_normal(cov=[[1, r], [r, 1]])
    for x in grid:
        for y in grid:
            # scipy integrates numerically to about 1e-8
            assert bivariate_normal_cdf(x, y, r) == pytest.approx(law.cdf([x, y]), abs=1e-7)
            assert bivariate_normal_pdf(x, y, r) == pytest.approx(law.pdf([x, y]), rel=1e-12)


def test_bivariate_cdf_degenerate_correlations():
    x, y = np.array([-1.0, 0.5, 2.0]), np.array([0.3, 0.5, -1.0])
    assert np.allclose(bivariate_normal_cdf(x, y, 1.0), stats.norm.cdf(np.minimum(x, y)))
    assert np.allclose(bivariate_normal_cdf(x, y, -1.0), np.maximum(stats.norm.cdf(x) + stats.norm.cdf(y) - 1, 0))
