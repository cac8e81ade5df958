"""Single-location regression: one token decides, a second direction marks it (arXiv:2509.21936)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, ndtr

from attnlab.common.validation import integer, one_of, positive
from attnlab.smi.link import Link
from attnlab.smi.links.named import shipped
from attnlab.smi.links.single import log_normal

LAWS = ("spiked", "max")


@shipped
def single_location(tokens: int = 3, nu: float = 4.0, noise: float = 0.1, law: str = "spiked") -> Link:
    r"""y = z_lv + sqrt(noise) e at a hidden location l; z = (k, v), ``noise`` is the variance Delta.

    ``spiked``: l is uniform and the token is marked, z_lk is shifted by sqrt(nu): a tilted link with
    Z = (1/T) sum_l exp(sqrt(nu) omega_lk + nu (V_kk - 1)/2) N(y; omega_lv + sqrt(nu) V_kv, V_vv + Delta).
    ``max``: l has probability softmax(nu z_k)_l.
    """
    integer("tokens", tokens, low=2)
    nu, delta = positive("nu", nu), positive("noise", noise)
    spiked = one_of("law", law, LAWS) == "spiked"
    slope = np.sqrt(nu) if spiked else nu

    def location(z: Any, e: Any) -> Any:
        share = jnp.full(tokens, 1 / tokens) if spiked else jax.nn.softmax(slope * z[:, 0])
        # Without the last sum, which rounding may leave below 1: the location stays among the tokens.
        return jnp.searchsorted(jnp.cumsum(share)[:-1], ndtr(e[0]))

    def log_partition(y: Any, omega: Any, V: Any) -> Any:
        mark = slope * omega[:, 0] + nu * (V[0, 0] - 1) / 2
        return logsumexp(mark + log_normal(y - omega[:, 1] - slope * V[0, 1], V[1, 1] + delta)) - np.log(tokens)

    def log_density(y: Any, z: Any) -> Any:
        share = jax.nn.log_softmax(slope * z[:, 0]) if not spiked else slope * z[:, 0] - nu / 2 - np.log(tokens)
        return logsumexp(share + log_normal(y - z[:, 1], delta))

    return Link(
        tokens,
        2,
        noise=2,
        sample=lambda z, e: z[location(z, e), 1] + np.sqrt(delta) * e[1],
        # The same e as in sample, and a share that does not depend on z: both find one location.
        indices=(lambda z, e: z.at[location(z, e), 0].add(slope)) if spiked else None,
        log_partition=log_partition if spiked else None,
        log_density=log_density,
        mean=lambda z: jax.nn.softmax(slope * z[:, 0]) @ z[:, 1],
    )
