r"""The learning curve of heads whose spectrum is not known, read off a larger sample of their exact kernels.

With a bias the kernel is invariant only under rotations of query and keys together: harmonics of different degrees are
coupled, and there is no table of eigenvalues. The equations of :mod:`attnlab.rfa.theory.equivalent` need the spectrum
through a few traces only. The kernel ridge regression of a larger sample of m examples has a deterministic equivalent
of its own, which says how to read these traces off its Gram matrices.

==========  ===========================================================================================
symbol      meaning
==========  ===========================================================================================
K_c         kernel of a class of features at m examples (constant coordinate; keys), m at least twice n
p_c         features of a class: M and M d;  delta_c as in :mod:`attnlab.rfa.theory.equivalent`
G           (sum_c K_c / (m (1 + delta_c)) + kappa)^{-1}
nu          effective ridge of the population at the ridge kappa of the sample: kappa = nu (1 - df / m)
t_c         tr(K_c G) / m, which is tr(L_c Q) of the population: delta_c = t_c / p_c, df = sum_c t_c / (1 + delta_c)
A           f^T G f / m, which is <f, Q f> of the population
==========  ===========================================================================================

Then n - n lam / nu = df fixes kappa, bias = - nu^2 dA/dnu, Upsilon = (df + nu d df/dnu) / n, and the error at n is
(bias + sigma^2) / (1 - Upsilon) - sigma^2. (Both traces are derivatives of log det, whose equivalent is stationary in
nu: of t_c along K_c, of A along the rank-one kernel f f^T.)
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import stream
from attnlab.common.validation import integer, nonnegative
from attnlab.rfa.activations import Activation
from attnlab.rfa.kernels import NODES, kernel
from attnlab.rfa.task import Task

SMALLEST, LARGEST = 512, 4096
REPLICATES = 3
PLANTED = 8
STEPS = 60
# Of the logarithms of kappa and of the ratio of the classes: far below the statistical error.
TOLERANCE = 1e-6
DIFFERENCE = 1e-5


class Sampled(NamedTuple):
    """Tokens of m examples and K_c / m by class, with the number of features of each class in one unit."""

    tokens: np.ndarray
    parts: np.ndarray
    counts: np.ndarray

    def of(self, units: float) -> Sampled:
        """The classes of infinitely many heads are one."""
        whole = self.parts.sum(axis=0, keepdims=True)
        return self._replace(parts=whole, counts=self.counts[:1]) if math.isinf(units) else self


# Law of the tokens, kernel, scale of the bias and number of examples of a sample.
Source = tuple[Task, str | Activation, float, int]


@functools.lru_cache(maxsize=6)
def _sampled(law: Task, kind: str | Activation, bias_scale: float, m: int, replicate: int) -> Sampled:
    X = law.sample(m, stream(replicate, "theory", "rfa", "sampled kernel"))[0]
    # For a bias of scale one 6 nodes give what float32 resolves, 3e-7; the integrand sharpens with the scale.
    nodes = 6 if abs(bias_scale) <= 1 else NODES
    K = kernel(X, kind=kind, bias_scale=bias_scale, nodes=nodes, dtype="float32", by_class=True)
    parts = K.astype(np.float64) / m
    return Sampled(X, parts, np.array([1.0, law.d])[: len(parts)])


class Traces(NamedTuple):
    """What the Gram matrices say at x = (log kappa (1 + delta_0), log (1 + delta_0) / (1 + delta_c)).

    ``mismatch`` is the second part of x that follows, less the one given: zero at the solution. ``log_shrunk`` is
    - log (1 + delta_0).
    """

    df: float
    log_nu: float
    log_shrunk: float
    mismatch: np.ndarray

    def flat(self) -> np.ndarray:
        """All numbers in a row."""
        return np.concatenate([[self.df, self.log_nu, self.log_shrunk], self.mismatch])


def _factor(sample: Sampled, x: np.ndarray) -> np.ndarray | None:
    """Cholesky factor of 1 / G with the factor 1 / (1 + delta_0) taken out; None below rounding."""
    H = np.tensordot(np.exp(np.append(0.0, x[1:])), sample.parts, 1)
    H[np.diag_indices(len(H))] += math.exp(x[0])
    # The matrix is symmetric: its transpose is the Fortran order that LAPACK overwrites without a copy.
    factor, failed = lapack.dpotrf(H.T, lower=1, overwrite_a=1)
    return None if failed else np.asarray(factor)


def _traces(sample: Sampled, units: float, x: np.ndarray) -> Traces | None:
    """None where the features would be overfull: df above their number, or above m."""
    factor = _factor(sample, x)
    if factor is None:
        return None
    m, ratio = len(factor), np.exp(np.append(0.0, x[1:]))
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    # One triangle is zero: every pair of examples is met once. The transpose has the order in memory of K.
    traces = np.array([2 * np.vdot(K, inverse.T) - np.diag(K) @ np.diag(inverse) for K in sample.parts])
    # delta_c = t_c / p_c with G = (1 + delta_0) / H reads 1 / (1 + delta_c) = 1 - r_c tr(K_c / H) / p_c.
    shrunk, df = 1 - ratio * traces / (units * sample.counts), float(ratio @ traces)
    if (shrunk <= 0).any() or df >= m:
        return None
    log_shrunk = math.log(shrunk[0])
    return Traces(df, x[0] + log_shrunk - math.log(1 - df / m), log_shrunk, np.log(shrunk[1:]) - log_shrunk - x[1:])


def sampled_learning_curve(
    task: Task,
    n: ArrayLike,
    kind: str | Activation = "brfa",
    ridge: float = 1e-6,
    *,
    units: ArrayLike | None = None,
    bias_scale: float = 1.0,
    size: int | None = None,
) -> Prediction:
    r"""Test error over Var f* of ridge regression on M heads, for any target and any activation with an exact kernel.

    Parameters
    ----------
    n : sample sizes.
    kind, bias_scale : kernel, see :func:`attnlab.rfa.kernel`.
    ridge : penalty lambda.
    units : heads (width of ``rfmlp`` and ``patch``), broadcast against n; None for infinitely many.
    size : examples of the sample that stands for the population; by default the power of two from twice n, between 512
        and 4096.

    The value is the mean over three samples and eight planted instances, ``error`` the standard error over samples.
    Not converged where n is more than half the sample. A value takes a second at n = 256 and a minute at n = 1024.

    Source: deterministic equivalents of random features (arXiv:2405.15699) and of kernels (arXiv:2006.13198,
    arXiv:2110.03922), one read off the other; derived here.  Status: asymptotic, with a statistical error.

    >>> task = Task(target="corr_power", q=1, d=6, n_keys=4)
    >>> rfa, brfa = (float(sampled_learning_curve(task, 100, kind)) for kind in ("rfa", "brfa"))
    >>> 0.1 < brfa < rfa < 0.6
    True
    """
    sizes, heads = np.asarray(n, dtype=float), np.asarray(np.inf if units is None else units, dtype=float)
    ridge, shape = nonnegative("ridge", ridge), np.broadcast_shapes(sizes.shape, heads.shape)
    if not (sizes >= 1).all() or not (heads >= 1).all():
        raise ValueError(f"n and units must be >= 1, got n={n!r} and units={units!r}")
    pairs = list(zip(*(column.ravel().tolist() for column in np.broadcast_arrays(sizes, heads)), strict=True))
    # One sample serves all targets of a law of the tokens; its labels are those of the target.
    law = replace(task, target="key_power", noise_std=0.0, seed=0)
    draws = np.empty((REPLICATES, len(pairs)))
    m = [_sample_size(n) if size is None else integer("size", size, low=16) for n, _ in pairs]
    for replicate in range(REPLICATES):
        for i, (n_, units_) in enumerate(pairs):
            draws[replicate, i] = _error((law, kind, float(bias_scale), m[i]), replicate, task, n_, units_, ridge)
    value, error = draws.mean(axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(REPLICATES)
    converged = (2 * np.array([n for n, _ in pairs]) <= m) & np.isfinite(value)
    shaped = [column.reshape(shape)[()] for column in (value, error, converged, np.array(m))]
    return Prediction(shaped[0], shaped[1], "asymptotic", shaped[2], {"sample": shaped[3]})


def _sample_size(n: float) -> int:
    return min(max(1 << math.ceil(math.log2(2 * n)), SMALLEST), LARGEST)


def _error(source: Source, replicate: int, task: Task, n: float, units: float, ridge: float) -> float:
    """The error at one setting, from one sample; NaN where its equations are not solved."""
    solved, sample = _solve(source, n, units, ridge)[replicate], _sampled(*source, replicate).of(units)
    if solved is None:
        return math.nan
    # The curve is an average over planted instances, whose energies in a sample fluctuate.
    truth = np.stack([replace(task, seed=i).truth(sample.tokens) for i in range(PLANTED)], axis=1)
    # In units of the sample's own variance, most of whose fluctuation the bias shares.
    labels = truth / truth.std(axis=0)
    factor = _factor(sample, solved.x)
    assert factor is not None
    alpha = lapack.dpotrs(factor, labels, lower=1)[0]
    # d H / d log kappa along the solutions: the shift, and the change of the weights of the classes.
    along, slopes = solved.along()
    weights = np.append(0.0, np.exp(solved.x[1:]) * along[1:])
    moved = math.exp(solved.x[0]) * alpha + np.tensordot(weights, sample.parts, 1) @ alpha
    energy = np.vdot(labels, alpha) * slopes[2] + np.vdot(alpha, moved)
    nu = math.exp(solved.at.log_nu)
    # - nu^2 dA/dnu = - nu dA/dlog nu, with A = y^T H^{-1} y / (m shrunk_0).
    bias = nu * energy / (slopes[1] * math.exp(solved.at.log_shrunk) * labels.size)
    upsilon = (solved.at.df + slopes[0] / slopes[1]) / n
    noise = task.noise_std**2 / task.variance
    return float((bias + noise) / (1 - upsilon) - noise)


class Solved(NamedTuple):
    """Where the equations hold, and the Jacobian there of the traces in x."""

    x: np.ndarray
    at: Traces
    jacobian: np.ndarray

    def along(self) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of x and of the traces in log kappa along the solutions of delta = t / p."""
        inner = self.jacobian[3:]
        slopes = np.append(1.0, -np.linalg.solve(inner[:, 1:], inner[:, 0])) if len(inner) else np.ones(1)
        return slopes, self.jacobian @ slopes


