r"""More heads than outputs, or dependent projections: the logits are poles of a rational function.

In the ratio x = q/p of copies the mixture of a direction w is
:math:`\sum_i wW_i\, r_i/(x + r_i)`, :math:`r_i = e^{t_i}`: one pole a head, whatever the width of the output. At each
point u a denominator of degree m is fitted to the answers for 13 ratios and its roots are polished; all points
together then give wW_i and the logits as affine functions of u. Rational interpolation is ill conditioned: up to six
heads from exact answers, two or three in single precision.

Source: the poles after arXiv:2608.03294; ratios on both sides of one, and the polishing, are ours.  Status: heuristic.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import expit

from attnlab.mha.queries.directions import NO_PERMUTATION, match
from attnlab.mha.queries.oracle import Box, on_sphere
from attnlab.mha.queries.separation import polish
from attnlab.mha.queries.several_heads import Heads, Unseparated, suitable_scale

# Logits have both signs, so that r = e^t lies on both sides of one. So do the ratios: each comes with its inverse.
_HALF = ((8, 1), (6, 1), (4, 1), (3, 1), (2, 1), (3, 2))
COPIES = (*_HALF, (1, 1), *((q, p) for p, q in _HALF[::-1]))
RATIOS = np.array([q / p for p, q in COPIES])
SHIFTS = -np.log(RATIOS)  # log(p / q): what a kind adds to every logit
MOST_HEADS = 6
_TRIES = 12
_SPREAD = 1.5  # poles that are further apart are told apart better: longer tokens than for separation


class _Points(NamedTuple):
    """Points u on the sphere of radius s, and the same as rows of the design (with a constant for biases)."""

    U: np.ndarray
    design: np.ndarray

    @classmethod
    def draw(cls, box: Box, s: float, rng: np.random.Generator, n: int | None = None) -> _Points:
        """New points, by default as many as a direction needs."""
        U = on_sphere(n or box.d + 6 + box.bias, box.d, s, rng)
        return cls(U, np.column_stack([U / s, np.ones(len(U))]) if box.bias else U / s)


def recover_by_poles(box: Box, n_heads: int | None, scale: float, rng: np.random.Generator) -> Heads:
    """The layer from the poles of all directions, the heads of each matched to those of the first."""
    d = box.d
    s = _SPREAD * suitable_scale(box, scale, rng)
    # As for separation, with a higher floor: poles are worse conditioned.
    good = max(30 * box.noise, 1e-11)
    w0, first = _first(box, s, range(1, MOST_HEADS + 1) if n_heads is None else (n_heads,), good, rng)
    m = len(first.B)
    values, slopes = np.empty((d, m, box.outputs)), np.empty((d, *first.A.shape))
    points = _Points.draw(box, s, rng)
    directions = s * box.Q
    for j in range(d):
        for _ in range(_TRIES):
            w = directions[j]
            found = _fit(_answers(box, w, points.U), w @ box.w_sum, points.design, m)
            if found is not None and found.residual < good:
                # The logits are known everywhere, so the matching may ask at points of its own.
                other = _Points.draw(box, s, rng, ceil(2 * m * m / box.outputs) + 4)
                three = box.shares(other.U, w0, w)
                order, off = match(three, first.B, other.design @ first.A, found.B, other.design @ found.A)
                values[j], slopes[j] = found.B[order], found.A[:, order]
                if off < NO_PERMUTATION:
                    break
            # Two heads with close logits cannot be told apart: another direction may take the place of this one.
            points, directions[j] = _Points.draw(box, s, rng), on_sphere(1, d, s, rng)[0]
        else:
            raise Unseparated(f"{m} heads were found in one direction and not in others; more outputs are needed")
    # No transpose here: directions that took another's place are not orthogonal to the rest.
    inverse = np.linalg.inv(directions)
    theta = np.einsum("jpm,qj->mpq", slopes[:, :d], inverse) / s
    bias = np.einsum("jm,qj->mq", slopes[:, -1], inverse) if box.bias else np.zeros((m, d))
    detail = {"start": first.residual, "residual": first.residual, "rank": d, "length": s}
    return Heads(theta, np.einsum("pj,jmo->mpo", inverse, values), bias, "poles", first.n_iter, detail)


def _first(
    box: Box, s: float, counts: range | tuple[int, ...], good: float, rng: np.random.Generator
) -> tuple[np.ndarray, _Fit]:
    """The first direction, with the fewest heads that explain it; other directions are tried when none do."""
    for _ in range(_TRIES):
        tried = []
        points, w = _Points.draw(box, s, rng), on_sphere(1, box.d, s, rng)[0]
        answers = _answers(box, w, points.U)
        for m in counts:
            found = _fit(answers, w @ box.w_sum, points.design, m)
            if found is not None and found.residual < good:
                return w, found
            tried.append(f"{m}: {'no admissible start' if found is None else f'{found.residual:.1e}'}")
    raise Unseparated(
        f"too many heads for d_out = {box.outputs}, more outputs are needed: residuals by number of heads "
        f"{', '.join(tried)}; error of an answer {box.noise:.1e}"
    )


class _Fit(NamedTuple):
    """Logits ``design A``, values ``B (m, o)``, rms residual and Gauss-Newton steps."""

    A: np.ndarray
    B: np.ndarray
    residual: float
    n_iter: int


def _answers(box: Box, w: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Mixtures for all ratios, ``(kinds, n, o)``."""
    return np.stack([box.mixture(U, w, copies) for copies in COPIES])


