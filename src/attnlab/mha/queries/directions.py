r"""Labelled values of all directions: :math:`w_jW_i` and the logits :math:`t_i(u, w_j)` in the head order of one w0.

*reference* : a second token u - w0 in the same query carries the label. Its share :math:`P_i` of head i is read as the
coefficient of the known :math:`w_0W_i`, and gives the logit of head i at w_j:
:math:`e^{-t_i} = e^{-t_{0i}}/P_i - 1 - e^{-t_{0i}}`. Needs 2 m <= d_out; about d (m + 8) queries.

*separate* : every direction is separated by itself, and its heads are matched to those of w0 by three-token queries,
whose answers are linear in the permutation. Needs m <= d_out; about m^2 queries a direction, the smallest errors.

Source: derived here.  Status: exact with exact answers, for generic directions.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit

from attnlab.mha.queries.oracle import Box
from attnlab.mha.queries.separation import SCALES, SUM_WEIGHT, separate

_BLOCK = 32  # directions asked for in one call of the oracle
_EDGE = 1e-12
NO_PERMUTATION = 0.3
_TRIES = 4


class Reference(NamedTuple):
    """The direction that labels the heads: ``w0 (d,)``, ``B0 (m, o)``, points ``U (n, d)`` and ``T0 (n, m)`` there."""

    w0: np.ndarray
    B0: np.ndarray
    U: np.ndarray
    T0: np.ndarray

    def clearest(self, n: int) -> np.ndarray:
        """The points at which no head is saturated."""
        return np.argsort(np.abs(self.T0).max(axis=1))[:n]


def decode(mixtures: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Logits of all heads from mixtures ``(n, o)`` whose vectors ``B (m, o)`` are known."""
    shares = np.linalg.lstsq(B.T, mixtures.T, rcond=None)[0].T
    # Noise puts shares outside (0, 1), where a logit is not a number.
    return logit(np.clip(shares, _EDGE, 1 - _EDGE))


def by_reference(box: Box, directions: np.ndarray, known: Reference, extra: int) -> tuple[np.ndarray, np.ndarray]:
    """``B (j, m, o)`` and ``T (j, n, m)`` of all directions, by a labelled second token."""
    m, n = len(known.B0), len(known.U)
    # Where a label is saturated it has lost its digits: three tokens are asked at the clearest points only.
    clear = known.clearest(m + extra)
    values, logits = [], []
    for start in range(0, len(directions), _BLOCK):
        block = directions[start : start + _BLOCK]
        everywhere = np.tile(known.U, (len(block), 1)), np.repeat(block, n, axis=0)
        pairs = box.mixture(*everywhere).reshape(len(block), n, -1)
        at_clear = np.tile(known.U[clear], (len(block), 1))
        threes = box.shares(at_clear, known.w0, np.repeat(block, len(clear), axis=0))
        for w, two, three in zip(block, pairs, threes.reshape(len(block), len(clear), -1), strict=True):
            B = _labelled(box, w, two, three, known, clear)
            values.append(B)
            logits.append(decode(two, B))
    return np.array(values), np.array(logits)


def _labelled(
    box: Box, w: np.ndarray, two: np.ndarray, three: np.ndarray, known: Reference, clear: np.ndarray
) -> np.ndarray:
    """The vectors wW_i in the order of the reference."""
    m = len(known.B0)
    # The unknown wW_i span the same space as the answers of two tokens; only its shares of w0W_i are of interest.
    span = np.linalg.svd(two, full_matrices=False)[2][:m]
    shares = np.linalg.lstsq(np.concatenate([known.B0, span]).T, three.T, rcond=None)[0][:m].T
    odds = np.exp(-known.T0[clear])
    # e^{-t} by the label's equation; noise can make it negative, where t is not a number.
    falling = np.maximum(odds / np.maximum(shares, _EDGE) - 1 - odds, _EDGE)
    # The last row says that the values sum to wWbar.
    design = np.concatenate([1 / (1 + falling), np.full((1, m), SUM_WEIGHT)])
    answers = np.concatenate([two[clear], SUM_WEIGHT * (w @ box.w_sum)[None]])
    return np.linalg.lstsq(design, answers, rcond=None)[0]


