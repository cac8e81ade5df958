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
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import lapack

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import stream
from attnlab.common.validation import integer, nonnegative
from attnlab.rfa.activations import Activation
from attnlab.rfa.kernels import NODES, kernel
from attnlab.rfa.task import Task
from attnlab.rfa.theory.equivalent import solve
from attnlab.rfa.theory.search import Sampled, Solved, factor_of, search
from attnlab.rfa.theory.spectrum import MODELS, spectrum

SMALLEST, LARGEST = 512, 4096
REPLICATES = 3
PLANTED = 8
# Examples up to which a matrix (8 MB) and its factor are kept for later targets and figures.
KEPT = 1024

# Law of the tokens, kernel, scale of the bias and number of examples of a sample.
Source = tuple[Task, str | Activation, float, int]


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """Cached by source and the rest: many results of small samples, few of large ones."""
    small, large = (functools.lru_cache(maxsize=size)(function) for size in (24, 6))
    return lambda source, *rest: (small if source[3] <= KEPT else large)(source, *rest)


@_kept
def _sampled(source: Source, replicate: int) -> Sampled:
    law, kind, bias_scale, m = source
    X = law.sample(m, stream(replicate, "theory", "rfa", "sampled kernel"))[0]
    # For a bias of scale one 6 nodes give what float32 resolves, 3e-7; the integrand sharpens with the scale.
    nodes = 6 if abs(bias_scale) <= 1 else NODES
    K = kernel(X, kind=kind, bias_scale=bias_scale, nodes=nodes, dtype="float32", by_class=True)
    parts = K.astype(np.float64) / m
    return Sampled(X, parts, np.array([1.0, law.d])[: len(parts)])


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
    Not converged where n is more than half the sample. For ``rfa`` and ``rfmlp``, whose spectra are known, only the
    energies of the target are read off the samples.

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
    found = _factored(source, replicate, n, units, ridge)
    if found is None:
        return math.nan
    solved, factor = found
    labels, parts = _labels(source, replicate, task), _sampled(source, replicate).parts
    alpha = lapack.dpotrs(factor, labels, lower=1)[0]
    # d H / d x_0 along the solutions: the shift, and the change of the weights of the classes.
    moved = math.exp(solved.x[0]) * alpha
    for log_weight, slope, K in zip(solved.x[1:], solved.along[1:], parts[1:], strict=False):
        moved += slope * math.exp(log_weight) * (K @ alpha)
    energy = np.vdot(labels, alpha) * solved.slopes[2] + np.vdot(alpha, moved)
    nu = math.exp(solved.log_nu)
    # - nu^2 dA/dnu = - nu dA/dlog nu, with A = y^T H^{-1} y / (m shrunk_0).
    bias = nu * energy / (solved.slopes[1] * math.exp(solved.log_shrunk) * labels.size)
    upsilon = (solved.df + solved.slopes[0] / solved.slopes[1]) / n
    noise = task.noise_std**2 / task.variance
    return float((bias + noise) / (1 - upsilon) - noise)


@functools.lru_cache(maxsize=64)
def _labels(source: Source, replicate: int, task: Task) -> np.ndarray:
    """The target on a sample. The curve is an average over planted instances, whose energies in a sample fluctuate.

    In units of the sample's own variance, most of whose fluctuation the bias shares.
    """
    tokens = _sampled(source, replicate).tokens
    truth = np.stack([replace(task, seed=i).truth(tokens) for i in range(PLANTED)], axis=1)
    return np.asarray(truth / truth.std(axis=0))


@_kept
def _factored(source: Source, replicate: int, n: float, units: float, ridge: float) -> tuple[Solved, np.ndarray] | None:
    """The solution and the factor of 1 / G there."""
    solved = _solve(source, n, units, ridge)[replicate]
    factor = None if solved is None else factor_of(_sampled(source, replicate).of(units), solved.x)
    return None if solved is None or factor is None else (solved, factor)


@functools.lru_cache(maxsize=512)
def _solve(source: Source, n: float, units: float, ridge: float) -> tuple[Solved | None, ...]:
    """The solutions of all samples; the first is where the search of the others starts."""
    if source[1] in MODELS:
        return (_known(source, n, units, ridge),) * REPLICATES
    found: list[Solved | None] = []
    for replicate in range(REPLICATES):
        sample = _sampled(source, replicate).of(units)
        found.append(search(sample, n, units, ridge, found[0] if found else None))
    return tuple(found)


def _known(source: Source, n: float, units: float, ridge: float) -> Solved | None:
    """The solution where the spectrum is known: only the energies of the target are read off the sample."""
    law, model, _, m = source
    held = n * ridge
    bulk = spectrum(law.d, law.n_keys, str(model)).with_tail()
    at = solve(bulk, np.array([n]), np.array([units]), np.array([held]))
    nu, df = float(at.nu[0]), float(at.df[0])
    if at.residual[0] > 1e-6 or df >= m or not bulk.resolved:
        return None
    # Of infinitely many heads there is one class, whose delta is zero.
    classes = 1 if math.isinf(units) else len(bulk.counts)
    grown = np.log1p(at.delta[0, :classes])
    # Slopes in log nu, and at last in x_0; kappa = nu (1 - df / m).
    df_slope = held / nu - n * float(at.gap[0])
    grown_slope = nu * at.slope[0, :classes] / (1 + at.delta[0, :classes])
    x_slope = 1 - df_slope / (m - df) + grown_slope[0]
    return Solved(
        x=np.append(math.log(nu * (1 - df / m)) + grown[0], grown[0] - grown[1:]),
        df=df,
        log_nu=math.log(nu),
        log_shrunk=-float(grown[0]),
        along=np.append(x_slope, grown_slope[0] - grown_slope[1:]) / x_slope,
        slopes=np.array([df_slope, 1.0, -grown_slope[0]]) / x_slope,
    )
