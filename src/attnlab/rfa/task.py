"""The law of the data: tokens on a sphere, and a target that averages a function of the query and one key."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from attnlab.common.seeds import Seed, branch, stream
from attnlab.common.validation import finite_array, integer, nonnegative, one_of
from attnlab.rfa.targets import Energies, Target, as_target

TargetFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
TokenLaw = Callable[[np.random.Generator, int, int, int], np.ndarray]

TOKEN_LAWS = ("sphere", "gaussian")
PARAMETERS = ("p", "q", "gamma", "sharpness", "harmonic")


@dataclass(frozen=True)
class Task:
    r"""A query, N keys and a noisy function of them as output (arXiv:2307.11353, sections 2 and 5).

    .. math:: y = f_*(x_0, x_{1:N}) + \text{noise}

    Parameters
    ----------
    target : a name below, a :class:`~attnlab.rfa.targets.base.Target`, or a function
        ``(query (n, d), keys (n, N, d)) -> (n,)``. A name is turned into its object:
        ``Task("key_power", p=3) == Task(KeyPower(p=3))``.

        ================  ===============================================================================
        key_power         (1/N) sum_i <b, x_i>^p
        corr_power        (1/N) sum_i <x_0, x_i>^q <b, x_i>
        correlation       (1/N) sum_i <x_0, x_i>^p
        query_power       <b, x_0>^p
        rotated           (1/N) sum_i <x_0, O x_i>^q <b, x_i>, O a planted rotation
        mixed_rotation    (1/N) sum_i <x_0, S x_i> <b, x_i>,  S = gamma I + sqrt(1 - gamma^2) O
        softmax           sum_i softmax_i(sharpness <x_0, x_i>) <b, x_i>
        harmonic          (1/N) sum_i Y_a(x_0) Y_b(x_i), zonal harmonics of unit norm
        ================  ===============================================================================
    p, q, gamma, sharpness, harmonic : parameters of a target given by name (p = 2, q = 1, gamma = 1, sharpness = 4,
        harmonic = (0, 2) by default).
    d, n_keys : dimension of a token, number of keys N.
    noise_std : standard deviation of Gaussian label noise.
    token_law : ``"sphere"`` (uniform on the unit sphere), ``"gaussian"`` (entries N(0, 1/d)) or a function
        ``(generator, n, tokens, d) -> (n, tokens, d)``.
    seed : of the planted b, u and O.

    >>> X, y = Task(target="key_power", p=2, d=8, n_keys=4).sample(5, seed=1)
    >>> X.shape, y.shape
    ((5, 5, 8), (5,))
    """

    query: ClassVar[int] = 0  # the token that is the query

    target: str | Target | TargetFunction = "key_power"
    p: int | None = field(default=None, repr=False)
    d: int = 16
    n_keys: int = 16
    noise_std: float = 0.0
    q: int | None = field(default=None, repr=False)
    gamma: float | None = field(default=None, repr=False)
    sharpness: float | None = field(default=None, repr=False)
    harmonic: tuple[int, int] | None = field(default=None, repr=False)
    token_law: str | TokenLaw = "sphere"
    seed: Seed = 0

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in PARAMETERS}
        object.__setattr__(self, "target", as_target(self.target, given))
        for name in PARAMETERS:
            # The target owns them from here on: kept here as well they would be given twice by dataclasses.replace.
            object.__setattr__(self, name, None)
        if not callable(self.token_law):
            one_of("token_law", self.token_law, TOKEN_LAWS)
        integer("d", self.d, low=2)
        integer("n_keys", self.n_keys, low=1)
        nonnegative("noise_std", self.noise_std)

    @property
    def function(self) -> Target:
        """The target, an object whatever it was given as."""
        assert isinstance(self.target, Target)
        return self.target

    @property
    def tokens(self) -> int:
        """Number of tokens of an example: the query and its keys."""
        return self.n_keys + 1

    @functools.cached_property
    def b(self) -> np.ndarray:
        """The planted unit vector."""
        return _unit(stream(self.seed, "plant", "rfa", "b"), self.d)

    @functools.cached_property
    def u(self) -> np.ndarray:
        """The planted unit vector of the query's harmonic."""
        return _unit(stream(self.seed, "plant", "rfa", "u"), self.d)

    @functools.cached_property
    def rotation(self) -> np.ndarray:
        """The planted rotation O, uniform on the orthogonal group."""
        Q, R = np.linalg.qr(stream(self.seed, "plant", "rfa", "rotation").standard_normal((self.d, self.d)))
        # QR is unique with a positive diagonal of R; Q is uniform only then.
        return np.asarray(Q * np.sign(np.diag(R)))

    def sample(self, n: int, seed: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
        """Draw n examples: X ``(n, N + 1, d)`` the query first, y ``(n,)``; fewer examples are the first of more."""
        n = integer("n", n, low=1)
        root = branch(seed, "data", "rfa")
        X = self._draw_tokens(stream(root, "tokens"), n)
        y = self.truth(X)
        if self.noise_std:
            # A stream of its own: the tokens are the same with and without noise.
            y = y + self.noise_std * stream(root, "noise").standard_normal(n)
        return X, y

    def truth(self, X: np.ndarray) -> np.ndarray:
        """The noiseless target f* at given tokens."""
        return self.function.value(self, X[:, 0], X[:, 1:])

    def _draw_tokens(self, rng: np.random.Generator, n: int) -> np.ndarray:
        shape = (n, self.tokens, self.d)
        if callable(self.token_law):
            return finite_array("token_law(...)", self.token_law(rng, *shape), shape=shape)
        X = rng.standard_normal(shape)
        if self.token_law == "sphere":
            return np.asarray(X / np.linalg.norm(X, axis=-1, keepdims=True))
        return np.asarray(X / np.sqrt(self.d))

    @functools.cached_property
    def energies(self) -> Energies:
        r""":math:`\|F_{ab}\|^2` by harmonic degrees (a, b), for tokens on the sphere.

        Status: exact.
        """
        if self.token_law != "sphere":
            raise ValueError(f"harmonic energies need token_law='sphere', got {self.token_law!r}")
        return {degrees: energy for degrees, energy in self.function.energies(self).items() if energy > 0}

    @functools.cached_property
    def variance(self) -> float:
        """Var(f*), by the law of total variance over the query and the keys.

        Status: exact for the named targets on the sphere, and on Gaussian tokens for all but harmonic and softmax;
        otherwise a Monte Carlo estimate from 131 072 fixed draws (relative error about 0.5 %).
        """
        exact = self.function.variance(self)
        if exact is not None:
            return exact
        # In 32 pieces, so that the tokens of all draws are never in memory together.
        rng = stream(0, "theory", "rfa", "variance")
        return float(np.var(np.concatenate([self.truth(self._draw_tokens(rng, 4096)) for _ in range(32)])))


def _unit(rng: np.random.Generator, d: int) -> np.ndarray:
    x = rng.standard_normal(d)
    return np.asarray(x / np.linalg.norm(x))