def by_separation(
    box: Box, directions: np.ndarray, known: Reference, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """``B (j, m, o)`` and ``T (j, n, m)`` of all directions, each separated and matched."""
    m = len(known.B0)
    points, matched = 30 + m * (m + 3) // 2 + m, matching_points(m, box.outputs)
    values, logits = [], []
    for w in directions:
        best, order, off = None, np.arange(m), np.inf
        # A slice is random: where one fails another may not.
        for _ in range(_TRIES):
            # The first scale alone: the length of the directions was chosen by the logits of w0.
            found = separate(box, w, m, points, SCALES[:1], rng)
            T = decode(box.mixture(known.U, w), found.B)
            # Points at which neither direction is saturated.
            clear = np.argsort(np.abs(np.hstack([known.T0, T])).max(axis=1))[:matched]
            three = box.shares(known.U[clear], known.w0, w)
            order, off = match(three, known.B0, known.T0[clear], found.B, T[clear])
            best = found.B[order], T[:, order]
            if off < NO_PERMUTATION:
                break
        assert best is not None
        values.append(best[0])
        logits.append(best[1])
    return np.array(values), np.array(logits)


def matching_points(m: int, outputs: int) -> int:
    """Three-token queries that determine an m x m permutation."""
    return ceil(1.5 * m * m / outputs) + 3


def match(three: np.ndarray, B0: np.ndarray, T0: np.ndarray, B: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, float]:
    """For each head of w0 the head of w, and how far the solution is from a permutation.

    The answers are sum_ik M_ik (P(i, k) w0W_i + P'(i, k) wW_k): linear in M, whose rows and columns sum to one.
    """
    m = len(B0)
    a, b = np.exp(-T0)[:, :, None], np.exp(-T)[:, None, :]
    total = 1 + a + b
    design = (a / total)[..., None] * B0[:, None, :] + (b / total)[..., None] * B[None, :, :]
    rows = design.transpose(0, 3, 1, 2).reshape(-1, m * m)
    # Sums of M are one, whatever the scale of the answers beside them.
    weight = SUM_WEIGHT * np.mean(np.abs(rows))
    sums = np.concatenate([np.kron(np.eye(m), np.ones((1, m))), np.kron(np.ones((1, m)), np.eye(m))])
    system = np.concatenate([rows, weight * sums])
    M = np.linalg.lstsq(system, np.append(three.reshape(-1), np.full(2 * m, weight)), rcond=None)[0].reshape(m, m)
    own, other = linear_sum_assignment(-M)
    permutation = np.zeros((m, m))
    permutation[own, other] = 1
    return other, float(np.abs(M - permutation).max())


def affine_fit(U: np.ndarray, T: np.ndarray, bias: bool) -> np.ndarray:
    """Weighted least squares of the logits ``T (j, n, m)`` on [u, 1]: coefficients ``(j, m, d + bias)``."""
    design = np.column_stack([U, np.ones(len(U))]) if bias else U
    targets = T.transpose(0, 2, 1)
    return weighted_fit(design, targets, certainty(targets))


def certainty(logits: np.ndarray) -> np.ndarray:
    """Weight of a logit: the slope of the sigmoid, since a saturated logit is known less exactly."""
    share = expit(logits)
    return share * (1 - share)


def weighted_fit(design: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Least squares of ``targets (..., n)`` on ``design (n, p)``, every set of targets with weights of its own."""
    # Not by normal equations, which square the condition.
    basis, triangle = np.linalg.qr(weights[..., None] * design)
    sides = np.swapaxes(basis, -1, -2) @ (weights * targets)[..., None]
    return np.linalg.solve(triangle, sides)[..., 0]
