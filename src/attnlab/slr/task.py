r"""Single-location regression: one token of the sequence decides the output, and its place is latent.

=========  ====================================================================
symbol     meaning
=========  ====================================================================
L, d       number and dimension of the tokens
k*, v*     orthogonal unit vectors: the direction that marks a token, and the one that is read from it
nu         squared strength of the mark
gamma      standard deviation of a marked token (1 for all others)
J, K       the latent locations, and how many they are
=========  ====================================================================
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float

from attnlab.common.seeds import Seed, seed_sequence, stream
from attnlab.common.tokens import check_tokens
from attnlab.common.validation import finite_array, integer, nonnegative
from attnlab.slr.laws import Law, law_of
from attnlab.slr.laws.subsets import inclusion


class Sample(NamedTuple):
    """Sequences with what a learner does not see: the location of the informative token, or (n, K) of several."""

    X: np.ndarray
    y: np.ndarray
    location: np.ndarray


@dataclass(frozen=True)
class Task:
    r"""Sequences of L Gaussian tokens, K of which carry the output.

    ``law="spiked"`` (:class:`~attnlab.slr.Spiked`): :math:`X_j \sim N(\sqrt\nu\,k^*, \gamma^2 I_d)` for j in J, every
    other token :math:`N(0, I_d)`, J uniform.

    ``law="max"`` (:class:`~attnlab.slr.Max`): all tokens :math:`N(0, I_d)`,
    :math:`\Pr(J = l \mid X) \propto \exp(\nu\, X_l \cdot k^*)`; for ``nu = inf`` the location is that of the largest
    :math:`X_l \cdot k^*`. One location only.

    In both :math:`y = K^{-1/2}\sum_{j\in J} X_j \cdot v^* + \xi`, :math:`\xi \sim N(0, \epsilon^2)`.

    The defaults are the law of arXiv:2410.01537: :math:`\nu = d/2, \gamma^2 = 1/2`, so that every token has the same
    mean square norm d. With ``gamma=1`` and a fixed ``nu`` they are the two laws of arXiv:2509.21936.

    Parameters
    ----------
    d, L : dimension and (largest) number of tokens.
    gamma : standard deviation of an informative token; None is the law's own, :math:`2^{-1/2}` (spiked) or 1 (max).
    noise_std : standard deviation :math:`\epsilon` of the output noise.
    seed : draws the planted directions.
    law : ``"spiked"``, ``"max"``, or the law itself, such as ``Spiked(nu=2.0, gamma=1.0)``.
    nu : strength; None is d/2.
    lengths : equally likely lengths for sequences of random length, at most L; shorter ones are padded with tokens of
        zeros, which every learner here takes for absent.
    directions : (k*, v*), orthonormal; None draws them.
    locations : the number K of informative tokens.

    >>> task = Task(d=20, L=5, seed=1)
    >>> X, y = task.sample(3, seed=0)
    >>> X.shape, y.shape
    ((3, 5, 20), (3,))
    """

    d: int
    L: int
    gamma: float | None = None
    noise_std: float = 0.0
    seed: int = 0
    law: str | Law = "spiked"
    nu: float | None = None
    lengths: tuple[int, ...] | None = None
    directions: Any = None
    locations: int = 1

    def __post_init__(self) -> None:
        integer("d", self.d, low=2)
        integer("L", self.L, low=1)
        nonnegative("noise_std", self.noise_std)
        integer("seed", self.seed)
        law = law_of(self.law, self.nu, self.gamma)
        # nu and gamma repeat those of the law: a law by name and the same law as an object make equal tasks.
        for name, value in (("law", law), ("nu", law.nu), ("gamma", law.gamma)):
            object.__setattr__(self, name, value)
        if self.lengths is not None:
            lengths = tuple(integer("lengths", length, low=1, high=self.L) for length in self.lengths)
            if not lengths:
                raise ValueError("lengths must hold at least one length, got an empty sequence")
            object.__setattr__(self, "lengths", lengths)
        integer("locations", self.locations, low=1, high=min(self.sizes))
        if self.locations > 1 and law.name != "spiked":
            raise ValueError(f"locations must be 1 for the {law.name} law, got {self.locations}")
        if self.directions is not None:
            # Tuples of numbers, so that tasks can be compared and hashed.
            k, v = _orthonormal(self.directions, self.d)
            object.__setattr__(self, "directions", (tuple(k.tolist()), tuple(v.tolist())))

    @property
    def tokens(self) -> int:
        """Number of tokens, the longest length."""
        return self.L

    @property
    def sizes(self) -> tuple[int, ...]:
        """The lengths that occur, equally likely."""
        return (self.L,) if self.lengths is None else self.lengths

    @functools.cached_property
    def law_in_force(self) -> Law:
        """The law with its strength as a number."""
        return cast(Law, self.law).at(self.d)

    @property
    def strength(self) -> float:
        """The value of nu in force."""
        return float(self.law_in_force.nu)

    @functools.cached_property
    def _planted(self) -> tuple[np.ndarray, np.ndarray]:
        if self.directions is not None:
            return np.array(self.directions[0]), np.array(self.directions[1])
        rng = stream(self.seed, "plant", "slr")
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
        root = seed_sequence(seed)  # a Generator is asked once: all three streams come from the same number
        tokens, places, noise = (stream(root, "data", "slr", kind) for kind in ("tokens", "places", "noise"))
        X = tokens.standard_normal((n, self.L, self.d))
        length = np.full(n, self.L) if self.lengths is None else places.choice(self.lengths, n)
        present = np.arange(self.L) < length[:, None]
        # Before anything is added: the max law chooses by these marks, the spiked law marks what was chosen.
        location = self.law_in_force.choose(X @ self.k_star, present, self.locations, places)
        rows = np.arange(n)[:, None]
        X[rows, location] = self.law_in_force.mark(X[rows, location], self.k_star)
        # Zeros are how a learner tells that a token is absent.
        X *= present[:, :, None]
        # Over root K, so that the output has variance gamma^2 for any number of locations.
        output = (X[rows, location] @ self.v_star).sum(axis=1) / np.sqrt(self.locations)
        y = output + self.noise_std * noise.standard_normal(n)
        return Sample(X, y, location[:, 0] if self.locations == 1 else location)

    def posterior(self, X: Any) -> Float[np.ndarray, "n L"]:
        r"""Probability that each token is informative, given the tokens alone; a row sums to K.

        .. math:: \Pr(J \mid X) \propto \exp\sum_{j\in J} s_j, \qquad
                  s_l = \sqrt\nu\, X_l\cdot k^*/\gamma^2 + (1 - \gamma^{-2})|X_l|^2/2

        for the spiked law, :math:`s_l = \nu X_l \cdot k^*` for the max law.
        """
        X = check_tokens(X, d=self.d)
        present = X.any(axis=2)
        # padding has mark 0, which could be the largest of a sequence
        # Not -inf, which times nu = 0 is NaN.
        marks = np.where(present, X @ self.k_star, -1e30)
        score = self.law_in_force.evidence(marks, np.einsum("nld,nld->nl", X, X))
        return inclusion(np.where(present, score, -np.inf), self.locations)


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
