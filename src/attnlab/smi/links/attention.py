"""Softmax attention of low rank: tied, untied, causal, and in several layers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.common.validation import integer, nonnegative
from attnlab.smi.link import Link
from attnlab.smi.links.named import shipped

SMALL = 1e-12  # keeps a quotient finite on a set of measure zero
LOW, HIGH = -20.0, 3.0  # range of the logarithm of an index


def softmax_rows(u: Any, v: Any) -> Any:
    """Softmax of the rows of u v^T."""
    return jax.nn.softmax(jnp.outer(u, v), axis=-1)


def log_ratios(y: Any) -> Any:
    """l_ab = log(y_aa / y_ab) of softmax rows, given as probabilities or as their logarithms."""
    logs = jnp.where(jnp.all(y <= 0), y, jnp.log(y))
    return jnp.diagonal(logs)[:, None] - logs


def read_rows(y: Any) -> Any:
    r"""u up to a sign from y = softmax(u u^T).

    .. math:: l_{ab} = u_a(u_a - u_b),\quad (u_a - u_b)^2 = l_{ab} + l_{ba},\quad u_a = l_{ab}/(u_a - u_b)

    for the pair of tokens with the largest difference; the others from :math:`u_c = u_a - l_{ac}/u_a`.
    """
    ratio = log_ratios(y)
    square = ratio + ratio.T
    a, b = jnp.unravel_index(jnp.argmax(square), square.shape)
    gap = jnp.sqrt(jnp.maximum(square[a, b], SMALL**2))
    first, second = ratio[a, b] / gap, -ratio[b, a] / gap
    # The others divide by the larger of the two and keep more digits.
    pivot = jnp.where(jnp.abs(first) > jnp.abs(second), a, b)
    largest = jnp.where(jnp.abs(first) > jnp.abs(second), first, second)
    u = largest - ratio[pivot] / jnp.where(jnp.abs(largest) > SMALL, largest, SMALL)
    return u.at[a].set(first).at[b].set(second)


def check_rows(y: np.ndarray) -> np.ndarray:
    """Outputs whose rows are probabilities, or their logarithms."""
    logs = bool((y <= 0).all())
    rows = np.exp(y).sum(axis=-1) if logs else y.sum(axis=-1)
    if not logs and (y == 0).any():
        raise ValueError("y must be positive: softmax rows underflow to 0; give log y, which attnlab reads as well")
    if ((y < 0).any() and not logs) or not np.allclose(rows, 1, atol=1e-4):
        raise ValueError("y must be softmax rows that sum to one, or their logarithms")
    return y


def probabilities(y: np.ndarray) -> np.ndarray:
    """Softmax rows, from rows or from their logarithms."""
    return np.exp(y) if (y <= 0).all() else y


@shipped
def attention(tokens: int = 2) -> Link:
    r"""y = softmax(z z^T), one direction. z is known up to one sign, so that E[z\|y] = u tanh(u . omega / V)."""
    integer("tokens", tokens, low=2)

    def log_partition(y: Any, omega: Any, V: Any) -> Any:
        u, w, v = read_rows(y), omega[:, 0], V[0, 0]
        plus, minus = -0.5 * ((u - w) ** 2).sum() / v, -0.5 * ((u + w) ** 2).sum() / v
        return jnp.logaddexp(plus, minus) - 0.5 * tokens * jnp.log(2 * jnp.pi * v)

    return Link(
        tokens,
        1,
        sample=lambda z, e: softmax_rows(z[:, 0], z[:, 0]),
        log_partition=log_partition,
        symmetry="sign",
        read_outputs=check_rows,
    )


@shipped
def untied_attention() -> Link:
    r"""y = softmax(q k^T) of two tokens, z = (q, k).

    The output shows c_a = q_a (k_1 - k_2). Level set over t = log \|k_1 - k_2\| and the mean of k_1, k_2:
    q = c / (k_1 - k_2), weight \|k_1 - k_2\|^-2 dk_1 dk_2.
    """

    def solve(y: Any, s: Any) -> tuple[Any, Any]:
        logs = jnp.where(jnp.all(y <= 0), y, jnp.log(y))
        gap, half = jnp.exp(s[0]), jnp.array([0.5, -0.5])
        c = logs[:, 0] - logs[:, 1]
        branches = [jnp.stack([c / g, s[1] + half * g], axis=1) for g in (gap, -gap)]
        # |gap|^-2 of the level set times d gap = gap dt.
        return jnp.stack(branches), jnp.full(2, -s[0])

    return Link(
        2,
        2,
        sample=lambda z, e: softmax_rows(z[:, 0], z[:, 1]),
        solve=solve,
        free=((LOW, HIGH), (-8.0, 8.0)),
        symmetry="joint_sign",
        read_outputs=check_rows,
    )


@shipped
def causal_attention() -> Link:
    """The second row of softmax(z z^T) of two tokens: c = z_2 (z_2 - z_1), over z_2 = +-exp(t)."""

    def solve(y: Any, s: Any) -> tuple[Any, Any]:
        logs = jnp.where(jnp.all(y <= 0), y, jnp.log(y))
        second = jnp.exp(s[0])
        z = jnp.stack([second - (logs[1] - logs[0]) / second, second])[:, None]
        # 1/|z_2| of the level set and dz_2 = |z_2| dt cancel.
        return jnp.stack([z, -z]), jnp.zeros(2)

    return Link(
        2,
        1,
        sample=lambda z, e: jax.nn.softmax(z[1, 0] * z[:, 0]),
        solve=solve,
        free=((LOW, HIGH),),
        symmetry="sign",
        read_outputs=check_rows,
    )


@shipped
def deep_attention(layers: int = 2, skip: float = 1.0) -> Link:
    r"""Attention layers in series on two tokens (arXiv:2502.00901), A(x) = softmax(x x^T) + skip I.

    Two layers: u = A(z_1) z_2. Three: u = A(A(z_1) z_2) A(z_1) z_3. The output is y = softmax(u u^T), which shows u up
    to its sign; all layers but the last are the free coordinates.
    """
    integer("layers", layers, low=2, high=3)
    skip = nonnegative("skip", skip)

    def mix(x: Any) -> tuple[Any, Any, Any, Any]:
        """The four entries of A(x); written out, since small batched matrices are slow."""
        # A row of a softmax over two tokens is a logistic function of one difference.
        gap = x[0] - x[1]
        p, q = jax.nn.sigmoid(x[0] * gap), jax.nn.sigmoid(-x[1] * gap)
        return p + skip, 1 - p, 1 - q, q + skip

    def before_last(first: list[Any]) -> tuple[Any, Any, Any, Any]:
        a, b, c, d = mix(first[0])
        if layers == 2:
            return a, b, c, d
        x, y = first[1]
        e, f, g, h = mix((a * x + b * y, c * x + d * y))
        # A(A(z_1) z_2) A(z_1), entry by entry.
        return e * a + f * c, e * b + f * d, g * a + h * c, g * b + h * d

    def sample(z: Any, e: Any) -> Any:
        a, b, c, d = before_last([z[:, i] for i in range(layers - 1)])
        x, y = z[:, -1]
        u = jnp.stack([a * x + b * y, c * x + d * y])
        return softmax_rows(u, u)

    def solve(y: Any, s: Any) -> tuple[Any, Any]:
        u = read_rows(y)
        first = [s[2 * i : 2 * i + 2] for i in range(layers - 1)]
        a, b, c, d = before_last(first)
        determinant = a * d - b * c
        # A(x) is singular on a set of measure zero when skip = 0.
        determinant = jnp.where(jnp.abs(determinant) > SMALL, determinant, SMALL)
        last = (d * u[0] - b * u[1]) / determinant, (a * u[1] - c * u[0]) / determinant
        # The output shows u up to its sign.
        branches = [jnp.stack([jnp.stack([*s[t::2], side * last[t]]) for t in (0, 1)]) for side in (1, -1)]
        return jnp.stack(branches), jnp.full(2, -jnp.log(jnp.abs(determinant)))

    return Link(
        2,
        layers,
        sample=sample,
        solve=solve,
        free=tuple((t, i) for i in range(layers - 1) for t in range(2)),
        symmetry="sign",
        read_outputs=check_rows,
    )
