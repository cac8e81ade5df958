r"""Loss and gradient of attention factors, many starting points at once: two matrix products for each factor.

==========  =====================================================================================
symbol      meaning
==========  =====================================================================================
factors     (1, d, starts, r): W, S = W W^T / sqrt(r d); or (2, d, starts, r): Q and K, S = Q K^T / sqrt(r d)
P, R        X Q / sqrt(d) of the queries and X K / sqrt(d) of the keys (equal if tied)
h           (P_a . R_b - delta_ab Tr(Q^T K)/d) / sqrt(r)
H           dL/dh
==========  =====================================================================================

    dL/dP_a = sum_b H_ab R_b / sqrt(r),   dL/dQ = X^T dL/dP / sqrt(d) - K sum Tr H / (sqrt(r) d),   and so for R and K
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from attnlab.aim.channels.channel import Channel
from attnlab.aim.indices import Layout
from attnlab.aim.messages.products import PRECISIONS


@dataclass(frozen=True)
class Objective:
    """What is minimised: the sum over sequences of a loss, over d, plus the weight decay of the factors.

    ================  ====================================================================
    squared_output    |y - y_hat|_F^2
    cross_entropy     sum_ab y_ab log(y_ab / y_hat_ab), softmax
    logits            |Pi (z - z^0)|^2 / 2 on the measured whitened indices
    ================  ====================================================================

    decay : weight_decay lambda times Tr S (tied) or the nuclear norm bound (|Q|^2 + |K|^2)/(2 sqrt(r d)) (untied).
    """

    channel: Channel
    layout: Layout
    loss: str = "squared_output"
    decay: float = 0.0

    def loss_and_pull(self, h: Any, target: Any) -> tuple[Any, Any]:
        """The loss of every sequence (n, starts), and its derivative in h."""
        return self.channel.loss_and_slope(self.loss, h, target[:, None], self.layout)


def project(factor: jax.Array, X: jax.Array, precision: str) -> jax.Array:
    """Projected tokens of all starting points side by side, (n, T, starts, r)."""
    n, tokens, d = X.shape
    flat = jnp.matmul(X.reshape(n * tokens, d), factor.reshape(d, -1), precision=PRECISIONS[precision])
    projected: jax.Array = (flat / np.sqrt(d)).reshape(n, tokens, *factor.shape[1:])
    return projected


def split(X: jax.Array, layout: Layout) -> tuple[jax.Array, jax.Array]:
    """Queries and keys."""
    return (X[:, : layout.queries], X[:, layout.queries :]) if layout.cross else (X, X)


def indices_of(P: jax.Array, R: jax.Array, factors: jax.Array, layout: Layout) -> jax.Array:
    """h of all starting points, (n, starts, queries, keys)."""
    _, d, _, r = factors.shape
    dots = [(P[:, a] * R[:, b]).sum(axis=-1) for a, b in zip(*layout.entries, strict=True)]
    # A tied h is computed for a <= b and copied to both places.
    gram = jnp.stack(dots, axis=-1)[..., layout.component]
    if not layout.cross:
        # factors[-1] is W again where there is one factor.
        trace = (factors[0] * factors[-1]).sum(axis=(0, 2))[:, None, None] / d
        gram = gram - trace * jnp.eye(layout.queries)
    h: jax.Array = gram / np.sqrt(r)
    return h


def losses_and_slope(
    factors: jax.Array, X: jax.Array, target: jax.Array, weight: jax.Array, objective: Objective, precision: str
) -> tuple[jax.Array, jax.Array]:
    """Data loss of every starting point, and the gradient of their objectives in the factors."""
    layout, (_, d, _, r) = objective.layout, factors.shape
    queries, keys = split(X, layout)
    P = project(factors[0], queries, precision)
    R = P if layout.tied else project(factors[1], keys, precision)
    losses, pull = objective.loss_and_pull(indices_of(P, R, factors, layout), target)
    # 1/d of the objective and 1/sqrt(r) of h at once; the weight 0 takes padding out of the gradient.
    H = pull * weight[:, None, None, None] / (d * np.sqrt(r))
    if layout.tied:
        # W enters h_ab through both tokens.
        slopes = [_pulled(H + H.swapaxes(-1, -2), P, queries, precision)]
    else:
        slopes = [_pulled(H, R, queries, precision), _pulled(H.swapaxes(-1, -2), P, keys, precision)]
    slope = jnp.stack(slopes)
    if not layout.cross:
        trace = jnp.trace(H.sum(axis=0), axis1=-2, axis2=-1)[:, None] / d
        # Tr(Q^T K) has the slope K in Q and Q in K, hence the reversed order; |W|^2 has 2 W.
        slope = slope - (2 if layout.tied else 1) * trace * factors[::-1]
    losses = (losses * weight[:, None]).sum(axis=0) / d
    return losses, slope + decay_slope(factors, objective)


def decay_slope(factors: jax.Array, objective: Objective) -> jax.Array:
    """Gradient of the weight decay: 2 lambda W / sqrt(r d), or lambda Q / sqrt(r d)."""
    _, d, _, r = factors.shape
    scale = (2 if objective.layout.tied else 1) * objective.decay / float(np.sqrt(r * d))
    return scale * factors


@functools.partial(jax.jit, static_argnames=("objective", "precision"))
def stationarity(
    factors: jax.Array, X: jax.Array, target: jax.Array, weight: jax.Array, objective: Objective, precision: str
) -> jax.Array:
    """Norm of the gradient over that of its decay part, for every starting point."""
    _, slope = losses_and_slope(factors, X, target, weight, objective, precision)
    norm = [jnp.sqrt((v**2).sum(axis=(0, 1, 3))) for v in (slope, decay_slope(factors, objective))]
    return norm[0] / jnp.maximum(norm[1], 1e-30)


def _pulled(H: jax.Array, other: jax.Array, X: jax.Array, precision: str) -> jax.Array:
    """X^T (sum_b H_ab other_b) / sqrt(d), (d, starts, r)."""
    n, tokens, d = X.shape
    rows = [sum(H[:, :, a, b, None] * other[:, b] for b in range(H.shape[-1])) for a in range(tokens)]
    flat = jnp.stack(rows, axis=1).reshape(n * tokens, -1)
    product = jnp.matmul(X.reshape(n * tokens, d).T, flat, precision=PRECISIONS[precision])
    slope: jax.Array = product.reshape(d, *other.shape[2:]) / np.sqrt(d)
    return slope


@functools.partial(
    jax.jit, static_argnames=("n_steps", "objective", "precision", "anneal"), donate_argnames=("factors",)
)
def train(
    factors: jax.Array,
    X: jax.Array,
    target: jax.Array,
    weight: jax.Array,
    step: jax.Array,
    *,
    n_steps: int,
    objective: Objective,
    precision: str,
    anneal: bool,
) -> tuple[jax.Array, jax.Array]:
    """Adam on every starting point; the step falls to zero with ``anneal``, which a penalised minimum needs."""
    optimiser = optax.adam(optax.cosine_decay_schedule(step, n_steps) if anneal else step)

    def one(carry: Any, _: None) -> tuple[Any, jax.Array]:
        factors, state = carry
        losses, slope = losses_and_slope(factors, X, target, weight, objective, precision)
        update, state = optimiser.update(slope, state)
        return (optax.apply_updates(factors, update), state), losses

    (factors, _), curve = jax.lax.scan(one, (factors, optimiser.init(factors)), None, length=n_steps)
    return factors, curve