def _fit(G: np.ndarray, total: np.ndarray, points: np.ndarray, m: int) -> _Fit | None:
    """The best fit of m heads over a few sets of starting points; None without an admissible start."""
    starts: dict[int, Any] = {}
    one = np.ones((1, 1))
    for n in range(G.shape[1]):
        logits = _poles(G[:, n], total, m)
        if logits is not None:
            # At a single point every logit is an unknown of its own: the design is the number one.
            A, B, _ = polish(G[:, n : n + 1], one, logits[None], SHIFTS, total)
            starts[n] = A[0], B, np.linalg.cond(expit(A + SHIFTS[:, None]))
    if len(starts) < 2:
        return None
    ranked = sorted(starts, key=lambda n: starts[n][2])
    fits = []
    # Points where two logits are close give values that are far off and mislead the labels: fewer points, then all.
    for number in sorted({max(2, len(ranked) // 2), max(2, 3 * len(ranked) // 4), len(ranked)}):
        A, B, path = polish(G, points, _joined(starts, ranked[:number], points), SHIFTS, total, max_iter=200)
        fits.append(_Fit(A, B, float(np.sqrt(path[-1] / G.size)), len(path) - 1))
    return min(fits, key=lambda fit: fit.residual)


def _joined(starts: dict[int, Any], chosen: list[int], points: np.ndarray) -> np.ndarray:
    """One affine function for each head through the logits of the chosen points, labelled by the values of the best."""
    best = starts[chosen[0]][1]
    targets = []
    for n in chosen:
        distance = np.linalg.norm(starts[n][1][None] - best[:, None], axis=-1)
        targets.append(starts[n][0][linear_sum_assignment(distance)[1]])
    # Where two poles are close the logits are less exact: a point counts by its condition.
    weight = np.array([1 / starts[n][2] for n in chosen])[:, None]
    return np.linalg.lstsq(weight * points[chosen], weight * np.array(targets), rcond=None)[0]


def _poles(g: np.ndarray, total: np.ndarray, m: int) -> np.ndarray | None:
    """Logits at one point from the answers ``g (kinds, o)``; None when a root is not a negative number."""
    # Divided by (1 + x)^m: powers of ratios from 1/8 to 8 would give the rows weights far apart.
    scaled = (RATIOS[:, None] ** np.arange(m + 1)) / (1 + RATIOS[:, None]) ** m
    outputs = g.shape[1]
    # g D = P with a monic D of degree m, whose roots are the poles. P(0) = wWbar D(0) joins the column of D(0).
    blocks = g.T[:, :, None] * scaled[None]
    blocks[:, :, 0] -= total[:, None] * scaled[None, :, 0]
    if m > 1:  # the numerator's other coefficients are eliminated
        basis = np.linalg.qr(scaled[:, 1:m])[0]
        blocks = blocks - basis @ (basis.T @ blocks)
    system = blocks.reshape(outputs * len(RATIOS), m + 1)
    coefficients = np.linalg.lstsq(system[:, :m], -system[:, m], rcond=None)[0]
    # The poles lie at -r_i; np.roots takes the highest power first.
    roots = -np.roots(np.append(1.0, coefficients[::-1]))
    if len(roots) < m or np.abs(roots.imag).max() > 1e-9 * np.abs(roots).max() or roots.real.min() <= 0:
        return None
    return np.log(np.sort(roots.real))
