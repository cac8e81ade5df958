import numpy as np
import pytest
from scipy import stats

from attnlab.common.gaussian import bivariate_normal_cdf


@pytest.mark.parametrize("r", [-1.0, -0.5, 0.0, 0.7, 1.0])
def test_infinite_limits_leave_the_other_marginal(r):
    x = np.array([-2.0, 0.0, 0.3])
    assert np.allclose(bivariate_normal_cdf(x, np.inf, r), stats.norm.cdf(x), atol=1e-15)
    assert np.allclose(bivariate_normal_cdf(np.inf, x, r), stats.norm.cdf(x), atol=1e-15)
    assert np.allclose(bivariate_normal_cdf(x, -np.inf, r), 0.0, atol=1e-15)
    assert bivariate_normal_cdf(np.inf, np.inf, r) == 1.0
