"""erf(z)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from attnlab.rfa.activations.base import Activation
from attnlab.rfa.activations.plackett import plackett


@dataclass(frozen=True)
class Erf(Activation):
    """erf(z), averaged over the keys."""

    name: ClassVar[str] = "erf"
    quadrature: ClassVar[bool] = True

    def weights(self, xp: Any, S: Any) -> Any:
        """erf(S)."""
        if xp is np:
            return special.erf(S)
        import jax

        return jax.scipy.special.erf(S)

    def pairs(self, m: Any, s: Any, m2: Any, s2: Any, rho: Any, nodes: int) -> Any:
        """erf(z) = E sign(z + g/sqrt 2), so this is a bivariate orthant probability."""
        import jax.numpy as jnp
        from jax.scipy.special import erf

        # z + g / sqrt 2 has variance s^2 + 1/2; h and k are the means in units of the deviation.
        root, root2 = jnp.sqrt(1 + 2 * s * s), jnp.sqrt(1 + 2 * s2 * s2)
        h, k = np.sqrt(2.0) * m / root, np.sqrt(2.0) * m2 / root2
        # The product is the value at rho = 0. E sign sign' is 4 Phi_2 and terms of one score each, and d Phi_2 / d rho
        # is the bivariate density: Plackett's integral.
        product = erf(h / np.sqrt(2.0)) * erf(k / np.sqrt(2.0))
        return product + 4 * plackett(h, k, 2 * rho * s * s2 / (root * root2), nodes, 0)
