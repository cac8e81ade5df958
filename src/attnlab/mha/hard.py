r"""Members of the lower bound's families: layers that hide a parity or a rounded inner product (derived here).

Two tokens, signs :math:`z_j = x_{1j} x_{2j}`. A head with diagonal Theta sees only z: its log-odds of the own token
against the other is :math:`\sum_j \Theta_{jj} (1 - z_j)`. Coordinate 0 is a gate, open when :math:`z_0 = -1`.

**Parity.** Secret S of size s, N the number of z_j = -1 in S. Heads i = 0..s have
:math:`\Theta_i = C\,\mathrm{diag}(1_S) + b_i e_0 e_0^\top`, :math:`b_i = -C(i - \tfrac12)`, and :math:`W_i = a_i M`,
M orthogonal, where

.. math:: \sum_i a_i\,\sigma(2CN + 2b_i) - \beta = (-1)^N \;\; (N = 0..s), \qquad \sum_i a_i = 0

gives :math:`F(X)_1 = \tfrac{1-z_0}{2} (\beta + \chi_S(z))(x_1 - x_2) M = -F(X)_2` exactly. Any statistic of (X, Y)
depends on S through one Fourier coefficient, so statistical-query learners need
:func:`attnlab.mha.theory.sq_queries`. Without noise it is no secret for algebra: :func:`gf2_crack` reads the
parities off the labels and solves over GF(2).

**Learning with rounding.** :math:`u = \langle a, s\rangle` with the bits of a carried by z; the label is the staircase
:math:`\lfloor p\,(u \bmod q)/q\rfloor/(p-1)`, one head for each jump and one that balances them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import expit
from scipy.stats import ortho_group

from attnlab.common.advice import no_advice
from attnlab.common.arrays import ArrayLike
from attnlab.common.seeds import stream
from attnlab.common.tokens import check_targets, check_tokens
from attnlab.common.validation import integer, one_of, positive
from attnlab.mha.task import Task

KINDS = ("parity", "lwr")


@dataclass(frozen=True)
class ParityInstance:
    """A layer that computes the parity of the coordinates in ``secret``; ``beta`` is the part that needs no secret."""

    task: Task
    secret: tuple[int, ...]
    beta: float
    M: np.ndarray

    def closed_form(self, X: ArrayLike) -> Float[np.ndarray, "n 2 d"]:
        """The outputs by the formula, without the layer."""
        tokens = check_tokens(X, n_tokens=2, d=self.task.d)
        z = tokens[:, 0] * tokens[:, 1]
        parity = np.prod(z[:, list(self.secret)], axis=1)
        return _gated(tokens, self.beta + parity, self.M)


@dataclass(frozen=True)
class RoundingInstance:
    """A layer that computes the rounded inner product with ``secret`` in Z_q^l (learning with rounding)."""

    task: Task
    secret: tuple[int, ...]
    q: int
    p: int
    steepness: float
    M: np.ndarray

    def inner_products(self, X: ArrayLike) -> np.ndarray:
        """u = <a, s> over the integers, a read from the tokens' bits."""
        tokens = check_tokens(X, n_tokens=2, d=self.task.d)
        return (1 - tokens[:, 0] * tokens[:, 1])[:, 1:] / 2 @ _bit_weights(self.secret, self.q)

    def closed_form(self, X: ArrayLike) -> Float[np.ndarray, "n 2 d"]:
        """The outputs by the staircase; the layer's steps are smooth, so it differs by about exp(-steepness / 2)."""
        tokens = check_tokens(X, n_tokens=2, d=self.task.d)
        u = np.rint(self.inner_products(tokens)).astype(int)
        stairs = _staircase(int(u.max()) + 1, self.q, self.p)
        _, heights = _jumps(self.secret, self.q, self.p)
        # The balancing head has no gate: its share is that of C u, one half at u = 0.
        return _gated(tokens, stairs[u] - heights.sum() * expit(self.steepness * u), self.M)


