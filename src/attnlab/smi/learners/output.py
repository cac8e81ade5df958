r"""The output function of message passing: g = V^-1 (E[z | y, omega] - omega), for all sequences of a data set.

Each sequence has an integration rule of its own. Few posteriors are narrow; one rule for all would spend the fine grid
of these on every sequence.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnlab.smi.link import Link
from attnlab.smi.posterior.moments import WHITENED_SIDES, first_rule, posterior
from attnlab.smi.theory.gains import batch

# Nodes a side of a whitened plane: large steps, since each size is compiled.
SIDES = (15, 31, 61, 121, 241)
COMFORT = 1.5  # of the least effective sample size to the power 1/D, at which a sequence takes another grid


class Output(NamedTuple):
    """Output function g (n, T, r), its summed slope C (r, r) and the effective sample size of each posterior (n,)."""

    g: np.ndarray
    C: np.ndarray
    ess: np.ndarray


class Outputs:
    """The output function on one data set; ``resolved`` is that of the last call."""

    def __init__(self, link: Link, y: np.ndarray) -> None:
        self.link, self.y, self.resolved = link, y, True
        self.rule = first_rule(link)
        self.sizes = np.array(SIDES if self.rule.sizes is WHITENED_SIDES[2] else self.rule.sizes)
        self.places = np.full(len(y), np.searchsorted(self.sizes, self.rule.size))

    def __call__(self, omega: np.ndarray, L: np.ndarray) -> Output:
        """At the estimate omega (n, T, r) of the indices, with V = L^2."""
        n, T, r = omega.shape
        mean, gained, ess = np.empty((n, T, r)), np.empty((n, r, r)), np.empty(n)
        todo = np.ones(n, dtype=bool)
        while todo.any():
            for place in np.unique(self.places[todo]):
                at = np.flatnonzero(todo & (self.places == place))
                found = _moments(self.link, int(self.sizes[place]), self.y, omega, L, at)
                mean[at], gained[at], ess[at] = found
            self.resolved = self.rule.resolves(ess)
            # Refined until the 1 % quantile is large enough: a few narrower posteriors may stay as they are.
            narrow = (ess**self.rule.power < self.rule.least) & (self.places < len(self.sizes) - 1)
            todo = narrow & (not self.resolved)
            self.places[todo] = np.maximum(self._fitting(ess), self.places + 1)[todo]
        # For the next call, whose posteriors are about as wide.
        self.places = np.minimum(self.places, self._fitting(ess))
        inverse = np.linalg.inv(L)
        # g = L^-1 E[s], and V^-1 - V^-1 Cov(z) V^-1 = L^-1 (I - Cov(s)) L^-1 without a difference of large matrices.
        return Output(mean @ inverse, inverse @ gained.sum(axis=0) @ inverse, ess)

    def _fitting(self, ess: np.ndarray) -> np.ndarray:
        """Places of the coarsest comfortable rules: the sample size to the power 1/D is proportional to the nodes."""
        least = COMFORT * self.rule.least * self.sizes[self.places] / np.maximum(ess**self.rule.power, 1e-9)
        return np.minimum(np.searchsorted(self.sizes, least), len(self.sizes) - 1)


def _moments(
    link: Link, size: int, y: np.ndarray, omega: np.ndarray, L: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Of the chosen sequences, in blocks of one length, the last one filled up: data of every n share a compilation."""
    step = batch(link, size)
    if link.route != "closed":  # the filling costs nothing there
        step = min(step, 1 << (len(y) - 1).bit_length())
    blocks = np.pad(chosen, (0, -len(chosen) % step), mode="edge").reshape(-1, step)
    parts = zip(*(map(np.asarray, _block(link, size, y[at], omega[at], L, at)) for at in blocks), strict=True)
    return tuple(np.concatenate(part)[: len(chosen)] for part in parts)


@functools.partial(jax.jit, static_argnames=("link", "size"))
def _block(link: Link, size: int, y: jax.Array, omega: jax.Array, L: jax.Array, label: jax.Array) -> tuple:
    """E[s], I - Cov(s) summed over tokens, and the effective sample size, of some sequences."""
    moments, T, r = posterior(link, size, "within"), link.tokens, link.rank

    def one(output: jax.Array, estimate: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        found = moments(output, estimate, L, label)
        mean = 0.5 * (found.mean + found.mean_again)
        return mean, T * jnp.eye(r) - 0.5 * (found.second + found.second_again) + mean.T @ mean, found.ess

    return jax.vmap(one)(y, omega, label)
