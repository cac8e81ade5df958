r"""Make ``hardmax_table.json``: f(t) = s(tau)/sqrt(tau), t = sqrt(tau), of hardmax with three tokens or more.

``python -m attnlab.aim.channels.hardmax_table`` takes ten minutes of one core (``--only tied-4`` makes one entry).
Both ends are known: f(1) is a sum over patterns of winners, and as tau -> 0 only ties of the two largest entries of a
row tell anything,

.. math:: f(0) = I_0 \sum_{rows}\sum_{i<j} \varsigma_{ij} \int \varphi_i\varphi_j\prod_{k\ne i,j}\Phi_k, \qquad
          I_0 = \int\frac{\varphi^2}{\Phi(\kappa)\Phi(-\kappa)}\,d\kappa

with varsigma^2 the variance of a difference. An untied row is integrated at every node. For a tied sequence the Monte
Carlo values between the ends fix a smooth correction to the shape of two tokens,
f = f(0) + (f(1) - f(0)) shape(t) + t (1 - t)(a + b t).  Two independent sets of points make |g|^2 unbiased.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from attnlab.aim.channels import orthant
from attnlab.aim.channels.hardmax_strength import TABLE, chebyshev, scale_function
from attnlab.aim.indices import Layout, n_pairs
from attnlab.aim.quasi_random import normal_points, uniform_points
from attnlab.common.gaussian import gauss_legendre, normal_pdf

NODES = 12
BATCHES = 8  # of an untied row, whose integrand is smooth
TIED_BATCHES = 64
ROW_INSIDE = (0.2, 0.35, 0.5, 0.65, 0.8, 0.92)
INSIDE = (0.25, 0.5, 0.75)  # t of the Monte Carlo values of a tied sequence
SEQUENCES = {3: 4096, 4: 2048, 5: 1024, 6: 512}  # of a batch
POINTS = 64
ENUMERATION = 2**17  # 2**13 left errors of 4e-4 (3 tokens) and 1.5e-3 (4) in the threshold
ROW_POINTS = 2**13
SIZES = (3, 4, 5, 6)


def tie_integral() -> float:
    """I_0."""
    x, w = gauss_legendre(200)
    x = 13 * (2 * x - 1)
    return float(26 * w @ np.exp(-(x**2) - np.log(2 * np.pi) - log_ndtr(x) - log_ndtr(-x)))


def small_tau(sigmas: np.ndarray) -> float:
    """f(0) of one row with entries of these standard deviations."""
    x, w = gauss_legendre(200)
    x, w = 12 * (2 * x - 1), 24 * w
    total = 0.0
    for i, j in itertools.combinations(range(len(sigmas)), 2):
        others = np.prod([ndtr(x / s) for k, s in enumerate(sigmas) if k not in (i, j)], axis=0)
        pair = normal_pdf(x / sigmas[i]) * normal_pdf(x / sigmas[j]) / (sigmas[i] * sigmas[j])
        total += float(np.hypot(sigmas[i], sigmas[j]) * (w @ (pair * others)))
    return total * tie_integral()


def row_batch(keys: int, tau: float, seed: int) -> float:
    """One estimate of f for an untied row: all winners summed, so that the integrand is smooth."""
    import jax

    omega = np.sqrt(1 - tau) * normal_points(keys, ROW_POINTS, seed)
    with jax.enable_x64(True):
        # f = V E|g|^2/sqrt(tau), and V = tau at the total variance 1.
        return float(np.sqrt(tau) * np.asarray(_row(keys)(omega, tau)).mean())


@functools.lru_cache(maxsize=8)
def _row(keys: int) -> Any:
    import jax
    import jax.numpy as jnp

    from attnlab.aim.channels.log_concave import hazard_means

    def information(omega: Any, V: Any) -> Any:
        total = 0.0
        for winner in range(keys):
            others = jnp.asarray([k for k in range(keys) if k != winner])
            lead = (omega[:, winner, None] - omega[:, others]) / jnp.sqrt(V)
            log_z, means = hazard_means(lead, jnp.ones_like(lead))
            # The slope of the winner is minus the sum of those of the others.
            total += jnp.exp(log_z) * ((means**2).sum(axis=-1) + means.sum(axis=-1) ** 2) / V
        return total

    return jax.jit(information)


def row_entry(keys: int) -> dict[str, list[float]]:
    """Values and errors of an untied row at the nodes: a polynomial through both ends and the integrals between."""
    inside = np.array(ROW_INSIDE)
    found = np.array([[row_batch(keys, t**2, seed) for seed in range(BATCHES)] for t in inside])
    # A floor, since the fit divides by them.
    errors = np.maximum(found.std(axis=1, ddof=1) / np.sqrt(BATCHES), 1e-7)
    # Without knowledge E[z | y] is e for the winner and -e/(keys - 1) for each other entry, e the mean of the largest.
    low, high, t = small_tau(np.ones(keys)), largest_normal(keys) ** 2 * keys / (keys - 1), chebyshev(NODES)
    solve = np.linalg.pinv((_correction(inside, 4) / errors).T)
    gap = found.mean(axis=1) - low - (high - low) * inside
    values = low + (high - low) * t + _correction(t, 4).T @ solve @ (gap / errors)
    return _entry(values, np.sqrt(((_correction(t, 4).T @ solve) ** 2).sum(axis=1)))


def largest_normal(n: int) -> float:
    """E max of n standard normals."""
    x, w = gauss_legendre(200)
    x, w = 12 * (2 * x - 1), 24 * w
    return float(n * (w * x * normal_pdf(x)) @ ndtr(x) ** (n - 1))


def tied_batch(tokens: int, tau: float, seed: int) -> float:
    """One estimate of f for a tied sequence."""
    import jax

    p, dimension = n_pairs(tokens), tokens * (tokens - 1) // 2
    normals = normal_points(2 * p, SEQUENCES[tokens], seed)
    omega = np.sqrt(1 - tau) * normals[:, :p]
    winners = Layout(tokens, tokens).unwhiten(omega + np.sqrt(tau) * normals[:, p:]).argmax(axis=-1)
    # Seeds beyond those of the sequences: equal ones would shift both by the same numbers.
    sets = [uniform_points(dimension, POINTS, 2 * seed + i + 1000) for i in (0, 1)]
    with jax.enable_x64(True):
        first, second = (np.asarray(_mean(tokens)(winners, omega, tau, U)) - omega for U in sets)
    # first and second estimate V g, so that f = V |g|^2/sqrt(tau) takes tau^(3/2).
    return float((first * second).sum(axis=1).mean() / tau**1.5)


@functools.lru_cache(maxsize=8)
def _mean(tokens: int) -> Any:
    import jax

    return jax.jit(lambda winners, omega, V, U: orthant.weighted_mean(winners, omega, V, U, tokens)[1])


def uninformed(tokens: int, seed: int) -> float:
    """f(1) = sum over patterns of Pr(y) |E[z | y]|^2, one pattern from each class under relabelling of the tokens."""
    import jax

    winners, copies = patterns(tokens)
    omega = np.zeros((1, n_pairs(tokens)))
    total = 0.0
    with jax.enable_x64(True):
        log_mean = jax.jit(lambda w, U: orthant.weighted_mean(w[None], omega, 1.0, U, tokens))
        for pattern, count in zip(winners, copies, strict=True):
            sets = [uniform_points(tokens * (tokens - 1) // 2, ENUMERATION, 2 * seed + i) for i in (0, 1)]
            (log_p, first), (_, second) = (log_mean(pattern, U) for U in sets)
            total += float(count * np.exp(log_p[0]) * (first * second).sum())
    return total


def patterns(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """One possible pattern of winners from each class under relabelling of the tokens, and the sizes of the classes."""
    less = orthant.orders(tokens)
    # Winners that make a pair smaller than itself close a cycle and cannot occur.
    possible = ~less[:, range(less.shape[1]), range(less.shape[1])].any(axis=1)
    winners = np.array(list(np.ndindex(*(tokens,) * tokens)))[possible]
    # Row i under new names is the old row t_i, its winner named by the inverse; the smallest code stands for the class.
    relabelled = [np.argsort(t)[winners[:, t]] for t in map(np.array, itertools.permutations(range(tokens)))]
    codes = np.min([r @ tokens ** np.arange(tokens) for r in relabelled], axis=0)
    _, first, copies = np.unique(codes, return_index=True, return_counts=True)
    return winners[first], copies


def tied_entry(tokens: int) -> dict[str, list[float]]:
    """Values and errors of a tied sequence at the nodes, through both ends and the Monte Carlo values between."""
    # Each row holds one diagonal entry, of variance 2.
    low = tokens * small_tau(np.r_[np.sqrt(2.0), np.ones(tokens - 1)])
    ends = [uninformed(tokens, seed) for seed in range(4)]
    high, t = float(np.mean(ends)), chebyshev(NODES)
    found = np.array([[tied_batch(tokens, x**2, seed) for seed in range(TIED_BATCHES)] for x in INSIDE])
    inside, errors = np.array(INSIDE), found.std(axis=1, ddof=1) / np.sqrt(TIED_BATCHES)
    gap = found.mean(axis=1) - low - (high - low) * _shape(inside)
    solve = np.linalg.pinv((_correction(inside, 2) / errors).T)
    values = low + (high - low) * _shape(t) + _correction(t, 2).T @ solve @ (gap / errors)
    # The standard error of four seeds, which moves f by about its share t.
    end = np.std(ends, ddof=1) / 2 * t
    return _entry(values, np.sqrt(((_correction(t, 2).T @ solve) ** 2).sum(axis=1) + end**2))


def _shape(t: np.ndarray) -> np.ndarray:
    """f of two tokens, from 0 at t = 0 to 1 at t = 1."""
    # s(0) / 0 is not a number; f is smooth at 0.
    x = np.r_[1e-6, t, 1.0]
    low, *pair, high = scale_function(2)(x**2) / x
    return np.asarray((np.array(pair) - low) / (high - low))


def _correction(t: np.ndarray, terms: int) -> np.ndarray:
    """t (1 - t) t^j, which vanish at both ends, (terms, len(t))."""
    return np.asarray(t * (1 - t) * t ** np.arange(terms)[:, None])


def _entry(values: np.ndarray, errors: np.ndarray) -> dict[str, list[float]]:
    return {"values": values.round(9).tolist(), "errors": errors.round(9).tolist()}


def main() -> None:
    """Write the file, or one entry of it."""
    names = [f"{kind}-{size}" for kind in ("row", "tied") for size in SIZES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=names, nargs="*", default=names)
    path = Path(__file__).with_name(TABLE)
    for name in parser.parse_args().only:
        kind, size = name.split("-")
        made = (row_entry if kind == "row" else tied_entry)(int(size))
        table = json.loads(path.read_text()) if path.exists() else {"row": {}, "tied": {}}
        table[kind] = dict(sorted({**table[kind], size: made}.items()))
        path.write_text(json.dumps(table, indent=1) + "\n")
        print(name, made, flush=True)


if __name__ == "__main__":
    main()