def hard_instance(
    kind: str = "parity",
    *,
    d: int = 12,
    size: int = 5,
    q: int = 4,
    p: int = 2,
    length: int = 2,
    steepness: float | None = None,
    noise_std: float = 0.0,
    seed: int = 0,
) -> ParityInstance | RoundingInstance:
    """A member of a hard family.

    Parameters
    ----------
    kind : ``parity`` (uses ``d`` and ``size``) or ``lwr`` (uses ``q``, ``p`` and ``length``; d = 1 + length log2 q).
    d, size : token width and number of secret coordinates, size < d.
    q, p, length : modulus (a power of two), rounding levels 2 <= p <= q, and length of the secret.
    steepness : C; 2 for parity, 40 for rounding by default.
    noise_std, seed : label noise; the seed draws the secret and the rotation M.

    >>> instance = hard_instance("parity", d=8, size=2)
    >>> instance.task.n_heads, len(instance.secret)
    (2, 2)
    """
    one_of("kind", kind, KINDS)
    rng = stream(integer("seed", seed, low=0), "plant", "mha")
    if kind == "lwr":
        return _rounding(q, p, length, 40.0 if steepness is None else positive("steepness", steepness), noise_std, rng)
    d = integer("d", d, low=2)
    size = integer("size", size, low=1, high=d - 1)
    C = 2.0 if steepness is None else positive("steepness", steepness)
    # Coordinate 0 is the gate and stays out of the secret.
    secret = tuple(sorted(int(j) for j in 1 + rng.permutation(d - 1)[:size]))
    a, b, beta = parity_heads(size, C)
    M = _rotation(d, rng)
    theta = np.zeros((len(a), d, d))
    theta[:, secret, secret] = C
    theta[:, 0, 0] = b
    task = _task(theta, a[:, None, None] * M, noise_std)
    return ParityInstance(task, secret, beta, M)


