"""The law of the data: tokens on a sphere, and a target that averages a function of the query and one key."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import integrate, special

from attnlab.common.seeds import Seed, generator, spawn
from attnlab.common.validation import finite_array, integer, nonnegative, one_of, real
from attnlab.rfa.sphere import inner_product_law
from attnlab.rfa.targets import TARGETS, Energies, Target

TargetFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
TokenLaw = Callable[[np.random.Generator, int, int, int], np.ndarray]

MONTE_CARLO = 2**17
HOMOGENEOUS_LAWS = ("sphere", "gaussian")


@dataclass(frozen=True)
class Task:
    r"""A query, N keys and a target :math:`y = f_*(x_0, x_{1:N}) + \text{noise}` (arXiv:2307.11353, sections 2 and 5).

    Parameters
    ----------
    target : a name below, or a function ``(query (n, d), keys (n, N, d)) -> (n,)``.

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
    p, q : powers.
    d, n_keys : dimension of a token, number of keys N.
    noise_std : standard deviation of Gaussian label noise.
    token_law : ``"sphere"`` (uniform on the unit sphere), ``"gaussian"`` (entries N(0, 1/d)) or a function
        ``(generator, n, tokens, d) -> (n, tokens, d)``.
    gamma, sharpness, harmonic : the knobs of ``mixed_rotation``, ``softmax`` and ``harmonic``.
    seed : of the planted b, u and O.

    >>> X, y = Task(target="key_power", p=2, d=8, n_keys=4).sample(5, seed=1)
    >>> X.shape, y.shape
    ((5, 5, 8), (5,))
    """

    target: str | TargetFunction = "key_power"
    p: int = 2
    d: int = 16
    n_keys: int = 16
    noise_std: float = 0.0
    q: int = 1
    gamma: float = 1.0
    sharpness: float = 4.0
    harmonic: tuple[int, int] = (0, 2)
    token_law: str | TokenLaw = "sphere"
    seed: int = 0

    def __post_init__(self) -> None:
        if not callable(self.target):
            one_of("target", self.target, TARGETS)
        if not callable(self.token_law):
            one_of("token_law", self.token_law, HOMOGENEOUS_LAWS)
        integer("d", self.d, low=2)
        integer("n_keys", self.n_keys, low=1)
        integer("p", self.p, low=0)
        integer("q", self.q, low=0)
        nonnegative("noise_std", self.noise_std)
        real("gamma", self.gamma, low=0, high=1)
        real("sharpness", self.sharpness)
        integer("seed", self.seed)
        if len(self.harmonic) != 2:
            raise ValueError(f"harmonic must be a pair of degrees (a, b), got {self.harmonic!r}")
        for degree in self.harmonic:
            integer("harmonic", degree, low=0)

    @property
    def tokens(self) -> int:
        """Number of tokens of an example: the query and its keys."""
        return self.n_keys + 1

    @functools.cached_property
    def b(self) -> np.ndarray:
        """The planted unit vector."""
        return _unit(generator(spawn(self.seed, 3)[0]), self.d)

    @functools.cached_property
    def u(self) -> np.ndarray:
        """The planted unit vector of the query's harmonic."""
        return _unit(generator(spawn(self.seed, 3)[1]), self.d)

    @functools.cached_property
    def rotation(self) -> np.ndarray:
        """The planted rotation O, uniform on the orthogonal group."""
        Q, R = np.linalg.qr(generator(spawn(self.seed, 3)[2]).standard_normal((self.d, self.d)))
        return np.asarray(Q * np.sign(np.diag(R)))

    @functools.cached_property
    def mixture(self) -> np.ndarray:
        """S = gamma I + sqrt(1 - gamma^2) O."""
        return np.asarray(self.gamma * np.eye(self.d) + np.sqrt(1 - self.gamma**2) * self.rotation)

    def sample(self, n: int, seed: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
        """Draw n examples: X ``(n, N + 1, d)`` with the query first, y ``(n,)``."""
        n = integer("n", n, low=1)
        rng = generator(seed)
        X = self._draw_tokens(rng, n)
        y = self.truth(X)
        if self.noise_std:
            y = y + self.noise_std * rng.standard_normal(n)
        return X, y

    def truth(self, X: np.ndarray) -> np.ndarray:
        """The noiseless target f* at given tokens."""
        query, keys = X[:, 0], X[:, 1:]
        if callable(self.target):
            return finite_array("target(query, keys)", self.target(query, keys), shape=(len(X),))
        return TARGETS[self.target].value(self, query, keys)

    def _draw_tokens(self, rng: np.random.Generator, n: int) -> np.ndarray:
        shape = (n, self.tokens, self.d)
        if callable(self.token_law):
            return finite_array("token_law(...)", self.token_law(rng, *shape), shape=shape)
        X = rng.standard_normal(shape)
        if self.token_law == "sphere":
            return np.asarray(X / np.linalg.norm(X, axis=-1, keepdims=True))
        return np.asarray(X / np.sqrt(self.d))

    @property
    def family(self) -> Target | None:
        """The formulas of a named target; None for a function."""
        return None if callable(self.target) else TARGETS[self.target]

    @functools.cached_property
    def energies(self) -> Energies:
        r""":math:`\|F_{ab}\|^2` by harmonic degrees (a, b), for tokens on the sphere.

        Status: exact.
        """
        if self.family is None or self.family.energies is None:
            name = self.target if isinstance(self.target, str) else "a function"
            raise ValueError(f"target {name!r} is not an average of a known polynomial of the query and one key")
        if self.token_law != "sphere":
            raise ValueError(f"harmonic energies need token_law='sphere', got {self.token_law!r}")
        return self.family.energies(self)

    @functools.cached_property
    def variance(self) -> float:
        r"""Var(f*), by the law of total variance over the query and the keys.

        .. math:: \mathrm{Var} f_* = \sum_{a \ge 1} \|F_{a0}\|^2 + \tfrac1N \sum_{a,\, b \ge 1} \|F_{ab}\|^2

        Status: exact for the named targets on the sphere, and on Gaussian tokens for all but harmonic and softmax;
        otherwise a Monte Carlo estimate from 131 072 fixed draws (relative error about 0.5 %).
        """
        if self.target == "softmax" and self.token_law == "sphere":
            return _softmax_variance(self.sharpness, self.d, self.n_keys)
        radial = self._radial_moments()
        if radial is None:
            return float(np.var(np.concatenate([self.truth(self._draw_tokens(r, 4096)) for r in _streams()])))
        return _total_variance(replace(self, token_law="sphere").energies, self.n_keys, *radial)

    def _radial_moments(self) -> tuple[float, float, float, float] | None:
        """E|x_0|^alpha, E|x_0|^{2 alpha}, E|x_i|^beta, E|x_i|^{2 beta}; None when the target is not homogeneous."""
        if self.family is None or self.family.energies is None or callable(self.token_law):
            return None
        if self.token_law == "sphere":
            return 1.0, 1.0, 1.0, 1.0
        if self.family.degrees is None:
            return None
        alpha, beta = self.family.degrees(self)
        return (
            _radius_moment(alpha, self.d),
            _radius_moment(2 * alpha, self.d),
            _radius_moment(beta, self.d),
            _radius_moment(2 * beta, self.d),
        )


def _streams() -> list[np.random.Generator]:
    return [generator(seed) for seed in spawn(0, MONTE_CARLO // 4096)]


def _unit(rng: np.random.Generator, d: int) -> np.ndarray:
    x = rng.standard_normal(d)
    return np.asarray(x / np.linalg.norm(x))


def _radius_moment(power: int, d: int) -> float:
    """E|x|^power for x ~ N(0, I/d)."""
    return float(np.exp(power / 2 * np.log(2 / d) + special.gammaln((d + power) / 2) - special.gammaln(d / 2)))


def _total_variance(energies: Energies, n_keys: int, a1: float, a2: float, b1: float, b2: float) -> float:
    """Variance of the query's part plus 1/N of the conditional variance given the query."""
    constant = energies.get((0, 0), 0.0)
    mean_given_query = sum(e for (_, b), e in energies.items() if b == 0)
    total = sum(energies.values())
    of_query = a2 * b1**2 * mean_given_query
    return float(of_query - (a1 * b1) ** 2 * constant + (a2 * b2 * total - of_query) / n_keys)


def _softmax_variance(sharpness: float, d: int, n_keys: int) -> float:
    r"""Variance of :math:`\sum_i w_i \langle b, x_i\rangle` with softmax weights w.

    Given the scores t the components of the keys across the query are independent and centred, so that
    :math:`d\,\mathrm{Var} = \mathbb{E}\big[(\sum_i w_i t_i)^2 + \sum_i w_i^2 (1 - t_i^2)\big]`. With
    :math:`Z^{-2} = \int_0^\infty s e^{-sZ} ds` for the normalisation Z the expectation factorises over keys.
    """
    t, weight = inner_product_law(d)
    e = np.exp(sharpness * (t - 1))

    def integrand(log_s: float) -> float:
        s = np.exp(log_s)
        damped = weight * np.exp(-s * e)
        g, first, second = damped.sum(), damped @ (e * t), damped @ e**2
        pairs = n_keys * (n_keys - 1) * g ** (n_keys - 2) * first**2 if n_keys > 1 else 0.0
        return float(s * s * (n_keys * g ** (n_keys - 1) * second + pairs))

    value, _ = integrate.quad(integrand, -30, 30, limit=400, points=[-3, 0, 3, 6, 10])
    return float(value / d)
