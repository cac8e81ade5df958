r"""The body as a linear program: every agreeing row gives two-sided bounds, solved by HiGHS.

.. math:: |\langle \Theta, q_a (x_b - x_c)^\top\rangle - \log(p_b/p_c)| \le t\,\eta_{abc}, \qquad
          \eta_{abc} = \frac{r_a + r_0}{\min(p_b, p_c)}

and where p_c is tiny only the lower bound. The smallest feasible t gives the centre; with t fixed at a multiple of
it the body is a polytope, and its extent in a direction is two further programs (arXiv:2402.04084: only linear
optimisation over the body is needed).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from attnlab.mha.sculpting.agreement import FLOOR, Agreement

_TINY = 0.02  # a weight below gives only an inequality
_LOOSENING = 2.0


@dataclass(frozen=True)
class Polytope:
    """``|A theta - b| <= t * width`` (``lower_only`` rows: one side), entries of theta within ``radius``."""

    A: np.ndarray
    b: np.ndarray
    width: np.ndarray
    lower_only: np.ndarray
    radius: float


@dataclass(frozen=True)
class Chords:
    """Longest extents of the polytope in turn orthogonal directions: unit directions ``(c, d, d)`` and lengths."""

    centre: np.ndarray
    directions: np.ndarray
    lengths: np.ndarray
    slack: float


def polytope(agreement: Agreement, *, limit: int = 600, radius: float | None = None) -> Polytope:
    """Constraints from the best agreeing rows: for each, the heaviest token against every other."""
    chosen = agreement.accepted(reach=1.0, limit=limit)
    rows, p, r = agreement.rows.take(chosen), agreement.patterns[chosen], agreement.residuals[chosen]
    best = p.argmax(axis=1)
    every = np.arange(len(rows))
    parts = []
    for c in range(p.shape[1]):
        use = every[best != c]
        b, heavy, light = best[use], p[use, best[use]], p[use, c]
        direction = rows.K[use, b] - rows.K[use, c]
        # Of a tiny weight it is known only that the log-odds are at least those against _TINY.
        floor = np.maximum(light, _TINY)
        parts.append(
            (
                (rows.Q[use, :, None] * direction[:, None, :]).reshape(len(use), -1),
                np.log(heavy / floor),
                (r[use] + FLOOR) / floor,
                light < _TINY,
            )
        )
    A, b_side, width, lower_only = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Equal tokens give a row of zeros, which slack alone could satisfy.
    seen = np.abs(A).any(axis=1)
    # Along the hull nothing but this bound ends the body.
    size = radius if radius is not None else 4 * float(np.abs(b_side).max()) / np.sqrt(rows.Q.shape[1])
    return Polytope(A[seen], b_side[seen], width[seen], lower_only[seen], size)


def centre(body: Polytope) -> tuple[np.ndarray, float]:
    """The point that needs the least slack t, and that t."""
    u = body.A.shape[1]
    A, b = _sides(body, 0.0)
    widths = np.concatenate([body.width[~body.lower_only], body.width])
    # Unknowns: the entries of theta, then t.
    program = sparse.csr_array(np.column_stack([A, -widths]))
    bounds: list[tuple[float, float | None]] = [*[(-body.radius, body.radius)] * u, (0.0, None)]
    x = _solve(np.append(np.zeros(u), 1.0), program, b, bounds)
    if x is None:
        raise RuntimeError("the linear program of the body has no solution; use body='kl'")
    return x[:-1], float(x[-1])


def longest_chords(body: Polytope, number: int, *, tries: int, rng: np.random.Generator) -> Chords:
    """Extents of the body in coordinate directions orthogonal to the chords found so far; the longest is kept.

    Some coordinate direction sees at least 1/d of the true extent, so ``tries`` of the d^2 are looked at.
    """
    u = body.A.shape[1]
    d = int(np.sqrt(u))
    middle, slack = centre(body)
    # At the least slack the body has no interior.
    A, b = _sides(body, _LOOSENING * slack + 1e-9)
    program = sparse.csr_array(A)
    bounds = [(-body.radius, body.radius)] * u
    found: list[np.ndarray] = []
    lengths: list[float] = []
    for _ in range(number):
        best, longest = np.zeros(u), -1.0
        for coordinate in rng.permutation(u)[:tries]:
            direction = np.eye(u)[coordinate]
            direction = direction - sum(f * f[coordinate] for f in found)
            low, high = (_solve(sign * direction, program, b, bounds) for sign in (1.0, -1.0))
            if low is None or high is None:
                continue
            chord = high - low
            # Where a program has many solutions its ends may differ along the chords found before, too.
            chord = chord - sum(f * (f @ chord) for f in found)
            if np.linalg.norm(chord) > longest:
                best, longest = chord, float(np.linalg.norm(chord))
        if longest < 0:
            raise RuntimeError(f"none of the {tries} linear programs for a chord of the body was solved; use body='kl'")
        found.append(best / max(longest, np.finfo(float).tiny))
        lengths.append(longest)
    return Chords(middle.reshape(d, d), np.array(found).reshape(-1, d, d), np.array(lengths), slack)


def _solve(objective: np.ndarray, A: Any, b: np.ndarray, bounds: Any) -> np.ndarray | None:
    """The minimiser of a linear program, None when it was not found."""
    return linprog(objective, A_ub=A, b_ub=b, bounds=bounds, method="highs").x


def _sides(body: Polytope, t: float) -> tuple[np.ndarray, np.ndarray]:
    """The constraints as A x <= b at slack t, upper sides before lower sides."""
    both = ~body.lower_only
    A = np.concatenate([body.A[both], -body.A])
    b = np.concatenate([body.b[both], -body.b]) + t * np.concatenate([body.width[both], body.width])
    return A, b