@functools.lru_cache(maxsize=512)
def _solve(source: Source, n: float, units: float, ridge: float) -> tuple[Solved | None, ...]:
    """The solutions of all samples; the first is where the search of the others starts."""
    found: list[Solved | None] = []
    for replicate in range(REPLICATES):
        sample = _sampled(*source, replicate).of(units)
        near = _search(sample, n, units, ridge, found[0] if found else None)
        # Beside a saturated class of features an updated Jacobian may lead astray; a new one at every step does not.
        found.append(near or _search(sample, n, units, ridge, None, updated=False))
    return tuple(found)


def _search(
    sample: Sampled, n: float, units: float, ridge: float, near: Solved | None, *, updated: bool = True
) -> Solved | None:
    """Broyden's method: the Jacobian costs a factor for each unknown, so it is updated, and computed at the end.

    ``updated=False`` computes it at every step, which is Newton's method.
    """
    trace = float(np.trace(sample.parts, axis1=1, axis2=2).sum())
    x: np.ndarray = np.append(math.log(trace / n), np.zeros(len(sample.counts) - 1)) if near is None else near.x
    here = _traces(sample, units, x)
    while here is None:  # a larger ridge fills less
        x = x + np.eye(len(x))[0]
        here = _traces(sample, units, x)
    jacobian, exact = (None, False) if near is None else (near.jacobian, False)
    for _ in range(STEPS):
        if jacobian is None:
            jacobian, exact = _differences(sample, units, x, here), True
            if jacobian is None:
                return None
        step = _newton_step(here, jacobian, n, ridge)
        if np.abs(step).max() < TOLERANCE:
            if exact:
                return Solved(x, here, jacobian)
            jacobian = None
            continue
        step *= min(1.0, 2.0 / np.abs(step).max())
        following, whole = _traces(sample, units, x + step), updated
        while following is None and np.abs(step).max() > TOLERANCE:
            step, whole = step / 2, False
            following = _traces(sample, units, x + step)
        # Below the rounding error of the kernel a ridge carries no information.
        if following is None or math.exp((x + step)[0]) < 1e-7 * trace:
            return None
        # A step that had to be shortened says that the Jacobian is of elsewhere.
        miss = following.flat() - here.flat() - jacobian @ step
        jacobian, exact = (jacobian + np.outer(miss, step) / (step @ step) if whole else None), False
        x, here = x + step, following
    return None


def _differences(sample: Sampled, units: float, x: np.ndarray, here: Traces) -> np.ndarray | None:
    moved = [_traces(sample, units, x + DIFFERENCE * e) for e in np.eye(len(x))]
    if any(t is None for t in moved):
        return None
    return np.stack([(t.flat() - here.flat()) / DIFFERENCE for t in moved if t is not None], axis=1)


def _newton_step(here: Traces, jacobian: np.ndarray, n: float, ridge: float) -> np.ndarray:
    # n lam / nu counts with the degrees of freedom; its logarithm falls as log nu grows.
    held = n * ridge * math.exp(-here.log_nu)
    equations = np.vstack([jacobian[0] - held * jacobian[1], jacobian[3:]])
    return np.asarray(np.linalg.solve(equations, -np.append(here.df + held - n, here.mismatch)))