def parity_heads(size: int, steepness: float = 2.0) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights a, gates b and constant beta of the heads that make a parity of ``size`` bits, idle heads left out."""
    # With the gate open head i has log-odds 2 C (N - i + 1/2): a step from N = i - 1 to N = i.
    gates = -steepness * (np.arange(size + 1) - 0.5)
    N = np.arange(size + 1)
    system = np.zeros((size + 2, size + 2))
    system[:-1, :-1] = expit(2 * steepness * N[:, None] + 2 * gates)
    system[:-1, -1] = -1
    # The sum of a is zero: with the gate closed all patterns are equal, and the values have to cancel.
    system[-1, :-1] = 1
    solved = np.linalg.solve(system, np.append((-1.0) ** N, 0.0))
    a, beta = solved[:-1], float(solved[-1])
    # The solution is exact up to rounding: what is below it is a zero, and a gate that is not needed.
    used = np.abs(a) > 1e-9 * np.abs(a).max()
    return a[used], gates[used], beta


def gf2_crack(X: ArrayLike, y: ArrayLike) -> tuple[int, ...] | None:
    """The secret of a noiseless parity instance by linear algebra over GF(2); None when the labels are not such.

    Where the gate is open, ||F_1|| / ||x_1 - x_2|| = |beta + chi_S| takes two values, which gives chi_S up to sign.
    Gaussian elimination with an unknown constant gives S. This is no statistical-query algorithm: one wrong label
    ruins it.
    """
    tokens = check_tokens(X, n_tokens=2)
    outputs = check_targets(y, len(tokens), shape=(2, None))
    z = tokens[:, 0] * tokens[:, 1]
    distance = np.linalg.norm(tokens[:, 0] - tokens[:, 1], axis=1)
    opened = (z[:, 0] < 0) & (distance > 0)
    ratio = np.linalg.norm(outputs[opened, 0], axis=1) / distance[opened]
    if len(ratio) == 0 or np.ptp(ratio) < 1e-6:
        return None
    large = ratio > (ratio.min() + ratio.max()) / 2
    two_values = max(np.ptp(ratio[large]), np.ptp(ratio[~large])) < 1e-6 * ratio.max()
    if not two_values:
        return None
    # The column of ones is the unknown constant: which of the two values belongs to chi = 1.
    bits = np.column_stack([z[opened, 1:] < 0, np.ones(len(ratio), dtype=bool)])
    solution = _solve_gf2(bits, large)
    return None if solution is None else tuple(int(j) + 1 for j in np.flatnonzero(solution[:-1]))


def _solve_gf2(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """The solution of A x = b over GF(2), if it exists and is unique."""
    system = np.column_stack([A, b]).astype(bool)
    unknowns = A.shape[1]
    for column in range(unknowns):
        pivots = np.flatnonzero(system[column:, column])
        if len(pivots) == 0:
            return None
        pivot = column + pivots[0]
        system[[column, pivot]] = system[[pivot, column]]
        others = system[:, column].copy()
        others[column] = False
        system[others] ^= system[column]  # addition over GF(2)
    # Rows beyond the unknowns have become zero on the left: a one on the right contradicts.
    return None if system[unknowns:, -1].any() else system[:unknowns, -1]


def _rounding(q: int, p: int, length: int, C: float, noise_std: float, rng: np.random.Generator) -> RoundingInstance:
    q = integer("q", q, low=2)
    # The bits of a then run over all of Z_q.
    if q & (q - 1):
        raise ValueError(f"q must be a power of two, got {q}")
    p = integer("p", p, low=2, high=q)
    length = integer("length", length, low=1)
    # Never zero: the bits of an a_i with s_i = 0 would have no part in the label.
    secret = tuple(int(s) for s in rng.integers(1, q, length))
    weights = _bit_weights(secret, q)
    d = 1 + len(weights)
    M = _rotation(d, rng)
    places, heights = _jumps(secret, q, p)
    theta = np.zeros((len(places) + 1, d, d))
    # Log-odds are C u, and C (u - place + 1/2) where the gate is open; the last head balances and has no gate.
    theta[:, range(1, d), range(1, d)] = C / 2 * weights
    theta[:-1, 0, 0] = -C / 2 * (places - 0.5)
    w = np.append(heights, -heights.sum())[:, None, None] * M
    return RoundingInstance(_task(theta, w, noise_std), secret, q, p, C, M)


def _bit_weights(secret: tuple[int, ...], q: int) -> np.ndarray:
    """Weight s_i 2^b of each bit, so that the weighted bits of a sum to <a, s>."""
    powers = 2.0 ** np.arange(q.bit_length() - 1)
    return (np.array(secret)[:, None] * powers).ravel()


def _staircase(length: int, q: int, p: int) -> np.ndarray:
    u = np.arange(length)
    return (p * (u % q) // q) / (p - 1)


def _jumps(secret: tuple[int, ...], q: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the staircase jumps and by how much."""
    stairs = _staircase(int(_bit_weights(secret, q).sum()) + 1, q, p)
    heights = np.diff(stairs)
    places = np.flatnonzero(heights)
    return places + 1.0, heights[places]


def _rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    return ortho_group.rvs(d, random_state=rng)


def _task(theta: np.ndarray, w: np.ndarray, noise_std: float) -> Task:
    m, d, _ = theta.shape
    # The sum of all projections vanishes by construction: at k = 2 the heads are known up to a common sign only.
    with no_advice():
        return Task(d=d, k=2, n_heads=m, noise_std=noise_std, planted=(theta, w))


def _gated(X: np.ndarray, value: np.ndarray, M: np.ndarray) -> np.ndarray:
    """(1 - z_0)/2 value (x_1 - x_2) M in the first row, its negative in the second."""
    gate: np.ndarray = (1 - X[:, 0, 0] * X[:, 1, 0]) / 2
    first = (gate * value)[:, None] * ((X[:, 0] - X[:, 1]) @ M)
    return np.stack([first, -first], axis=1)
