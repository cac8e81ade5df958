r"""Single-location regression: one token of the sequence decides the output, and its place is latent.

=========  ====================================================================
symbol     meaning
=========  ====================================================================
L, d       number and dimension of the tokens
k*, v*     orthogonal unit vectors: the direction that marks the token, and the one that is read from it
nu         squared strength of the mark
gamma      standard deviation of the marked token (1 for all others)
J          the latent location
=========  ====================================================================
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attnlab.common.seeds import Seed, generator, spawn
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import finite_array, integer, nonnegative, one_of, positive, real

LAWS = ("spiked", "max")


class Sample(NamedTuple):
    """Sequences with what a learner does not see: the location of the informative token."""

    X: np.ndarray
    y: np.ndarray
    location: np.ndarray


@dataclass(frozen=True)
class Task:
    r"""Sequences of L Gaussian tokens, one of which carries the output.

    ``law="spiked"``: :math:`X_J \sim N(\sqrt\nu\,k^*, \gamma^2 I_d)`, every other token :math:`N(0, I_d)`, J uniform.

    ``law="max"``: all tokens :math:`N(0, I_d)`, :math:`\Pr(J = l \mid X) \propto \exp(\nu\, X_l \cdot k^*)`; for
    ``nu = inf`` the location is that of the largest :math:`X_l \cdot k^*`.

    In both :math:`y = X_J \cdot v^* + \xi`, :math:`\xi \sim N(0, \epsilon^2)`.

    The defaults are the law of arXiv:2410.01537: :math:`\nu = d/2, \gamma^2 = 1/2`, so that every token has the same
    mean square norm d. With ``gamma=1`` and a fixed ``nu`` they are the two laws of arXiv:2509.21936.

    Parameters
    ----------
    d, L : dimension and (largest) number of tokens.
    gamma : standard deviation of the informative token; 1 for the max law.
    noise_std : standard deviation :math:`\epsilon` of the output noise.
    seed : draws the planted directions.
    law : ``"spiked"`` or ``"max"``.
    nu : strength; None is d/2.
    lengths : equally likely lengths for sequences of random length, at most L; shorter ones are padded with tokens of
        zeros, which every learner here takes for absent.
    directions : (k*, v*), orthonormal; None draws them.

    >>> task = Task(d=20, L=5, seed=1)
    >>> X, y = task.sample(3, seed=0)
    >>> X.shape, y.shape
    ((3, 5, 20), (3,))
    """

    d: int
    L: int
    gamma: float = 2**-0.5
    noise_std: float = 0.0
    seed: int = 0
    law: str = "spiked"
    nu: float | None = None
    lengths: tuple[int, ...] | None = None
    directions: Any = None

    def __post_init__(self) -> None:
        integer("d", self.d, low=2)
        integer("L", self.L, low=2)
        positive("gamma", self.gamma)
        nonnegative("noise_std", self.noise_std)
        integer("seed", self.seed)
        one_of("law", self.law, LAWS)
        if self.nu is not None and not (self.law == "max" and self.nu == np.inf):
            real("nu", self.nu, low=0.0)
        if self.law == "max" and self.gamma != 1:
            raise ValueError(f"gamma must be 1 for the max law (all tokens are standard Gaussian), got {self.gamma!r}")
        if self.lengths is not None:
            lengths = tuple(integer("lengths", length, low=1, high=self.L) for length in self.lengths)
            if not lengths:
                raise ValueError("lengths must hold at least one length, got an empty sequence")
            object.__setattr__(self, "lengths", lengths)
        if self.directions is not None:
            # Tuples of numbers, so that tasks can be compared and hashed.
            k, v = _orthonormal(self.directions, self.d)
            object.__setattr__(self, "directions", (tuple(k.tolist()), tuple(v.tolist())))

    @property
    def tokens(self) -> int:
        """Number of tokens, the longest length."""
        return self.L

    @property
    def strength(self) -> float:
        """The value of nu in force."""
        return self.d / 2 if self.nu is None else float(self.nu)

    @functools.cached_property
    def _planted(self) -> tuple[np.ndarray, np.ndarray]:
        if self.directions is not None:
            return np.array(self.directions[0]), np.array(self.directions[1])
        rng = generator(self.seed)
        k = rng.standard_normal(self.d)
        k /= np.linalg.norm(k)
        v = rng.standard_normal(self.d)
        v -= (v @ k) * k
        return k, v / np.linalg.norm(v)

    @property
    def k_star(self) -> Float[np.ndarray, " d"]:
        """The planted direction that marks the informative token, of norm 1."""
        return self._planted[0]

    @property
    def v_star(self) -> Float[np.ndarray, " d"]:
        """The planted direction that is read from it, of norm 1."""
        return self._planted[1]

    def sample(self, n: int, seed: Seed = 0) -> tuple[Float[np.ndarray, "n L d"], Float[np.ndarray, " n"]]:
        """Draw ``n`` sequences and their outputs."""
        X, y, _ = self.sample_with_location(n, seed)
        return X, y

    def sample_with_location(self, n: int, seed: Seed = 0) -> Sample:
        """The same draw as :meth:`sample`, with the latent locations."""
        n = integer("n", n, low=1)
        tokens, places, noise = (generator(s) for s in spawn(seed, 3))
        X = tokens.standard_normal((n, self.L, self.d))
        length = np.full(n, self.L) if self.lengths is None else places.choice(self.lengths, n)
        present = np.arange(self.L) < length[:, None]
        location = self._locate(X, present, places)
        if self.law == "spiked":
            rows = np.arange(n)
            X[rows, location] = np.sqrt(self.strength) * self.k_star + self.gamma * X[rows, location]
        X *= present[:, :, None]
        y = X[np.arange(n), location] @ self.v_star + self.noise_std * noise.standard_normal(n)
        return Sample(X, y, location)

    def _locate(
        self, X: Float[np.ndarray, "n L d"], present: np.ndarray, rng: np.random.Generator
    ) -> Int[np.ndarray, " n"]:
        """Draw the location: uniform, or from softmax(nu X.k*) by the Gumbel trick, whose limit is the argmax."""
        if self.law == "max":
            marks = X @ self.k_star
            score = marks if np.isinf(self.strength) else self.strength * marks + rng.gumbel(size=marks.shape)
        else:
            score = rng.random(present.shape)
        return np.asarray(np.where(present, score, -np.inf).argmax(axis=1))

    def posterior(self, X: Any) -> Float[np.ndarray, "n L"]:
        r"""Probability of each location given the tokens alone.

        .. math:: p = \mathrm{softmax}_l\big(\sqrt\nu\, X_l\cdot k^*/\gamma^2 + (1 - \gamma^{-2})|X_l|^2/2\big)

        for the spiked law, :math:`\mathrm{softmax}_l(\nu X_l \cdot k^*)` for the max law.
        """
        X = check_tokens(X, d=self.d)
        marks = X @ self.k_star
        if self.law == "spiked":
            norms = np.einsum("nld,nld->nl", X, X)
            score = np.sqrt(self.strength) * marks / self.gamma**2 + (1 - self.gamma**-2) * norms / 2
        else:
            score = marks if np.isinf(self.strength) else self.strength * marks
        score = np.where(X.any(axis=2), score, -np.inf)
        score -= score.max(axis=1, keepdims=True)
        weight = np.exp(score) if np.isfinite(self.strength) else (score == 0).astype(float)
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _orthonormal(directions: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Check a pair (k*, v*); rounding is forgiven, a wrong pair is not."""
    if len(directions) != 2:
        raise ValueError(f"directions must be a pair (k*, v*), got {len(directions)} vectors")
    k, v = (finite_array(name, x, shape=(d,)) for name, x in zip(("k_star", "v_star"), directions, strict=True))
    for name, x in (("k_star", k), ("v_star", v)):
        if abs(np.linalg.norm(x) - 1) > 1e-6:
            raise ValueError(f"{name} must have norm 1, got {np.linalg.norm(x):.6g}")
    if abs(k @ v) > 1e-6:
        raise ValueError(f"k_star and v_star must be orthogonal, got k_star.v_star = {k @ v:.6g}")
    return k, v
