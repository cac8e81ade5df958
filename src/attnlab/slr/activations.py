r"""How attention turns scores into weights: softmax, linear, erf and softplus, in JAX.

Each function maps scores chi (..., L) and the mask of present tokens to weights sigma (..., L); absent tokens get 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax

KINDS = ("softmax", "linear", "erf", "softplus")


def weights(kind: str, chi: jax.Array, present: Any = True) -> jax.Array:
    r"""Softmax :math:`e^{\chi_l}/\sum_j e^{\chi_j}`; linear :math:`1 + \chi_l`; erf :math:`1 + \mathrm{erf}(\chi_l)`;
    softplus :math:`\ln(1 + e^{\chi_l}) / \sum_j \ln(1 + e^{\chi_j})`.
    """
    sigma: jax.Array = _BY_NAME[kind](chi, present)
    return sigma


def _softmax(chi: Any, present: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.nn.softmax(jnp.where(present, chi, -jnp.inf), axis=-1)


def _linear(chi: Any, present: Any) -> Any:
    return (1 + chi) * present


def _erf(chi: Any, present: Any) -> Any:
    from jax.scipy.special import erf

    return (1 + erf(chi)) * present


def _softplus(chi: Any, present: Any) -> Any:
    import jax

    g = jax.nn.softplus(chi) * present
    return g / g.sum(axis=-1, keepdims=True)


_BY_NAME: Mapping[str, Callable[[Any, Any], Any]] = {
    "softmax": _softmax,
    "linear": _linear,
    "erf": _erf,
    "softplus": _softplus,
}
