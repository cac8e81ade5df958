r"""The learning curve of a kernel whose spectrum is not known, read off a larger sample of the exact kernel.

With a bias the kernel is invariant only under rotations of query and keys together: harmonics of different degrees are
coupled, and there is no table of eigenvalues. The equations of the learning curve need the spectrum through three
numbers only, and the same equations, at a larger sample size m, say how to read these off a Gram matrix of m examples.

==========  ===========================================================================================
symbol      meaning
==========  ===========================================================================================
K           exact kernel at m examples, m at least twice n;  s_i eigenvalues of K / m
kappa       ridge of the sample;  nu the effective ridge that belongs to it, kappa = nu (1 - df / m)
df, df2     sum lam/(lam + nu) and sum (lam/(lam + nu))^2 of the population; df = sum s/(s + kappa)
bias        sum_i f_i^2 (nu/(lam_i + nu))^2, from the training error at m:  (nu/kappa)^2 (1 - df2/m) |r|^2 / m
==========  ===========================================================================================

Then n - n lam / nu = df fixes kappa, and the error at n is (bias + sigma^2) / (1 - df2/n) - sigma^2.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from attnlab.common.arrays import ArrayLike
from attnlab.common.prediction import Prediction
from attnlab.common.seeds import stream
from attnlab.common.validation import integer, nonnegative
from attnlab.rfa.kernels import kernel
from attnlab.rfa.task import Task

SMALLEST, LARGEST = 512, 4096
REPLICATES = 3
PLANTED = 8


class Sampled(NamedTuple):
    """Tokens of m examples, eigenvalues of K / m and eigenvectors."""

    tokens: np.ndarray
    values: np.ndarray
    vectors: np.ndarray


@functools.lru_cache(maxsize=8)
def _sampled(law: Task, kind: str, bias_scale: float, m: int, replicate: int) -> Sampled:
    X = law.sample(m, stream(replicate, "theory", "rfa", "sampled kernel"))[0]
    K = kernel(X, kind=kind, bias_scale=bias_scale, dtype="float32").astype(np.float64)
    values, vectors = linalg.eigh(K / m, overwrite_a=True, check_finite=False)
    # Below the rounding error of the kernel an eigenvalue carries no information.
    return Sampled(X, np.maximum(values, 1e-7 * values[-1]), vectors)


def sampled_learning_curve(
    task: Task,
    n: ArrayLike,
    kind: str = "brfa",
    ridge: float = 1e-6,
    *,
    bias_scale: float = 1.0,
    size: int | None = None,
) -> Prediction:
    r"""Test error over Var f* of ridge regression with an exact kernel, for any target and any closed-form kernel.

    Parameters
    ----------
    n : sample sizes.
    kind, bias_scale : kernel, see :func:`attnlab.rfa.kernel`.
    ridge : penalty lambda.
    size : examples of the sample that stands for the population; by default the power of two from twice the largest n,
        4096 at most.

    The value is the mean over three samples and eight planted instances, ``error`` the standard error over samples.
    Not converged where n is more than half the sample.

    Source: deterministic equivalents (arXiv:2006.13198, arXiv:2110.03922) at two sample sizes, derived here.
    Status: asymptotic, with a statistical error.

    >>> task = Task(target="corr_power", q=1, d=6, n_keys=4)
    >>> rfa, brfa = (float(sampled_learning_curve(task, 100, kind)) for kind in ("rfa", "brfa"))
    >>> 0.1 < brfa < rfa < 0.6
    True
    """
    sizes, ridge = np.asarray(n, dtype=float), nonnegative("ridge", ridge)
    if (sizes < 1).any():
        raise ValueError(f"n must be >= 1, got {n!r}")
    wanted = 2 ** math.ceil(math.log2(max(2 * sizes.max(), SMALLEST)))
    m = min(wanted, LARGEST) if size is None else integer("size", size, low=16)
    # One sample serves all targets of a law of the tokens; its labels are those of the target.
    law = replace(task, target="key_power", noise_std=0.0, seed=0)
    samples = [_sampled(law, kind, float(bias_scale), m, r) for r in range(REPLICATES)]
    # The curve is an average over planted instances, whose energies in a sample fluctuate.
    planted = [replace(task, seed=i) for i in range(PLANTED)]
    draws = np.array([[_error(sample, planted, float(size), ridge) for size in sizes.ravel()] for sample in samples])
    value, error = draws.mean(axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(REPLICATES)
    converged = (2 * sizes.ravel() <= m) & np.isfinite(value)
    shaped = [column.reshape(sizes.shape)[()] for column in (value, error, converged)]
    return Prediction(shaped[0], shaped[1], "asymptotic", shaped[2], {"sample": m})


def _error(sample: Sampled, planted: list[Task], n: float, ridge: float) -> float:
    s, m = sample.values, len(sample.values)
    truth = np.stack([task.truth(sample.tokens) for task in planted], axis=1)
    # In units of the sample's own variance, most of whose fluctuation the bias shares.
    f = sample.vectors.T @ (truth / truth.std(axis=0))

    def df(kappa: float) -> float:
        return float(np.sum(s / (s + kappa)))

    def excess(log_kappa: float) -> float:
        kappa = math.exp(log_kappa)
        filled = df(kappa)
        return filled + n * ridge * (1 - filled / m) / kappa - n

    low, high = np.log(1e-3 * s[0]), np.log(2 * m * s[-1] / n + n * ridge + 1)
    if excess(low) < 0:  # more examples than the sample resolves
        return math.nan
    kappa = float(np.exp(optimize.brentq(excess, low, high, xtol=1e-12)))
    filled = df(kappa)
    nu = kappa / (1 - filled / m)
    slope = -float(np.sum(s / (s + kappa) ** 2))
    # d nu / d kappa = (1 - df/m)^{-1} + kappa (df'/m) (1 - df/m)^{-2}
    df2 = filled + nu * slope / ((1 + nu * slope / m) / (1 - filled / m))
    bias = nu**2 * (1 - df2 / m) * float(np.sum((f / (s + kappa)[:, None]) ** 2)) / (m * len(planted))
    noise = planted[0].noise_std ** 2 / planted[0].variance
    return float((bias + noise) / (1 - df2 / n) - noise)
