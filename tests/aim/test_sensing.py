import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.aim.indices import indices, whiten
from attnlab.aim.sensing import measure, measure_adjoint


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_adjoint_is_the_adjoint(tokens):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, tokens, 12))
    S = rng.standard_normal((12, 12))
    S, g = S + S.T, rng.standard_normal((30, tokens * (tokens + 1) // 2))
    with jax.enable_x64(True):
        z = np.asarray(measure(jnp.asarray(X), jnp.asarray(S)))
        back = np.asarray(measure_adjoint(jnp.asarray(X), jnp.asarray(g)))
    np.testing.assert_allclose(z, whiten(indices(X, S)), rtol=1e-10)
    assert (z * g).sum() == pytest.approx((S * back).sum(), rel=1e-12)
