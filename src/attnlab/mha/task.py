"""The law of the examples: random tokens through a planted multi-head attention layer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from attnlab.common.advice import advise
from attnlab.common.seeds import Seed, seed_sequence, stream
from attnlab.common.validation import integer, nonnegative, one_of
from attnlab.mha.alignment import Equivalences, equivalences
from attnlab.mha.families import Family, family_of
from attnlab.mha.layer import attention, check_layer

TOKEN_LAWS = ("boolean", "gaussian")


@dataclass(frozen=True, eq=False)
class Task:
    r"""Examples :math:`(X, F(X) + \sigma\,\text{noise})` of a planted layer (arXiv:2402.04084).

    .. math:: F(X) = \sum_{i=1}^m \mathrm{softmax}(X \Theta_i X^\top)\, X W_i

    Parameters
    ----------
    d : width of a token.
    k : tokens in an example.
    n_heads : number m of heads.
    tokens_law : ``boolean`` (uniform signs) or ``gaussian`` (standard normal entries).
    family : which planted layer, a :class:`~attnlab.mha.families.Family` or its name.
    rho : head strength, the Frobenius norm of every Theta_i = standard deviation of a logit between two tokens, 4 by
        default. It belongs to the family: ``family="weak", rho=2`` is ``family=Weak(rho=2)``.
    d_out : width of the output, d when None.
    noise_std : standard deviation sigma of Gaussian label noise.
    seed : draws the planted layer, from a stream of its own: no example and no learner shares its numbers.
    planted : ``(Theta, W)`` given by the user instead; ``n_heads``, ``d`` and ``d_out`` must agree with it. A layer
        with an equivalence that keeps it from being recovered gives a warning.

    >>> task = Task(d=4, k=3, n_heads=2)
    >>> X, y = task.sample(5)
    >>> X.shape, y.shape, task.Theta.shape
    ((5, 3, 4), (5, 3, 4), (2, 4, 4))
    """

    d: int
    k: int
    n_heads: int
    tokens_law: str = "boolean"
    family: Any = "generic"  # a name or a Family; the object once the task is made
    rho: Any = None  # a number; the family's, unless given
    d_out: int | None = None
    noise_std: float = 0.0
    seed: int = 0
    planted: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        integer("d", self.d, low=1)
        integer("k", self.k, low=1)
        integer("n_heads", self.n_heads, low=1)
        one_of("tokens_law", self.tokens_law, TOKEN_LAWS)
        family = family_of(self.family, self.rho)
        # The one place where a name becomes the object; rho is kept beside it for readers of the task.
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "rho", family.rho)
        if self.d_out is not None:
            integer("d_out", self.d_out, low=1)
        nonnegative("noise_std", self.noise_std)
        integer("seed", self.seed, low=0)
        if self.planted is not None:
            self._check_planted()

    def _check_planted(self) -> None:
        assert self.planted is not None
        theta, w = check_layer(*self.planted, self.d)
        if len(theta) != self.n_heads or w.shape[-1] != self.outputs:
            raise ValueError(
                f"planted must hold Theta ({self.n_heads}, {self.d}, {self.d}) and W ({self.n_heads}, {self.d}, "
                f"{self.outputs}) as n_heads, d and d_out say, got {theta.shape} and {w.shape}"
            )
        if not self.equivalences.unique:
            advise(f"the planted layer cannot be recovered head by head: {self.equivalences}", stacklevel=4)

    @property
    def tokens(self) -> int:
        """Tokens in an example, as every task calls it."""
        return self.k

    @property
    def outputs(self) -> int:
        """Width of the output."""
        return self.d if self.d_out is None else self.d_out

    @cached_property
    def layer(self) -> tuple[np.ndarray, np.ndarray]:
        """The planted ``(Theta, W)``."""
        if self.planted is not None:
            return check_layer(*self.planted, self.d)
        family: Family = self.family
        return family.draw(self.d, self.n_heads, self.outputs, stream(self.seed, "plant", "mha"))

    @property
    def Theta(self) -> Float[np.ndarray, "m d d"]:
        """Planted attention matrices."""
        return self.layer[0]

    @property
    def W(self) -> Float[np.ndarray, "m d o"]:
        """Planted projections."""
        return self.layer[1]

    @cached_property
    def equivalences(self) -> Equivalences:
        """What examples of this law cannot tell apart: merged, free and sign-flipped heads."""
        return equivalences(self.Theta, self.W, tokens=self.k)

    def tokens_of(self, n: int, seed: Seed = 0, purpose: str = "data") -> Float[np.ndarray, "n k d"]:
        """Draw ``n`` token sequences, of the stream ``data`` or ``test``."""
        rng = stream(seed, purpose, "mha")
        if self.tokens_law == "gaussian":
            return rng.standard_normal((n, self.k, self.d))
        return 2.0 * rng.integers(0, 2, (n, self.k, self.d)) - 1.0

    def sample(self, n: int, seed: Seed = 0) -> tuple[Float[np.ndarray, "n k d"], Float[np.ndarray, "n k o"]]:
        """Draw ``n`` labelled examples; the same seed gives the same numbers, at every noise level the same tokens."""
        # One root: a Generator as seed would be advanced by each of the two streams.
        n, root = integer("n", n, low=1), seed_sequence(seed)
        X = self.tokens_of(n, root)
        y = attention(X, *self.layer)
        if self.noise_std > 0:
            y = y + self.noise_std * stream(root, "data", "mha", "noise").standard_normal(y.shape)
        return X, y

    def nmse(self, Theta: np.ndarray, W: np.ndarray, *, n: int = 2000, seed: Seed = 0) -> float:
        """Relative squared error of a layer on noise-free examples of the stream ``test``."""
        X = self.tokens_of(n, seed, "test")
        truth = attention(X, *self.layer)
        return float(np.sum((attention(X, Theta, W) - truth) ** 2) / np.sum(truth**2))
